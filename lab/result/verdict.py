# SPDX-License-Identifier: GPL-2.0
"""What a result says of contexts, by filesystem and dirty limit: held against the null of the same result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lab.experiment.measure import Spread
from lab.result.results import Cell

#: How far apart two measurements of one kernel are taken to lie where the result has no null.
ASSUMED_NULL = 0.05


class Group(NamedTuple):
    """What cells that are compared with each other have in common."""

    device: str
    machine: str
    cpus: int
    fs: str
    dirty_limit_mib: int | None
    layout: str

    @classmethod
    def of(cls, cell: Cell) -> Group:
        """Return that of a cell."""
        return cls(cell.device, cell.machine, cell.cpus, cell.fs, cell.dirty_limit_mib, cell.layout)


@dataclass(frozen=True)
class Verdict:
    """What is best for one group of cells, and whether that is more than chance.

    Attributes:
        cell: the setting: of those that are as good as the best, the one with the fewest contexts.
        null: by how much one context, which runs stock's code, was off from stock at most, as a ratio; of
            the parts of its windows.
        is_null_measured: False where the result has no such cell, and :data:`ASSUMED_NULL` stands in.
    """

    cell: Cell
    null: float
    is_null_measured: bool

    @property
    def gains(self) -> bool:
        """Say whether every part of the window is faster than stock by more than the null."""
        spread = self.cell.ratio_to_stock_spread
        return spread is not None and spread.min > 1 + self.null

    @property
    def loses(self) -> bool:
        """Say whether every part of the window is slower than stock by more than the null."""
        spread = self.cell.ratio_to_stock_spread
        return spread is not None and spread.max < 1 - self.null

    @property
    def text(self) -> str:
        """Say it in words."""
        name, ratio = self.cell.label, self.cell.ratio_to_stock
        if ratio is None:
            said = f"best at {name}"
        else:
            of_stock = f"{ratio:.2f}x stock{_interval(self.cell.ratio_to_stock_spread)}"
            if self.gains:
                said = f"best at {name}, {of_stock}"
            elif self.loses:
                said = f"no gain: at best {of_stock}, with {name}"
            else:
                said = f"as stock within the null ({of_stock}, {name})"
            said += f", null ±{self.null:.1%}" + ("" if self.is_null_measured else " assumed")
        if self.cell.ratio_to_bdis is not None:
            said += f", {self.cell.ratio_to_bdis:.2f} of separate BDIs"
        return said


def verdict(cells: Sequence[Cell]) -> Verdict | None:
    """Judge the cells of one group; None if there is nothing in it but stock, bounds and the null."""
    ours = [cell for cell in cells if cell.variant == "parallel" and not _is_null(cell)]
    if not ours:
        return None
    nulls = [cell.ratio_to_stock_spread for cell in cells if _is_null(cell)]
    measured = [max(abs(one.min - 1), abs(one.max - 1)) for one in nulls if one is not None]
    null = max(measured, default=ASSUMED_NULL)
    best = max(cell.mib_s.median for cell in ours)
    as_good = [cell for cell in ours if cell.mib_s.median >= best * (1 - null)]
    chosen = min(as_good, key=lambda cell: (cell.contexts or 0, -cell.mib_s.median))
    return Verdict(chosen, null, bool(measured))


def verdicts(cells: Iterable[Cell]) -> dict[Group, Verdict]:
    """Judge every group of cells, in order of appearance."""
    groups: dict[Group, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(Group.of(cell), []).append(cell)
    found = {group: verdict(of) for group, of in groups.items()}
    return {group: one for group, one in found.items() if one is not None}


def _is_null(cell: Cell) -> bool:
    """Say whether a cell runs stock's code on our kernel: one context, and nothing else of ours."""
    return (
        cell.variant == "parallel"
        and cell.contexts == 1
        and cell.workers in (None, 1)
        and cell.ag_mode in (None, "off")
        and cell.placement in (None, "base")
    )


def _interval(spread: Spread | None) -> str:
    return f" [{spread.min:.2f}, {spread.max:.2f}]" if spread else ""
