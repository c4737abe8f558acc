# SPDX-License-Identifier: GPL-2.0
"""Show what the checks of a series said: a table of patches and checks, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from lab.check import result
from lab.check.series import Checked
from lab.util.progress import duration

# Of one check of one patch; the first tells most.
_SHOWN = 5
# Columns of a terminal: between two of the table's, and what says something of a patch's title.
_GAP, _TITLE = 2, 20


def show(console: Console, found: Sequence[Checked]) -> None:
    """Print the table, and below it each line that is wrong; on a narrow terminal a line for each patch."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("patch", overflow="ellipsis", no_wrap=True)
    names = result.columns([checked.failures for checked in found])
    for name in names:
        table.add_column(name)
    for checked in found:
        words = result.words(checked.failures, names, not_made="-")
        table.add_row(f"{checked.patch.number} {checked.patch.title}", *words)
    if sum(len(name) + _GAP for name in names) + _TITLE <= console.width:
        console.print(table)
    else:
        for checked in found:
            console.print(line(checked), markup=False, highlight=False, soft_wrap=True)
    for checked in found:
        for outcome in checked.failed:
            told = f"patch {checked.patch.number}, {outcome.check}:"
            for failure in outcome.failures[:_SHOWN]:
                console.print(told, failure, markup=False, highlight=False, soft_wrap=True)
            if len(outcome.failures) > _SHOWN:
                more = len(outcome.failures) - _SHOWN
                console.print(told, f"and {more} lines more", markup=False, highlight=False)


def line(checked: Checked) -> str:
    """Say in a line what became of a patch, and how long its checks took when they were made."""
    failed = ", ".join(outcome.check for outcome in checked.failed)
    took = duration(sum(outcome.seconds for outcome in checked.outcomes))
    unknown = [name for name, outcome in checked.said.items() if outcome is None]
    if not checked.outcomes:
        return f"{checked.patch}: {'not checked yet' if unknown else 'nothing to check'}"
    left = f", not run: {', '.join(unknown)}" if unknown else ""
    return f"{checked.patch}: {f'FAILS {failed}' if failed else 'ok'}, {took}{left}"


def verdict(found: Sequence[Checked]) -> str | None:
    """Return the sentence that names the first patch that fails, and by what; None where none fails."""
    first = next((checked for checked in found if checked.failed), None)
    if first is None:
        return None
    outcome = first.failed[0]
    return f"{first.patch} is the first that fails, the check {outcome.check}: {outcome.failures[0]}"
