# SPDX-License-Identifier: GPL-2.0
"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    """Return a table.

    Args:
        columns: their headings.
        rows: the texts of each.
        left: how many columns, from the first on, are words; the others are numbers.
    """
    rule = "---|" * left + "---:|" * (len(columns) - left)
    lines = [f"| {' | '.join(columns)} |", f"|{rule}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
