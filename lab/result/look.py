# SPDX-License-Identifier: GPL-2.0
"""How a setting looks in the plots of a result, and what these have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.result.results import Cell
from lab.result.verdict import is_null
from lab.util.grouping import grouped

# Of Okabe and Ito, but for the greys: told apart without colour vision too.
STOCK_COLOUR, NULL_COLOUR, BEST_COLOUR = "#30353b", "#e69f00", "#0072b2"
PREPARED_COLOUR = AUTO_COLOUR = "#cc79a7"
OTHERS_COLOUR = "#a8aeb6"
BOUND_STYLES = {"bdis": ("#d94801", "-"), "direct": ("#31a354", "--")}
#: Inches of a legend's column.
LABEL_WIDTH = 1.8


@dataclass(frozen=True)
class Look:
    """How a setting is drawn.

    Attributes:
        name: in the legend.
        colour: of its line, bar or point.
        width: of its line, in points.
        level: what has a higher one is drawn over it.
    """

    name: str
    colour: str
    width: float
    level: float

    @classmethod
    def of(cls, cell: Cell, best: Sequence[Cell]) -> Look:
        """Return that of a cell: what a verdict is about stands out, the rest is grey.

        Args:
            cell: what is drawn.
            best: the settings that are judged.
        """
        # Stock and the null mostly lie on each other: the thinner one on top leaves both to be seen.
        if cell.variant == "stock":
            return cls(cell.label, STOCK_COLOUR, 3.2, 2.2)
        if cell.variant == "prepared":
            return cls(cell.label, PREPARED_COLOUR, 1.4, 2.3)
        if is_null(cell):
            return cls(f"{cell.label} (null)", NULL_COLOUR, 1.4, 2.4)
        if cell in best:
            return cls("best setting", BEST_COLOUR, 2.0, 2.5)
        return cls("other settings", OTHERS_COLOUR, 1.0, 2.1)


def has_writeback(cell: Cell) -> bool:
    """Say whether a cell is of stock or of ours, and not a bound."""
    return cell.variant not in BOUND_STYLES


def groups(cells: Iterable[Cell]) -> dict[tuple[str, int | None], list[Cell]]:
    """Return cells by filesystem and limit, in their order."""
    return grouped(lambda cell: (cell.fs, cell.dirty_limit_mib), cells)


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Put one legend of all panels below them, in as many lines as it takes."""
    found = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=min(len(found), int(figure.get_figwidth() // LABEL_WIDTH)),
        frameon=False,
        fontsize=9,
    )
