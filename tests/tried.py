# SPDX-License-Identifier: GPL-2.0
"""How a test says how much it has tried, for the table of its proof."""

from __future__ import annotations

from typing import Protocol


class Tried(Protocol):
    """Notes counts, by what is counted: a keyword's underscores stand for blanks."""

    def __call__(self, **counts: int) -> None: ...
