# SPDX-License-Identifier: GPL-2.0
"""A line of the proof of the clock: what was tried, what should come out, and what did."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from lab.util import markdown

HEADING = """\
# The proof that the clock of the machine `smp` is right

Made with `./pwb clock`. Each line says what was tried, what should come out, and what did; a line without a
bound is only told. A cell is 8 jobs on 8 CPUs (unless it says otherwise) that overwrite cached files at
random, 4 KiB at a time, on a RAM disk with a dirty limit of 128 MiB; what is written back counts, in a
window of 0.8 s of virtual time. One CPU at a time runs on the host (one lane), as in the cells of a
measurement, of which each core of the host runs one.

"""


class Row(BaseModel):
    """One line of the table.

    Attributes:
        test: name by which it can be asked for.
        what: what was tried.
        expected: what should come out, in words.
        measured: what came out, in words.
        bound: how far it may be off, in words; empty where nothing was promised.
        met: whether it is within the bound; None without one.
        figures: the numbers behind it.
    """

    test: str
    what: str
    expected: str
    measured: str
    bound: str = ""
    met: bool | None = None
    figures: dict[str, float] = {}


def apart(what: str, found: float, expected: float, *, most: float, unit: str, digits: int = 1) -> Row:
    """Make the line for a figure that should be another one, within a part of it."""
    off = found / expected - 1
    return Row(
        test="",
        what=what,
        expected=f"{expected:,.{digits}f} {unit}",
        measured=f"{found:,.{digits}f} {unit} ({off:+.1%})",
        bound=f"{most:.0%}",
        met=abs(off) <= most,
        figures={"found": found, "expected": expected},
    )


def below(what: str, found: float, most: float, unit: str) -> Row:
    """Make the line for a figure that has a limit."""
    return Row(
        test="",
        what=what,
        expected="as little as can be",
        measured=f"{found:.1f} {unit}",
        bound=f"{most:g} {unit}",
        met=found <= most,
        figures={"found": found},
    )


def repeated(what: str, found: Sequence[float], most: float, unit: str) -> Row:
    """Make the line for a figure that should be the same every time."""
    median = statistics.median(found)
    off = max(abs(one / median - 1) for one in found)
    return Row(
        test="",
        what=what,
        expected="the same each time",
        measured=f"{', '.join(f'{one:,.0f}' for one in found)} {unit} (at most {off:.1%} from the median)",
        bound=f"{most:.0%}",
        met=off <= most,
        figures={f"boot {number}": one for number, one in enumerate(found, 1)},
    )


def table(found: Iterable[Row]) -> str:
    """Return the table."""
    met = {None: "", True: "yes", False: "**no**"}
    rows = [(row.test, row.what, row.expected, row.measured, row.bound, met[row.met]) for row in found]
    columns = ("test", "what", "expected", "measured", "bound", "met")
    return markdown.table(columns, rows, left=len(columns))


def page(found: Iterable[Row]) -> str:
    """Return the table with what it needs to be understood."""
    return HEADING + table(found)
