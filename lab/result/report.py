# SPDX-License-Identifier: GPL-2.0
"""Show a result: the table in the terminal, the same as markdown, and one verdict a filesystem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from lab.experiment.axes import axes_of
from lab.experiment.measure import FIGURES, Spread
from lab.result import bottleneck_table, verdict
from lab.result.results import Cell
from lab.util import markdown as tables
from lab.util.grouping import grouped

# Wide enough for the table where there is no terminal to ask.
PLAIN_WIDTH = 140
WIDEST = 1000
#: The figures of the table, beside throughput.
SHOWN = {name: one for name, one in FIGURES.items() if one.heading and name != "mib_s"}
COLUMNS = (
    "fs",
    "dirty limit",
    "setting",
    FIGURES["mib_s"].column,
    "min..max",
    "x stock",
    "x BDIs",
    "x direct",
    *(one.column for one in SHOWN.values()),
)
LEFT_COLUMNS = 3
# Left out in this order where the terminal is too narrow; table.md has them all.
DISPENSABLE = ("mean µs", "extents", "CPU s/GiB", "sync s", "min..max", "CPUs busy", "x direct")
WHOLE_RUN_MARK = "*"
GROWING_MARK = "^"
#: What stands behind a setting in a table, and what it means.
MARKS = {
    WHOLE_RUN_MARK: "a short job: measured over the whole run, final sync included",
    GROWING_MARK: (
        "dirty pages still grew, by more than a tenth of the limit: writers were not yet held at it, and "
        "later the flusher may have more of the CPUs (a longer ramp_s tells)"
    ),
}
GROWING = 0.1


def terminal() -> Console:
    """Return a console for standard output, wide enough for the table where it is not a terminal."""
    plain = Console()
    return plain if plain.is_terminal else Console(width=PLAIN_WIDTH)


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Sort cells for reading: device, CPUs, filesystem, limit, layout, stock, contexts, bounds."""
    listed = list(cells)
    devices = list(dict.fromkeys(cell.device for cell in listed))
    filesystems = list(dict.fromkeys(cell.fs for cell in listed))
    rank = {"stock": 0, "prepared": 1, "parallel": 2, "bdis": 3, "direct": 4}
    return sorted(
        listed,
        key=lambda cell: (
            devices.index(cell.device),
            cell.cpus,
            filesystems.index(cell.fs),
            cell.dirty_limit_mib is None,
            cell.dirty_limit_mib or 0,
            _ranks(cell, "files"),
            rank[cell.variant],
            _ranks(cell, "contexts"),
            cell.contexts or 0,
            _ranks(cell, "kernel"),
        ),
    )


def _ranks(cell: Cell, kind: str) -> list[Any]:
    return [axis.rank(cell.choice[name]) for name, axis in axes_of(kind)]


def row(cell: Cell) -> list[str]:
    """Return the texts of one row, in the order of ``COLUMNS``."""
    return [
        cell.fs,
        f"{cell.dirty_limit_mib} MiB" if cell.dirty_limit_mib else "-",
        cell.label + _found(cell) + _mark(cell),
        FIGURES["mib_s"].text(cell.mib_s.median),
        f"{cell.mib_s.min:.0f}..{cell.mib_s.max:.0f}",
        _ratio(cell.ratio_to_stock),
        _ratio(cell.ratio_to_bdis),
        _ratio(cell.ratio_to_direct),
        *(one.text(_median(cell, name)) for name, one in SHOWN.items()),
    ]


def _found(cell: Cell) -> str:
    """Say which number of contexts the kernel has found."""
    return f" ({cell.contexts_used.median:.0f})" if cell.finds_contexts and cell.contexts_used else ""


def _mark(cell: Cell) -> str:
    if not cell.steady:
        return WHOLE_RUN_MARK
    grew, limit = cell.dirty_growth_mib, cell.dirty_limit_mib
    return GROWING_MARK if grew and limit and grew.median > GROWING * limit else ""


@dataclass(frozen=True)
class Rig:
    """What a table or a plot is about: a device and the machine."""

    device: str
    machine: str
    cpus: int

    @classmethod
    def of(cls, cell: Cell) -> Rig:
        """Return that of a cell."""
        return cls(cell.device, cell.machine, cell.cpus)

    @property
    def label(self) -> str:
        """Name it in words."""
        return self.device + self.cpus_said

    @property
    def cpus_said(self) -> str:
        """Name the CPUs; on User-mode Linux all have those of the host."""
        return f", {self.cpus} CPUs" if self.machine != "uml" else ""

    @property
    def name(self) -> str:
        """Name it in a file name."""
        return f"{self.device}-{self.cpus}cpus" if self.machine != "uml" else self.device


def rigs(cells: Iterable[Cell]) -> dict[Rig, list[Cell]]:
    """Return the cells of each device and machine, in order."""
    return grouped(Rig.of, in_order(cells))


def table(rig: Rig, shown: list[Cell], without: Sequence[str] = ()) -> Table:
    """Make the terminal table of one device and machine, with a gap between filesystems and limits.

    Args:
        rig: the device and the machine.
        shown: its cells, in order.
        without: columns to leave out.
    """
    runs = max(cell.runs for cell in shown)
    made = Table(
        title=f"device {rig.label}: MiB/s at the device, median of {runs}",
        box=box.SIMPLE_HEAD,
        title_justify="left",
    )
    kept = [number for number, name in enumerate(COLUMNS) if name not in without]
    for number in kept:
        made.add_column(COLUMNS[number], justify="left" if number < LEFT_COLUMNS else "right", no_wrap=True)
    best = [one.cell for one in verdict.verdicts(shown).values() if one.kind == "gain"]
    for cell, after in zip(shown, [*shown[1:], None], strict=True):
        ends = after is None or (after.fs, after.dirty_limit_mib) != (cell.fs, cell.dirty_limit_mib)
        texts = row(cell)
        style = "bold" if cell in best else None
        made.add_row(*(texts[number] for number in kept), end_section=ends, style=style)
    return made


def said_of(cells: list[Cell], quote: str = "") -> list[str]:
    """Say of each device, filesystem and dirty limit what contexts are worth, what to type, what it costs.

    Args:
        cells: of one result.
        quote: what goes around a line to type.
    """
    found = []
    for group, one in verdict.verdicts(in_order(cells)).items():
        lines = [f"{group.fs} on {Rig.of(one.cell).label}: at {group.dirty_limit_mib} MiB {one.text}."]
        if one.line:
            lines.append(f"{quote}{one.line}{quote}")
            lines += [f"Against stock: {one.costs}."] if one.costs else []
        found.append("\n  ".join(lines))
    return found


def auto_said(cells: list[Cell]) -> list[str]:
    """Say how near the number of contexts that the kernel finds comes to the best of those measured."""
    ours = (cell for cell in in_order(cells) if cell.variant == "parallel")
    said = []
    for shown in grouped(verdict.Group.of, ours).values():
        fixed = [cell for cell in shown if cell.contexts]
        best = max(fixed, key=lambda cell: cell.mib_s.median, default=None)
        tried = ", ".join(str(number) for number in sorted({cell.contexts or 0 for cell in fixed}))
        for found in (cell for cell in shown if cell.finds_contexts):
            if best:
                share = found.mib_s.median / best.mib_s.median
                said.append(
                    f"{found.fs} on {Rig.of(found).label}, {found.dirty_limit_mib} MiB: {found.label}"
                    f"{_found(found)} reach {share:.2f} of the best fixed number measured ({tried}): "
                    f"{best.label}."
                )
    return said


def clock_said(cells: list[Cell]) -> list[str]:
    """Say what virtual time cost, and what of it was lost."""
    costs = [cell.host_s_per_s.median for cell in cells if cell.host_s_per_s]
    lost = [cell.lost.median for cell in cells if cell.lost]
    if not costs or not lost:
        return []
    return [
        f"virtual time: {min(costs):.0f} to {max(costs):.0f} s of the host for a second of a guest, boots "
        f"included; {min(lost):.1%} to {max(lost):.1%} of it lost at the barrier."
    ]


def remarks(cells: list[Cell], notes: list[str], quote: str = "") -> list[str]:
    """Return what goes below the table: verdicts, what the marks mean, and the notes of the run."""
    return [*said_of(cells, quote), *auto_said(cells), *clock_said(cells), *marks_said(cells), *notes]


def marks_said(cells: list[Cell]) -> list[str]:
    """Say what the marks in the table mean, those that there are."""
    seen = {_mark(cell) for cell in cells}
    return [f"{mark} {said}" for mark, said in MARKS.items() if mark in seen]


def markdown(cells: list[Cell], notes: list[str]) -> str:
    """Return the tables, verdicts and notes as markdown."""
    lines: list[str] = []
    for rig, shown in rigs(cells).items():
        runs = max(cell.runs for cell in shown)
        lines += [f"Device `{rig.device}`{rig.cpus_said}, MiB/s at the device, median of {runs}:", ""]
        lines += [tables.table(COLUMNS, [row(cell) for cell in shown], LEFT_COLUMNS)]
        limits = bottleneck_table.markdown(shown)
        lines += ["What limits each, by its profile:", "", *limits, ""] if limits else []
    lines += [f"- {said}" for said in remarks(cells, notes, quote="`")]
    return "\n".join(lines) + "\n"


def show(console: Console, cells: list[Cell], notes: list[str], folder: Path) -> None:
    """Print tables, verdicts and notes, and where everything is."""
    for rig, shown in rigs(cells).items():
        console.print(_fitting_table(console, rig, shown))
    for said in remarks(cells, notes):
        console.print(said, markup=False, highlight=False)
    console.print(
        f"\nresults: {folder} (also {folder.parent / 'latest'})",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    for name in sorted(path.name for path in folder.iterdir() if path.is_file()):
        console.print(f"  {name}", markup=False, highlight=False)


def _fitting_table(console: Console, rig: Rig, shown: list[Cell]) -> Table:
    """Make the table with as many columns as the console has room for."""
    for dropped in range(len(DISPENSABLE) + 1):
        made = table(rig, shown, DISPENSABLE[:dropped])
        if console.measure(made, options=console.options.update(width=WIDEST)).maximum <= console.width:
            break
    return made


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _median(cell: Cell, name: str) -> float | None:
    found: Spread | None = getattr(cell, name)
    return found.median if found else None
