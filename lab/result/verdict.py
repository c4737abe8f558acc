# SPDX-License-Identifier: GPL-2.0
"""What a result says of contexts, by filesystem and dirty limit: held against the null of the same result.

The best of many settings is lucky in the rates that chose it. So where there are several rounds, the first
one chooses and the others judge. In a single one the parts of the window do both, and the interval is as wide
as all settings together need: for m of them one of 1 - 0.05 / m (Bonferroni).

Two boots of one kernel can differ by more than the parts of a window do. So from :data:`rounds.PAIRS` rounds
on a round counts once, as the ratio of its rates. With fewer, the interval of the parts is widened by how
much boots of the same code lie apart, in all groups of the result with this device and so many CPUs, or in
the group itself if that is more: else looking until something is decided would find gains of stock over
itself.

What a setting costs is judged in the same way by the rounds that did not choose it: the interval of each cost
is widened by how far one context lay off from stock in the same figure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from lab.experiment.axes import axes_of
from lab.experiment.measure import COSTS, Spread
from lab.result.interval import ASSUMED_NULL, CONFIDENCE, Apart, Interval, paired_interval, ratio_interval
from lab.result.results import Cell
from lab.result.rounds import (
    PAIRS,
    are_comparable,
    paired_figures,
    paired_rates,
    rates_to_choose,
    rates_to_judge,
)
from lab.util.grouping import grouped

#: What lies within this of stock, its interval included, is as good as stock; so are two settings.
AS_STOCK = 0.03
#: From so many busy CPUs on nothing is left for more flushers.
ALL_BUSY = 0.95
#: A bound that is no further from stock than this leaves nothing to be gained.
NEAR = 1.05
#: Share of the dirty limit from which on writers wait: half way from the background limit, its half, to it.
WAIT_FROM = 0.75
#: Dirty pages are sampled, so writers surely never waited only where they stayed this far below that.
SURELY = 0.9
#: So many times stock's extents are worth this multiple of its throughput; for less nobody wants them.
PIECES, WORTH_PIECES = 2, 1.1
#: So many tasks that wait for one lock, on average, are held up by it.
HELD_UP = 1.0

#: The figure that is judged, beside those that it costs.
RATE = "mib_s"

Kind = Literal["gain", "loss", "same", "open"]


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

    @property
    def booted_on(self) -> tuple[str, str, int]:
        """Return device, machine and CPUs: there boots of one kernel lie about equally far apart."""
        return self.device, self.machine, self.cpus


@dataclass(frozen=True)
class Verdict:
    """What promises most for one group of cells, and whether that is more than chance.

    Attributes:
        cell: the setting that is judged: of those that are as good as the best, the kernel's own choice, or
            else the one with the fewest contexts and the least to set beside. One that brings less than
            :data:`WORTH_PIECES` and makes :data:`PIECES` times the extents is none of them.
        stock: what it is compared with; None where the result has none.
        interval: its throughput as a multiple of stock's; None where there are too few rates, or one is 0, or
            one of the two has no steady window.
        null: by how much one context, which runs stock's code, was off from stock, as a ratio.
        is_null_measured: False where the result has no such cell, and :data:`ASSUMED_NULL` stands in.
        why: what may leave nothing to be gained, beside the throughput; empty if nothing is known.
        cost_intervals: its costs as multiples of stock's, by their names in :data:`COSTS`; without those of
            which there are too few rounds, or one is 0.
    """

    cell: Cell
    stock: Cell | None
    interval: Interval | None
    null: float
    is_null_measured: bool
    why: str
    cost_intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """Say whether it gains, loses, or is as good as stock; ``open`` where that cannot be told."""
        if self.interval is None:
            return "open"
        margin = max(self.null, AS_STOCK)
        if self.interval.low > 1 + margin:
            return "gain"
        if self.interval.high < 1 - margin:
            return "loss"
        # Where stock's own code is off by more, what lies within that can still be a gain or a loss.
        is_near = self.interval.low > 1 - margin and self.interval.high < 1 + margin
        return "same" if is_near and margin <= ASSUMED_NULL else "open"

    @property
    def text(self) -> str:
        """Say it in words."""
        name = self.cell.label
        if self.cell.ratio_to_stock is None:
            said = f"not judged: {name}, without a stock to compare with"
        else:
            if self.interval:
                measured = self.interval.text
                said = {
                    "gain": f"best at {name}, {measured}",
                    "loss": f"no gain: at best {measured}, with {name}",
                    "same": f"as stock: {measured}, with {name}",
                    "open": f"{self._doubt}: {measured}, with {name}",
                }[self.kind]
            else:
                said = f"not judged: {self.cell.ratio_to_stock:.2f}x stock with {name}, {self._no_interval}"
            said += f", null ±{self.null:.1%}" + ("" if self.is_null_measured else " assumed")
        if self.cell.ratio_to_bdis is not None:
            said += f", {self.cell.ratio_to_bdis:.2f} of separate BDIs"
        return said + (f"; {self.why}" if self.why and self._looks_like_no_gain else "")

    @property
    def _doubt(self) -> str:
        """Say why an interval decides nothing."""
        margin = max(self.null, AS_STOCK)
        if self.interval and self.interval.low > 1:
            is_small = self.interval.ratio <= 1 + margin
            return (
                "a little more than stock, and no gain to rely on"
                if is_small
                else "more than stock, by how much is open"
            )
        if self.interval and self.interval.high < 1:
            is_small = self.interval.ratio >= 1 - margin
            return "a little less than stock" if is_small else "less than stock, by how much is open"
        return "not told apart from stock"

    @property
    def _looks_like_no_gain(self) -> bool:
        ratio = self.interval.ratio if self.interval else self.cell.ratio_to_stock
        return self.kind != "gain" and ratio is not None and ratio <= NEAR

    @property
    def _no_interval(self) -> str:
        if not are_comparable(self.cell, self.stock):
            return (
                "no interval, for only one of the two ran all through the window: give the job more to do "
                "(time_based, or a larger size)"
            )
        rates = rates_to_judge(self.cell, self.stock, has_chosen=True) if self.stock else ()
        has_few = min(map(len, rates), default=0) < 2
        return "too few rates for an interval" if has_few else "no interval, for a rate is 0"

    @property
    def line(self) -> str:
        """Return the line to type for it; empty where there is nothing to be gained."""
        return self.cell.typed if self.kind == "gain" else ""

    @property
    def costs(self) -> str:
        """Say what else differs from stock, and what is as stock, with intervals; empty without a stock."""
        if self.stock is None:
            return ""
        said = []
        for figure, name in COSTS.items():
            ours: Spread | None = getattr(self.cell, figure)
            base: Spread | None = getattr(self.stock, figure)
            if not ours or not base or base.median <= 0:
                continue
            if interval := self.cost_intervals.get(figure):
                is_as_stock = interval.low <= 1 <= interval.high
                change = "as stock" if is_as_stock else _change(interval.ratio)
                said.append(f"{name} {change} [{_change(interval.low)}, {_change(interval.high)}]")
            else:
                alone = " (no interval)" if self.cost_intervals else ""
                said.append(f"{name} {_change(ours.median / base.median)}{alone}")
        if said and not self.cost_intervals:
            said[-1] += " (no intervals, which take three rounds)"
        return ", ".join(said)


def verdict(
    cells: Sequence[Cell], apart: Apart | None = None, costs_apart: Mapping[str, Apart] | None = None
) -> Verdict | None:
    """Judge the cells of one group; None if there is nothing in it but stock, bounds and the null.

    Args:
        cells: the group's.
        apart: how far boots of the same code lie apart; None: as the group shows it.
        costs_apart: the same of each cost.
    """
    ours = [cell for cell in cells if cell.variant == "parallel" and not is_null(cell)]
    if not ours:
        return None
    stock, tried = _stock(cells), len(ours)
    apart = apart or Apart.of(_nulls(cells))
    # What nobody can judge is no answer where something else can be judged.
    ours = [cell for cell in ours if stock and _interval(cell, stock, apart, tried)] or ours
    worth = dict(zip(map(id, ours), _worths(ours, stock), strict=True))
    whole = [cell for cell in ours if not (stock and _shatters(cell, stock, worth[id(cell)]))]
    best = max(worth[id(cell)] for cell in whole or ours)
    as_good = [cell for cell in whole or ours if worth[id(cell)] >= best * (1 - AS_STOCK)]
    chosen = min(as_good, key=lambda cell: (cell.contexts or 0, len(cell.bdi_files), -worth[id(cell)]))
    null = measured_null(cells)
    costs_apart = costs_apart or {figure: Apart.of(_nulls(cells, figure)) for figure in COSTS}
    return Verdict(
        cell=chosen,
        stock=stock,
        interval=_interval(chosen, stock, apart, tried) if stock else None,
        null=ASSUMED_NULL if null is None else null,
        is_null_measured=null is not None,
        why=_why(chosen, stock, cells) if stock else "",
        cost_intervals=_cost_intervals(chosen, stock, costs_apart) if stock else {},
    )


def verdicts(cells: Iterable[Cell]) -> dict[Group, Verdict]:
    """Judge every group of cells, in order of appearance."""
    groups = grouped(Group.of, cells)
    found = {
        group: verdict(
            of,
            apart_in(group, groups),
            {figure: apart_in(group, groups, figure=figure) for figure in COSTS},
        )
        for group, of in groups.items()
    }
    return {group: one for group, one in found.items() if one is not None}


def apart_in(group: Group, *results: Mapping[Group, Sequence[Cell]], figure: str = RATE) -> Apart:
    """Return how far boots of the same code lie apart in a group: as on its machine, if not farther.

    One null is little to go by, and a group may have none; but a filesystem may vary more than others.
    """
    nulls = [
        (other, null) for groups in results for other, of in groups.items() for null in _nulls(of, figure)
    ]
    apart = Apart.of([null for other, null in nulls if other.booted_on == group.booted_on])
    own = [null for other, null in nulls if other == group]
    return apart._replace(spread=max(apart.spread, Apart.of(own).spread)) if own else apart


def _nulls(cells: Sequence[Cell], figure: str = RATE) -> list[float]:
    """Return what one context came to in each round of a group, as multiples of stock: rate or cost."""
    one, stock = next((cell for cell in cells if is_null(cell)), None), _stock(cells)
    if not one or not stock:
        return []
    pairs = paired_rates(one, stock) if figure == RATE else paired_figures(one, stock, figure)
    return [ours / base for ours, base in pairs if ours and base]


def measured_null(cells: Sequence[Cell]) -> float | None:
    """Return by how much one context was off from stock, by the rounds that judge; None if not known."""
    found = _nulls(cells)
    return _off(found[1:] or found)


def is_null(cell: Cell) -> bool:
    """Say whether a cell runs stock's code on our kernel: one context, and nothing else of ours."""
    return (
        cell.variant == "parallel"
        and cell.contexts == 1
        and all(cell.choice[name] in axis.usual for name, axis in axes_of("kernel"))
    )


def null(cells: Sequence[Cell]) -> float:
    """Return by how much one context was off from stock in a group of cells; what is assumed without it."""
    found = _off(_nulls(cells))
    return ASSUMED_NULL if found is None else found


def compared(cell: Cell, base: Cell, cells: Sequence[Cell], candidates: int) -> Interval | None:
    """Return the throughput of a cell as a multiple of another's, with its interval; None with too few rates.

    Args:
        cell: what is compared.
        base: what it is compared with.
        cells: their group, for the null.
        candidates: of how many cells it is the best, by all rounds; 1 if nobody has chosen it.
    """
    return _interval(cell, base, Apart.of(_nulls(cells)), candidates, has_chosen=False)


def _interval(
    cell: Cell, base: Cell, apart: Apart, candidates: int, *, has_chosen: bool = True
) -> Interval | None:
    """Return the interval of the best of so many settings, as a multiple of a base.

    Args:
        cell: that setting.
        base: what it is compared with.
        apart: how far boots of the same code lie apart; widens the interval where rounds are few.
        candidates: of how many settings it is the best.
        has_chosen: whether the first of several rounds has chosen it, and so cannot judge; else all of them
            do both, and the interval is as wide as all settings together need.
    """
    if not are_comparable(cell, base):
        return None
    rounds = len(paired_rates(cell, base))
    confidence = CONFIDENCE if has_chosen and rounds > 1 else 1 - (1 - CONFIDENCE) / candidates
    judging = paired_rates(cell, base)[has_chosen:]
    if len(judging) >= PAIRS:
        return paired_interval(judging, confidence)
    found = ratio_interval(*rates_to_judge(cell, base, has_chosen=has_chosen), confidence)
    return found.widened(apart, max(1, rounds - has_chosen)) if found else None


def _stock(cells: Sequence[Cell]) -> Cell | None:
    return next((cell for cell in cells if cell.variant == "stock"), None)


def _off(nulls: Sequence[float]) -> float | None:
    """Return by how much the mean of ratios is off from 1; None without any."""
    return abs(math.exp(statistics.fmean(map(math.log, nulls))) - 1) if nulls else None


def _cost_intervals(cell: Cell, stock: Cell, apart: Mapping[str, Apart]) -> dict[str, Interval]:
    """Return the intervals of costs as multiples of stock's, of the rounds that did not choose.

    Args:
        cell: the setting.
        stock: what it is held against.
        apart: how far boots of the same code lie apart, for each cost.
    """
    pairs = {figure: paired_figures(cell, stock, figure, first=1) for figure in COSTS}
    found = {figure: paired_interval(of) for figure, of in pairs.items()}
    return {figure: one.widened(apart[figure], len(pairs[figure])) for figure, one in found.items() if one}


def _shatters(cell: Cell, stock: Cell, worth: float) -> bool:
    """Say whether a setting puts files in many more pieces, and gains too little for that.

    Args:
        cell: the setting.
        stock: what it is held against.
        worth: what the setting is chosen by, a multiple of stock.
    """
    if chosen_by := paired_figures(cell, stock, "extents")[:1]:
        [(ours, base)] = chosen_by
    elif cell.extents and stock.extents:
        ours, base = cell.extents.median, stock.extents.median
    else:
        return False
    return ours >= PIECES * max(base, 1) and worth < WORTH_PIECES


def _worths(cells: Sequence[Cell], stock: Cell | None) -> list[float]:
    """Return what each cell is chosen by: its rate in its first round, as a multiple of stock's there.

    Where one of them has no round in common with stock it is the rates themselves, of all of them.
    """
    firsts = [paired_rates(cell, stock)[:1] for cell in cells] if stock else []
    if firsts and all(pairs and pairs[0][1] for pairs in firsts):
        return [ours / base for [(ours, base)] in firsts]
    return [_mean(rates_to_choose(cell)) or cell.mib_s.median for cell in cells]


def _mean(rates: Sequence[float]) -> float | None:
    """Return the mean, for what the parts of a window write adds up; None without rates, or where it is 0."""
    return statistics.fmean(rates) or None if rates else None


def _why(cell: Cell, stock: Cell, cells: Sequence[Cell]) -> str:
    """Say what may leave nothing to be gained, by what both did and what the bounds come to."""
    bound = next((one for one in cells if one.variant == "bdis"), None)
    busy, limit = _busy(stock), cell.bottleneck
    if busy is not None and busy >= ALL_BUSY:
        return f"with stock the CPUs are busy for {busy:.0%} of the time already"
    if limit and limit.lock_tasks >= HELD_UP:
        return f"with {cell.label} {limit.lock_tasks:.1f} tasks wait for a lock at any time, in {limit.lock}"
    if said := _nobody_waited(stock):
        return said
    if bound and bound.ratio_to_stock and bound.ratio_to_stock <= NEAR:
        return (
            f"a device and a flusher for each CPU come to {bound.ratio_to_stock:.2f}x, so no flusher is short"
        )
    # A cache that merges or reorders writes makes far more of them; direct I/O is no bound for it.
    if stock.ratio_to_direct and 1 / NEAR <= stock.ratio_to_direct <= NEAR:
        return f"stock comes to {stock.ratio_to_direct:.2f} of direct I/O"
    return _what_cpus_did(cell, stock)


def _nobody_waited(stock: Cell) -> str:
    """Say that dirty pages never came to where writers wait for a flusher; empty if they may have."""
    limit, most = stock.dirty_limit_mib, stock.dirty_max_mib
    if not limit or not most or most.max >= SURELY * WAIT_FROM * limit:
        return ""
    return (
        f"with stock no writer waited for a flusher: dirty pages came to {most.max:.0f} MiB at most, and "
        f"writers wait from {WAIT_FROM * limit:.0f} on"
    )


def _what_cpus_did(cell: Cell, stock: Cell) -> str:
    """Say how busy the CPUs were with both, and what that tells; empty where it was not read."""
    ours, base = _busy(cell), _busy(stock)
    if ours is None or base is None:
        return ""
    said = f"the CPUs are busy for {base:.0%} of the time with stock, {ours:.0%} with {cell.label}"
    if ours >= ALL_BUSY:
        return said
    said += ", so it is not they that are short"
    if cell.bottleneck:
        return f"{said}, and {cell.bottleneck.lock_tasks:.1f} tasks wait for the lock that is wanted most"
    return said + (" (--profile shows what is waited for)" if cell.machine == "smp" else "")


def _busy(cell: Cell) -> float | None:
    """Return the share of the CPUs' time that is not idle; a profile's, which misses no short run, first."""
    if cell.bottleneck:
        return 1 - cell.bottleneck.shares.get("idle", 0)
    return cell.cpu_busy.median if cell.cpu_busy else None


def _change(ratio: float) -> str:
    """Say by how much a ratio differs from one; what is left of something small is not nothing."""
    said = f"{ratio - 1:+.0%}"
    return f"{ratio - 1:+.1%}" if said == "-100%" and ratio > 0 else said
