# SPDX-License-Identifier: GPL-2.0
"""Draw the settings of a result side by side: throughput with its bounds, latency and extents."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from lab.experiment.measure import Spread
from lab.result import one_round
from lab.result.interval import mean_bounds
from lab.result.look import (
    AUTO_COLOUR,
    BEST_COLOUR,
    BOUND_STYLES,
    NULL_COLOUR,
    OTHERS_COLOUR,
    STOCK_COLOUR,
    Look,
    groups,
    has_writeback,
    legend,
)
from lab.result.report import in_order, rigs
from lab.result.results import Cell
from lab.result.rounds import PAIRS
from lab.result.verdict import verdicts
from lab.util import picture

#: Inches of a setting's name that stands upright.
NAME_WIDTH = 0.16

WHISKERS = "median; whiskers: 95% interval of the mean"


def draw(folder: Path, cells: list[Cell]) -> list[Path]:
    """Write the plots of every device of a result and of its rounds into its folder; return their paths."""
    made: list[Path] = []
    best = [one.cell for one in verdicts(in_order(cells)).values()]
    for rig, shown in rigs(cells).items():
        made += [
            picture.save(folder / f"throughput-{rig.name}.png", throughput(rig.label, shown, best)),
            picture.save(folder / f"latency-{rig.name}.png", latency(rig.label, shown, best)),
        ]
        if differ_in_extents(shown):
            made.append(picture.save(folder / f"extents-{rig.name}.png", extents(rig.label, shown, best)))
        made += one_round.draw(folder, (rig.name, rig.label), shown, best)
    for device in dict.fromkeys(cell.device for cell in cells):
        shown = [cell for cell in in_order(cells) if cell.device == device]
        if len({cell.cpus for cell in shown}) > 1:
            made.append(picture.save(folder / f"scaling-{device}.png", scaling(device, shown)))
    return made


def scaling(device: str, cells: list[Cell]) -> Figure:
    """Lines of MiB/s over CPUs: a panel per filesystem and limit.

    Stock, as many contexts as CPUs, each number of contexts that was measured wherever the guest has the
    CPUs for it, and the bounds.
    """
    panels = groups(cells)
    filesystems = list(dict.fromkeys(fs for fs, _ in panels))
    limits = list(dict.fromkeys(limit for _, limit in panels if limit is not None))
    figure, grid = plt.subplots(
        len(limits), len(filesystems), squeeze=False, sharey="row", layout="constrained",
        figsize=(max(3.6 * len(filesystems), 6), 0.8 + 2.6 * len(limits)),
    )  # fmt: skip
    for line, limit in enumerate(limits):
        for column, fs in enumerate(filesystems):
            axes = grid[line][column]
            _scaling_lines(axes, panels.get((fs, limit), []) + panels.get((fs, None), []))
            axes.set_title(f"{fs}, dirty limit {limit} MiB", fontsize=10)
            if line == len(limits) - 1:
                axes.set_xlabel("CPUs, a job each")
            if column == 0:
                axes.set_ylabel("MiB/s at the device")
        # Shared, so only now: the bottom alone cannot be set without fixing the top as it is.
        grid[line][0].set_ylim(bottom=0)
    figure.suptitle(f"Throughput over CPUs, device {device} ({WHISKERS})")
    legend(figure, [axes for row in grid for axes in row])
    return figure


def _scaling_lines(axes: Axes, cells: list[Cell]) -> None:
    counts = {cell.cpus for cell in cells}
    ours = [cell for cell in cells if cell.variant == "parallel"]
    lines = {"stock": (STOCK_COLOUR, "-", [cell for cell in cells if cell.variant == "stock"])}
    for contexts in sorted({cell.contexts for cell in ours if cell.contexts}):
        points = [cell for cell in ours if cell.contexts == contexts]
        throughout = {cell.cpus for cell in points} == {cpus for cpus in counts if cpus >= contexts}
        if throughout and len(points) > 1:
            colour = NULL_COLOUR if contexts == 1 else OTHERS_COLOUR
            name = f"{contexts} context{'s' if contexts > 1 else ''}"
            lines[name] = (colour, "-", points)
    diagonal = [cell for cell in ours if cell.contexts == cell.cpus]
    lines["contexts = CPUs"] = (BEST_COLOUR, "-", diagonal)
    found = [cell for cell in ours if cell.contexts is None]
    if found:
        lines["auto contexts"] = (AUTO_COLOUR, "--", found)
    for variant, (colour, style) in BOUND_STYLES.items():
        points = [cell for cell in cells if cell.variant == variant]
        if len(points) > 1:
            lines[f"{points[0].label} (bound)"] = (colour, style, points)
    for label, (colour, style, points) in lines.items():
        rates = [rate(cell) for cell in points]
        whiskers = [[rate.median - rate.min for rate in rates], [rate.max - rate.median for rate in rates]]
        axes.errorbar(
            [cell.cpus for cell in points], [rate.median for rate in rates],
            yerr=whiskers, marker="o", capsize=3, color=colour, linestyle=style, label=label,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(counts), [str(cpus) for cpus in sorted(counts)])
    axes.grid(alpha=0.3)


def throughput(device: str, cells: list[Cell], best: Sequence[Cell]) -> Figure:
    """Bars of MiB/s at the device by filesystem, limit and setting; bounds as lines across a group."""
    figure, axes = _wide(cells)
    ranges = _groups_of(axes, cells, best, _bar, [rate(cell) for cell in cells])
    for (fs, limit), (left, right) in ranges.items():
        for cell in cells:
            if cell.fs == fs and cell.variant in BOUND_STYLES and cell.dirty_limit_mib in (limit, None):
                colour, style = BOUND_STYLES[cell.variant]
                axes.hlines(
                    cell.mib_s.median, left, right, color=colour, linestyle=style, linewidth=2,
                    label=f"{cell.label} (bound)",
                )  # fmt: skip
    axes.set_ylabel("MiB/s at the device")
    axes.set_title(f"Writeback throughput, device {device} ({WHISKERS})")
    legend(figure, [axes])
    return figure


def latency(device: str, cells: list[Cell], best: Sequence[Cell]) -> Figure:
    """Points of the 99th percentile of fio's write latency, on a logarithmic scale."""
    figure, axes = _wide(cells)
    axes.set_yscale("log")
    _groups_of(axes, cells, best, _point, [cell.latency_p99_us for cell in cells])
    axes.set_ylabel("write latency, 99th percentile (µs)")
    axes.set_title(f"Write latency, device {device} (median; whiskers: min to max of the rounds)")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(StrMethodFormatter(""))
    low, high = axes.get_ylim()
    # Whole decades, so that there are labels.
    axes.set_ylim(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    legend(figure, [axes])
    return figure


def differ_in_extents(cells: list[Cell]) -> bool:
    """Say whether the files of some settings have other numbers of extents than those of others."""
    return any(
        len({cell.extents.median for cell in group if cell.extents}) > 1
        for group in groups(cell for cell in cells if has_writeback(cell)).values()
    )


def extents(device: str, cells: list[Cell], best: Sequence[Cell]) -> Figure:
    """Bars of the extents of the median file by filesystem, limit and setting."""
    figure, axes = _wide(cells)
    _groups_of(axes, cells, best, _bar, [cell.extents for cell in cells])
    axes.set_ylabel("extents of the median file")
    axes.set_title(f"Extents, device {device} (median; whiskers: min to max of the rounds)")
    legend(figure, [axes])
    return figure


def shape(title: str, curves: dict[str, list[tuple[int, float]]]) -> Figure:
    """Throughput by number of contexts as multiples of one base, a line per curve; dashed ones are published.

    Args:
        title: what is shown.
        curves: label -> points of number of contexts and ratio; a label that starts with ``published`` makes
            a dashed line.
    """
    figure, axes = plt.subplots(figsize=(7, 4.8), layout="constrained")
    for label, points in curves.items():
        published = label.startswith("published")
        axes.plot(
            [contexts for contexts, _ in points],
            [ratio for _, ratio in points],
            linestyle="--" if published else "-",
            color=STOCK_COLOUR if published else None,
            marker="o",
            label=label,
        )
    axes.set_xlabel("contexts")
    axes.set_ylabel("multiple of one context")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.set_title(title)
    legend(figure, [axes])
    return figure


def rate(cell: Cell) -> Spread:
    """Return the throughput of a cell with the interval of its mean, of rounds or else of parts.

    Without rates there is no interval.
    """
    rounds = [of for of in cell.rates if of]
    rates = [statistics.fmean(of) for of in rounds]
    if len(rounds) < PAIRS:
        rates = [rate for of in rounds for rate in of]
    middle = cell.mib_s.median
    low, high = mean_bounds(rates) or (middle, middle)
    # The median of a few rounds may lie outside.
    return Spread(median=middle, min=max(0.0, min(low, middle)), max=max(high, middle))


def _wide(cells: list[Cell]) -> tuple[Figure, Axes]:
    """Return a figure with room for the name of each setting."""
    return plt.subplots(figsize=(max(10, NAME_WIDTH * len(cells)), 5.4), layout="constrained")


def _bar(axes: Axes, place: float, value: Spread, look: Look) -> None:
    axes.bar(
        place, value.median, width=0.9, color=look.colour, label=look.name,
        yerr=_whiskers(value), capsize=3, error_kw={"elinewidth": 1},
    )  # fmt: skip


def _point(axes: Axes, place: float, value: Spread, look: Look) -> None:
    axes.errorbar(
        place,
        value.median,
        yerr=_whiskers(value),
        fmt="o",
        markersize=9,
        capsize=3,
        color=look.colour,
        label=look.name,
    )


def _whiskers(value: Spread) -> list[list[float]] | None:
    if value.max == value.min:
        return None
    return [[value.median - value.min], [value.max - value.median]]


def _groups_of(
    axes: Axes,
    cells: list[Cell],
    best: Sequence[Cell],
    draw_one: Callable[[Axes, float, Spread, Look], None],
    values: list[Spread | None],
) -> dict[tuple[str, int | None], tuple[float, float]]:
    """Draw one group of marks per filesystem and limit, each named below; return the span of each group."""
    spans: dict[tuple[str, int | None], tuple[float, float]] = {}
    by_cell = {id(cell): value for cell, value in zip(cells, values, strict=True)}
    place = 0.0
    names: dict[float, str] = {}
    centres: list[float] = []
    for key, group in groups(cell for cell in cells if has_writeback(cell)).items():
        first = place
        for cell in group:
            value = by_cell[id(cell)]
            if value is not None:
                draw_one(axes, place, value, Look.of(cell, best))
            names[place] = cell.label
            place += 1
        spans[key] = (first - 0.5, place - 0.5)
        centres.append((first + place - 1) / 2)
        place += 1
    axes.set_xticks(list(names), list(names.values()), rotation=90, fontsize=8)
    above = axes.secondary_xaxis("top")
    above.set_xticks(centres, [f"{fs}, {limit} MiB" for fs, limit in spans])
    above.tick_params(length=0)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return spans
