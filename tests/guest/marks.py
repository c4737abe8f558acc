# SPDX-License-Identifier: GPL-2.0
"""Which values of a test's parameter only ``make test-all`` tries."""

from __future__ import annotations

from typing import Any

import pytest


def long(*values: Any) -> list[Any]:
    """Return values with the mark ``long``."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
