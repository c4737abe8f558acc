# SPDX-License-Identifier: GPL-2.0
"""What pydantic complains about, in a line."""

from __future__ import annotations

from pydantic import ValidationError


def in_short(error: Exception) -> str:
    """Say what is wrong in one line: of what pydantic complains about, where and what is the first."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
