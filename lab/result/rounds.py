# SPDX-License-Identifier: GPL-2.0
"""Rounds of cells: the rates and figures of each, and what two cells have of the same ones.

The first of several rounds chooses a setting, and the others judge it; a single one does both.
"""

from __future__ import annotations

import statistics

from lab.result.interval import CONFIDENCE, Interval, paired_interval
from lab.result.results import Cell

#: From so many rounds that judge on, their ratios make the interval.
PAIRS = 3


def rounds_of(cell: Cell) -> dict[int, tuple[float, ...]]:
    """Return the rates in the parts of the window by the number of the round."""
    return {number: of for number, of in enumerate(cell.rates) if of}


def rates_to_choose(cell: Cell) -> list[float]:
    """Return the rates that a setting is chosen by: those of its first round."""
    return [*next(iter(rounds_of(cell).values()), ())]


def rates_to_judge(cell: Cell, base: Cell, *, has_chosen: bool) -> tuple[list[float], list[float]]:
    """Return the rates that two cells are compared by, those in the parts of the rounds that have both.

    They are multiples of the base's mean of their round: what a round has in common is not in them.

    Args:
        cell: one of them.
        base: the other one.
        has_chosen: whether the first of several has chosen one of the two, and is left out.
    """
    common = _common_rounds(cell, base)
    if has_chosen and len(common) > 1:
        del common[0]
    means = {number: statistics.fmean(base.rates[number]) for number in common}
    ours, theirs = (
        [rate / (means[number] or 1) for number in common for rate in one.rates[number]]
        for one in (cell, base)
    )
    return ours, theirs


def are_comparable(cell: Cell, base: Cell | None) -> bool:
    """Say whether both have a steady window, or neither: a whole run has fio's start and final sync in it."""
    return base is None or cell.steady == base.steady


def paired_rates(cell: Cell, base: Cell) -> list[tuple[float, float]]:
    """Return the mean rates of two cells in each round that has both."""
    common = _common_rounds(cell, base)
    return [(statistics.fmean(cell.rates[n]), statistics.fmean(base.rates[n])) for n in common]


def paired_figures(cell: Cell, base: Cell, name: str, first: int = 0) -> list[tuple[float, float]]:
    """Return a figure of two cells in each round that has both.

    Args:
        cell: one of them.
        base: the other one.
        name: the figure, one of :data:`lab.result.results.PAIRED`; None is known of others.
        first: common rounds before this index are left out.
    """
    ours, theirs = cell.costs_by_round.get(name), base.costs_by_round.get(name)
    if not ours or not theirs:
        return []
    found = [(ours[n], theirs[n]) for n in _common_rounds(cell, base)[first:]]
    return [(a, b) for a, b in found if a is not None and b is not None]


def compared_figures(cell: Cell, base: Cell, name: str, candidates: int) -> Interval | None:
    """Return a figure of a cell as a multiple of another's; None with less than :data:`PAIRS` rounds.

    Args:
        cell: what is compared.
        base: what it is compared with.
        name: as for :func:`paired_figures`.
        candidates: of how many cells it is the best or the worst, by all rounds; 1 if nobody has chosen it.
    """
    found = paired_figures(cell, base, name)
    return paired_interval(found, 1 - (1 - CONFIDENCE) / candidates) if len(found) >= PAIRS else None


def _common_rounds(cell: Cell, base: Cell) -> list[int]:
    """Return the numbers of the rounds that have both, in order."""
    # Older results leave rounds out, so that their numbers are not those of the rounds.
    if not are_comparable(cell, base) or len(cell.rates) != len(base.rates):
        return []
    theirs = rounds_of(base)
    return [number for number in rounds_of(cell) if number in theirs]
