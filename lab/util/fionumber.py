# SPDX-License-Identifier: GPL-2.0
"""Numbers of options as fio reads them. Python's standard library only."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lab.util.errors import LabError


def count(options: Mapping[str, str], name: str) -> int:
    """Return the number that an option has, 1 where it is missing.

    Raises:
        LabError: it is none that can be read.
    """
    found = number(options.get(name, "1"))
    if found is None:
        raise LabError(
            f"section [{options['name']}] has {name}={options[name]}: expected a whole number, such as 16, "
            "0x10 or 1k"
        )
    return max(1, found)


def number(text: str) -> int | None:
    """Read a number as fio does: hexadecimal, or decimal with a unit, of which it takes Ki for 1000."""
    found = re.fullmatch(r"0x([0-9a-f]+)|(\d+)(?:([kmgtp])(i?))?b?", text.lower())
    if not found:
        return None
    if found[1]:
        return int(found[1], 16)
    base = 1000 if found[4] else 1024
    return int(int(found[2]) * base ** ("kmgtp".find(found[3]) + 1 if found[3] else 0))
