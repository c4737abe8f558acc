# SPDX-License-Identifier: GPL-2.0
"""What the checks of a series said, as a result that the docs can keep."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.check.series import Checked, Failures
from lab.result import provenance
from lab.util import markdown

NAME = "series"
# Of one check of one patch; the first tells most.
_KEPT = 5


@dataclass(frozen=True)
class Row:
    """A patch.

    Attributes:
        kernel: version of the source that the series is for.
        number: its place in the series, from 1.
        title: its subject.
        added: how many lines it adds.
        removed: how many lines it removes.
        failures: the first lines that are wrong, see :data:`lab.check.series.Failures`.
    """

    kernel: str
    number: int
    title: str
    added: int
    removed: int
    failures: Failures


def rows(version: str, found: Iterable[Checked]) -> list[Row]:
    """Return the rows of patches.

    Args:
        version: of the source that the series is for.
        found: what is known of each.
    """
    return [
        Row(
            version,
            checked.patch.number,
            checked.patch.title,
            checked.patch.added,
            checked.patch.removed,
            {name: lines and lines[:_KEPT] for name, lines in checked.failures.items()},
        )
        for checked in found
    ]


def columns(found: Sequence[Failures]) -> list[str]:
    """Return the names of the checks of patches: some are made with the last one only."""
    return list(dict.fromkeys(name for failures in reversed(found) for name in failures))


def words(failures: Failures, names: Iterable[str], not_made: str = "not run") -> list[str]:
    """Say in a word or two what each check found of a patch; nothing of one that is not made of it.

    Args:
        failures: what they found.
        names: of the checks.
        not_made: what is said of one that was not made yet.
    """
    said = {
        name: not_made if lines is None else "FAILS" if lines else "ok" for name, lines in failures.items()
    }
    return [said.get(name, "") for name in names]


def table(patches: Sequence[Row]) -> str:
    """Return the table of at least one patch; its last row says how many pass."""
    names = columns([row.failures for row in patches])
    told = [
        [str(row.number), row.title, f"+{row.added} -{row.removed}", *words(row.failures, names)]
        for row in patches
    ]
    passed = []
    for name in names:
        made = [row.failures[name] for row in patches if name in row.failures]
        passed.append(f"{made.count([])} of {len(made)} ok")
    lines = f"+{sum(row.added for row in patches)} -{sum(row.removed for row in patches)}"
    heads = ("", f"on Linux {patches[0].kernel}", "lines", *names)
    return markdown.table(heads, [*told, ["", "all", lines, *passed]], left=len(heads))


def keep(patches: Sequence[Row], folder: Path) -> None:
    """Write what is known of a series as a result: figures, what they were made with, a table."""
    # To show what is known does not make it again.
    command = shlex.join(["./pwb", *(word for word in sys.argv[1:] if word != "--show")])
    about = {"command": command}
    provenance.write(folder, NAME, map(asdict, patches), [], table=table(patches), about=about)
