# SPDX-License-Identifier: GPL-2.0
"""Show a profile: a summary and tables, in the terminal and as markdown."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from lab.profile.summary import Profile
from lab.util import markdown as tables


def markdown(profile: Profile) -> str:
    """Return the summary and the tables as markdown."""
    lines = [*(f"{said}  " for said in _summary(profile)), ""]
    for title, names, rows in _tables(profile):
        lines += [f"**{title}**", "", tables.table(names, rows, _left_columns(names))]
    return "\n".join(lines)


def show(console: Console, profile: Profile) -> None:
    """Print the summary and the tables."""
    for said in _summary(profile):
        console.print(said, markup=False, highlight=False)
    for title, names, rows in _tables(profile):
        table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
        for number, name in enumerate(names):
            table.add_column(name, justify="left" if number < _left_columns(names) else "right")
        for row in rows:
            table.add_row(*row)
        console.print(table)


def _summary(profile: Profile) -> list[str]:
    """Say what the CPUs and the tasks did, a sentence each."""
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in profile.shares.items())
    largest = sorted(profile.groups.items(), key=lambda item: -item[1])
    groups = ", ".join(f"{name} {share:.1%}" for name, share in largest)
    mean = {
        what: ms / 1e3 / profile.seconds if profile.seconds else 0
        for what, ms in (
            ("waited in the kernel", profile.waiting_ms),
            ("for the host's files", profile.host_ms),
            ("were ready without a CPU", profile.ready_ms),
        )
    }
    tasks = ", ".join(f"{number:.2f} {what}" for what, number in mean.items())
    return [
        f"{profile.cpus} CPUs, {profile.seconds:.3f} s of virtual time: {shares}.",
        f"Busy CPU time by group: {groups}.",
        f"Tasks on average: {tasks}.",
        *(f"Note: {note}." for note in profile.notes),
    ]


def _tables(profile: Profile) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, names of the columns and rows of each table that has any."""
    functions = [
        [one.name, one.kind, f"{one.self_ms:.2f}", f"{one.share:.1%}", f"{one.total_ms:.2f}"]
        for one in profile.functions
    ]
    waits = [
        [
            one.group,
            one.kind,
            one.who,
            str(one.count),
            f"{one.total_ms:.2f}",
            f"{one.mean_us:.1f}",
            f"{one.share:.1%}",
        ]
        for one in profile.waits
    ]
    spins = [
        [one.group, one.primitive, one.who, f"{one.total_ms:.2f}", f"{one.share:.1%}"]
        for one in profile.spins
    ]
    tables = [
        (
            "Where the CPUs spend their time",
            ["function", "kind", "self, ms", "of busy time", "with what it calls, ms"],
            functions,
        ),
        (
            "Who waits for what, asleep",
            ["group", "waits for", "in", "times", "total, ms", "mean, µs", "of all waiting"],
            waits,
        ),
        ("Who spins for what", ["group", "spins in", "called by", "ms", "of busy time"], spins),
    ]
    return [table for table in tables if table[2]]


def _left_columns(names: Sequence[str]) -> int:
    """Return how many columns are text."""
    return next(n for n, name in enumerate(names) if name.endswith("ms") or name == "times")
