# SPDX-License-Identifier: GPL-2.0
"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_RULE = re.compile(r"\|[-:| ]+\|")


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


def plain(text: str) -> str:
    """Return tables as columns that are as wide as their widest cell, without links and marks."""
    lines = text.splitlines()
    rule = next((line for line in lines if _RULE.fullmatch(line)), "")
    numbers = [cell.strip().endswith(":") for cell in rule.strip("|").split("|")]
    bare = [_LINK.sub(r"\1", line).replace("`", "").replace("**", "") for line in lines if line != rule]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in bare]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = [
        [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, numbers, strict=True)
        ]
        for row in rows
    ]
    return "\n".join("  ".join(row).rstrip() for row in shown) + "\n"
