# SPDX-License-Identifier: GPL-2.0
"""What a result says of the throttle: each cell of the parallel kernel against stock, as a Markdown table."""

from __future__ import annotations

from statistics import geometric_mean

from lab.experiment.measure import FIGURES, Spread
from lab.experiment.setting import AUTO
from lab.result.report import Rig, rigs
from lab.result.results import Cell
from lab.result.verdict import Group
from lab.util import markdown
from lab.util.errors import LabError

# Asked of every cell, as ratios to stock, at least and at most.
BARS: dict[str, tuple[float | None, float | None]] = {
    "mib_s": (1.0, None),
    "latency_p99_us": (None, 1.1),
    "slowest_job_mib_s": (0.8, None),
    "dirty_max_mib": (None, 1.1),
}
HEADINGS = [FIGURES[name].name for name in BARS]


def table(cells: list[Cell]) -> str:
    """Return one line for each cell of the parallel kernel.

    A ratio that misses what is asked is in italics, and bold where our best round against stock's worst
    misses it, too.

    Args:
        cells: of one result.

    Raises:
        LabError: a cell has no stock cell to be compared with.
    """
    rows = []
    for cell in cells:
        if cell.variant == "parallel":
            compared = zip(_figures(cell), _figures(_stock(cell, cells)), BARS.values(), strict=True)
            shown = [_ratio(ours, theirs, *bar) for ours, theirs, bar in compared]
            where = f"{cell.dirty_limit_mib} MiB{_rig_said(Rig.of(cell), cells)}"
            rows.append([cell.fs, where, str(cell.contexts or AUTO), *shown])
    return markdown.table(["fs", "dirty limit", "contexts", *HEADINGS], rows, left=1)


def means(cells: list[Cell]) -> str:
    """Return the geometric means over the filesystems, a line for each dirty limit and number of contexts.

    Each device, and each number of CPUs, has lines of its own.

    Args:
        cells: of one result.

    Raises:
        LabError: a cell has no stock cell to be compared with.
    """
    rows = []
    for rig, of_rig in rigs(cells).items():
        ours = [cell for cell in of_rig if cell.variant == "parallel"]
        settings = {(cell.dirty_limit_mib or 0, cell.contexts) for cell in ours}
        for limit, contexts in sorted(settings, key=lambda setting: (setting[0], setting[1] or 0)):
            ratios = [mean(of_rig, name, limit, contexts) for name in BARS]
            shown = ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
            rows.append([f"{limit} MiB{_rig_said(rig, cells)}", str(contexts or AUTO), *shown])
    return markdown.table(["dirty limit", "contexts", *HEADINGS], rows, left=0)


def mean(cells: list[Cell], figure: str, limit_mib: int, contexts: int | None) -> float | None:
    """Return the geometric mean of a figure over the filesystems, as a multiple of stock's.

    Args:
        cells: of one result, on one device and machine.
        figure: its name.
        limit_mib: dirty limit.
        contexts: their number; None where the kernel finds it.

    Returns:
        None where a filesystem has no such figure, or one of 0.

    Raises:
        LabError: a cell has no stock cell to be compared with.
    """
    ratios = [
        of_stock(cell, cells, figure)
        for cell in cells
        if (cell.variant, cell.dirty_limit_mib, cell.contexts) == ("parallel", limit_mib, contexts)
    ]
    known = [ratio for ratio in ratios if ratio]
    return geometric_mean(known) if known and len(known) == len(ratios) else None


def of_stock(cell: Cell, cells: list[Cell], figure: str) -> float | None:
    """Return a figure of a cell as a multiple of stock's; None where either is missing.

    Args:
        cell: of the parallel kernel.
        cells: of the same result.
        figure: its name.

    Raises:
        LabError: there is no stock cell to compare with.
    """
    ours, theirs = (getattr(of, figure) for of in (cell, _stock(cell, cells)))
    return ours.median / theirs.median if ours and theirs and theirs.median else None


def _figures(cell: Cell) -> list[Spread | None]:
    """Return the figures that something is asked of, in their order."""
    return [getattr(cell, name) for name in BARS]


def _rig_said(rig: Rig, cells: list[Cell]) -> str:
    """Name the device and the CPUs where there are several of them among the cells."""
    return f" on {rig.label}" if len(rigs(cells)) > 1 else ""


def _stock(cell: Cell, cells: list[Cell]) -> Cell:
    for other in cells:
        if other.variant == "stock" and Group.of(other) == Group.of(cell):
            return other
    raise LabError(
        f"the result has no stock cell for {cell.fs} on {Rig.of(cell).label} at {cell.dirty_limit_mib} MiB: "
        "measure it again with ./pwb bench"
    )


def _ratio(ours: Spread | None, theirs: Spread | None, least: float | None, most: float | None) -> str:
    if ours is None or theirs is None or not theirs.median:
        return "-"

    def misses(ratio: float) -> bool:
        ratio = round(ratio, 2)
        return (least is not None and ratio < least) or (most is not None and ratio > most)

    ratio = ours.median / theirs.median
    if not misses(ratio):
        return f"{ratio:.2f}"
    at_best = ours.min / theirs.max if least is None else ours.max / (theirs.min or theirs.median)
    return f"**{ratio:.2f}**" if misses(at_best) else f"*{ratio:.2f}*"
