# SPDX-License-Identifier: GPL-2.0
"""Published numbers against a result. Pure functions: cells in, comparisons out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from lab.experiment.axes import AXES, Affinity, Layout, axes_of
from lab.experiment.figure import Figure, Kind
from lab.experiment.measure import ABOUT, FIGURES, Spread, significant
from lab.experiment.published import Bar, Pick, Published
from lab.experiment.scenario import Scenario
from lab.experiment.setting import AUTO, Setting
from lab.result.report import Rig
from lab.result.results import Cell
from lab.result.rounds import compared_figures
from lab.result.verdict import compared, null
from lab.util.grouping import grouped


class Gain(BaseModel):
    """A base, what came of it, and the ratio: above 1 is better, except with extents, where it is more.

    ``low`` and ``high`` are the ratio's interval of 95%: for throughput with enough rates, for other figures
    with enough rounds.
    """

    base: float
    new: float
    ratio: float
    low: float | None = None
    high: float | None = None
    setting: str | None = None


class Point(BaseModel):
    """The ratio to the base at one number of contexts; None where it was not published, or not measured."""

    contexts: int
    published: float | None
    measured: float | None


class Curve(BaseModel):
    """The shape over contexts of one affinity (None: the kernel's own default) on one layout."""

    affinity: Affinity | None
    layout: Layout
    points: list[Point]


class Comparison(BaseModel):
    """One published claim beside what was measured for it on one device, at one dirty limit.

    ``measured`` is at the best number of contexts, for extents at the worst; at the published one where there
    is one only. It is None where the result lacks a cell for it. ``cpus`` is None in old comparisons.
    """

    id: str
    claim: str
    scenario: str
    device: str
    cpus: int | None = None
    fs: str
    dirty_limit_mib: int
    kind: Kind
    unit: str
    published: Gain
    measured_unit: str
    measured: Gain | None
    verdict: str
    curves: list[Curve]


class Cleared(BaseModel):
    """A bar beside what was measured; ``met`` is None where the result lacks a cell for it.

    ``low`` and ``high`` are as of a gain. The ratio meets the bar or not; where the bar lies between them,
    another run may fall on the other side.
    """

    claim: str
    scenario: str
    device: str
    cpus: int | None = None
    fs: str
    dirty_limit_mib: int
    kind: Kind
    at_least: float | None
    at_most: float | None
    measured: float | None
    low: float | None = None
    high: float | None = None
    settings: str
    met: bool | None


@dataclass(frozen=True)
class _Place:
    """What the cells that are compared with each other have in common, whatever their layout."""

    rig: Rig
    fs: str
    limit: int
    cells: list[Cell]


def compare_cells(chosen: Scenario, cells: Sequence[Cell]) -> list[Comparison]:
    """Put every published number of a scenario beside the cells of its result."""
    return [
        _comparison(chosen.name, row, place)
        for row in chosen.published
        for place in _places(cells)
        if place.fs == row.fs
    ]


def clear(chosen: Scenario, cells: Sequence[Cell]) -> list[Cleared]:
    """Hold every bar of a scenario against the cells of its result."""
    return [_cleared(chosen.name, bar, place) for bar in chosen.bars for place in _places(cells)]


def figure(cell: Cell, kind: Kind) -> Spread | None:
    """Return the figure of a cell that a kind of claim is about."""
    found: Spread | None = getattr(cell, ABOUT[kind])
    return found


def gain(kind: Kind, base: float, new: float) -> float | None:
    """Return how many times better ``new`` is than ``base``, or how many times more, as its figure says.

    Where less is better it is turned around, so that above 1 is a gain. None for a base or figure of 0.
    """
    above, below = (base, new) if _about(kind).is_turned else (new, base)
    return significant(above / below) if below else None


def _about(kind: Kind) -> Figure:
    return FIGURES[ABOUT[kind]]


def _places(cells: Iterable[Cell]) -> list[_Place]:
    compared = (cell for cell in cells if cell.variant in ("stock", "parallel"))
    found = grouped(lambda cell: (Rig.of(cell), cell.fs, cell.dirty_limit_mib), compared)
    return [_Place(rig, fs, limit, cells=of) for (rig, fs, limit), of in found.items() if limit is not None]


def _comparison(scenario: str, row: Published, place: _Place) -> Comparison:
    base = _pick(place, row.kind, Pick(variant="parallel" if row.contexts else "stock", layout=row.layout))
    contexts: int | Literal["best", "worst"] = "worst" if _about(row.kind).ratio == "more" else "best"
    if len(row.contexts) == 1:
        contexts = row.contexts[0]
    new = _pick(place, row.kind, Pick(contexts=contexts, **row.choice))
    published = _published_gain(row)
    measured = _measured_gain(row.kind, base, new)
    if measured and base and new:
        candidates = _candidates(place, Pick(contexts=contexts, **row.choice))
        measured.low, measured.high = _bounds(row.kind, new, base, place, candidates)
    return Comparison(
        id=row.id,
        claim=row.claim,
        scenario=scenario,
        device=place.rig.device,
        cpus=place.rig.cpus,
        fs=row.fs,
        dirty_limit_mib=place.limit,
        kind=row.kind,
        unit=row.unit,
        published=published,
        measured_unit=_about(row.kind).unit or row.kind,
        measured=measured,
        verdict=_verdict(row.kind, published.ratio, measured, null(place.cells)),
        curves=_curves(row, place, base),
    )


def _published_gain(row: Published) -> Gain:
    new = min(row.values) if _about(row.kind).is_turned else max(row.values)
    setting = None
    if row.contexts:
        contexts = row.contexts[row.values.index(new)]
        ours = Setting(variant="parallel", contexts=contexts, affinity=row.affinity, layout=row.layout)
        setting = ours.label
    ratio = gain(row.kind, row.base, new)
    assert ratio is not None  # the scenario has no 0 in it
    return Gain(base=row.base, new=new, ratio=ratio, setting=setting)


def _measured_gain(kind: Kind, base: Cell | None, new: Cell | None) -> Gain | None:
    before, after = _median(kind, base), _median(kind, new)
    if new is None or before is None or after is None:
        return None
    ratio = gain(kind, before, after)
    if ratio is None:
        return None
    return Gain(base=before, new=after, ratio=ratio, setting=new.label)


def _median(kind: Kind, cell: Cell | None) -> float | None:
    found = figure(cell, kind) if cell else None
    return found.median if found else None


def _bounds(
    kind: Kind, cell: Cell, base: Cell, place: _Place, candidates: int
) -> tuple[float | None, float | None]:
    """Return between what the ratio lies, the larger one better but for extents; None twice if not known."""
    if kind == "throughput":
        found = compared(cell, base, place.cells, candidates)
    else:
        above, below = (base, cell) if _about(kind).is_turned else (cell, base)
        found = compared_figures(above, below, ABOUT[kind], candidates)
    return (significant(found.low), significant(found.high)) if found else (None, None)


def _candidates(place: _Place, *picks: Pick) -> int:
    """Return of how many cells the best or the worst one was chosen."""
    chosen = [one for one in picks if one.contexts in ("best", "worst")]
    return max([1, *(len(_meant(place, one)) for one in chosen)])


def _verdict(kind: Kind, published: float, measured: Gain | None, apart: float) -> str:
    if measured is None:
        return "not measured"
    if _about(kind).ratio == "more":
        # What is shown as 1.00 is no more.
        return "no more than stock" if round(measured.ratio, 2) <= 1 else "more than stock"
    # Without an interval the ratio stands for both of its ends.
    if (measured.high or measured.ratio) < 1 - apart:
        return "a loss"
    if (measured.low or measured.ratio) <= 1 + apart:
        return "no gain"
    return "as published or better" if measured.ratio >= published else "a smaller gain"


def _curves(row: Published, place: _Place, base: Cell | None) -> list[Curve]:
    """Return the curve of every affinity and layout that was measured.

    Published numbers go to the one that the row is about.
    """
    told = dict(zip(row.contexts, row.values, strict=True)) if row.contexts else {}
    parallel = [
        cell
        for cell in place.cells
        if cell.variant == "parallel"
        and all(cell.choice[name] == row.choice[name] for name, _ in axes_of("kernel"))
    ]
    # One context has nothing to choose: its cell belongs to every affinity.
    affinities = {cell.affinity: None for cell in parallel if cell.contexts != 1} or {None: None}
    curves = []
    for layout in dict.fromkeys(cell.layout for cell in parallel):
        for affinity in affinities:
            found = {
                cell.contexts: cell
                for cell in parallel
                if cell.contexts
                and cell.layout == layout
                and (cell.affinity == affinity or cell.contexts == 1)
            }
            own = told if affinity == row.affinity and layout == row.layout else {}
            points = []
            for contexts in sorted({*found, *own}):
                measured = _measured_gain(row.kind, base, found.get(contexts))
                points.append(
                    Point(
                        contexts=contexts,
                        published=gain(row.kind, row.base, own[contexts]) if contexts in own else None,
                        measured=measured.ratio if measured else None,
                    )
                )
            curves.append(Curve(affinity=affinity, layout=layout, points=points))
    return curves


def _cleared(scenario: str, bar: Bar, place: _Place) -> Cleared:
    cell, of = _pick(place, bar.kind, bar.cell), _pick(place, bar.kind, bar.of)
    above, below = _median(bar.kind, cell), _median(bar.kind, of)
    ratio = significant(above / below) if above is not None and below else None
    low, high = None, None
    if cell and of:
        low, high = _bounds(bar.kind, cell, of, place, _candidates(place, bar.cell, bar.of))
        # A bar's ratio has the one above the other also where less is better.
        if _about(bar.kind).is_turned and low and high:
            low, high = significant(1 / high), significant(1 / low)
    met = None
    if ratio is not None:
        met = (bar.at_least is None or ratio >= bar.at_least) and (
            bar.at_most is None or ratio <= bar.at_most
        )
    return Cleared(
        claim=bar.claim,
        scenario=scenario,
        device=place.rig.device,
        cpus=place.rig.cpus,
        fs=place.fs,
        dirty_limit_mib=place.limit,
        kind=bar.kind,
        at_least=bar.at_least,
        at_most=bar.at_most,
        measured=ratio,
        low=low,
        high=high,
        settings=f"{_name(cell)} / {_name(of)}",
        met=met,
    )


def _has_contexts(cell: Cell, pick: Pick) -> bool:
    if pick.contexts in ("best", "worst"):
        return cell.contexts is not None
    return cell.contexts == (None if pick.contexts == AUTO else pick.contexts)


def _name(cell: Cell | None) -> str:
    return cell.label if cell else "not measured"


def _meant(place: _Place, pick: Pick) -> list[Cell]:
    """Return the cells that are meant, of which one is the best."""
    return [
        cell
        for cell in place.cells
        if cell.variant == pick.variant
        and _has_contexts(cell, pick)
        and all(
            cell.choice[name] == pick.choice[name]
            for name, axis in AXES.items()
            if axis.applies(cell.variant, cell.contexts)
        )
    ]


def _pick(place: _Place, kind: Kind, pick: Pick) -> Cell | None:
    """Return the cell that is meant; None where there is none with a figure."""
    found = [
        (value.median, cell) for cell in _meant(place, pick) if (value := figure(cell, kind)) is not None
    ]
    if not found:
        return None
    largest = (pick.contexts == "worst") != (_about(kind).better == "more")
    choose = max if largest else min
    return choose(found, key=lambda one: one[0])[1]
