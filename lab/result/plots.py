# SPDX-License-Identifier: GPL-2.0
"""Draw a result: throughput with its bounds, latency, extents, and what went on in one round."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from lab.experiment.measure import Spread, flushers_over_time, write_latencies_ns
from lab.experiment.raw import Raw, RawRun
from lab.experiment.window import MIB
from lab.profile.summary import Profile
from lab.result.interval import mean_bounds
from lab.result.report import in_order, rigs
from lab.result.results import Cell, read_fio, read_profile, read_raw
from lab.result.verdict import PAIRS, is_null, verdicts
from lab.util import picture

# Of Okabe and Ito, but for the greys: told apart without colour vision too.
STOCK_COLOUR, NULL_COLOUR, BEST_COLOUR = "#30353b", "#e69f00", "#0072b2"
PREPARED_COLOUR = AUTO_COLOUR = "#cc79a7"
OTHERS_COLOUR = "#a8aeb6"
BOUND_STYLES = {"bdis": ("#d94801", "-"), "direct": ("#31a354", "--")}
#: Pieces that the time of a run is cut into, to show what its flushers did.
PIECES = 40
#: Inches of a legend's column, and of a setting's name that stands upright.
LABEL_WIDTH, NAME_WIDTH = 1.8, 0.16
#: What is less tells nothing, and a logarithmic axis has no 0.
LEAST_LATENCY_US = 0.1

#: What a line over time is drawn of.
Source = TypeVar("Source")

WHISKERS = "median; whiskers: 95% interval of the mean"


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


@dataclass(frozen=True)
class Ran:
    """What is left of the first run of a cell: its samples, and what fio wrote."""

    raw: Raw
    run: RawRun
    fio_json: Path

    @classmethod
    def of(cls, cell: Cell, folder: Path) -> Ran | None:
        """Return that of a cell of the result in a folder; None where its raw data is gone."""
        if not cell.raw:
            return None
        fio_json = folder / cell.raw[0]
        try:
            raw = read_raw(fio_json.parent)
        except FileNotFoundError:
            return None
        return cls(raw, next(run for run in raw.runs if run.fio_json == fio_json.name), fio_json)


def draw(folder: Path, cells: list[Cell]) -> list[Path]:
    """Write the plots of every device of a result into its folder and return their paths.

    What needs raw data is drawn of the settings whose raw data is there, and left out where it is all gone.
    """
    made: list[Path] = []
    best = [one.cell for one in verdicts(in_order(cells)).values()]
    for rig, shown in rigs(cells).items():
        made += [
            picture.save(folder / f"throughput-{rig.name}.png", throughput(rig.label, shown, best)),
            picture.save(folder / f"latency-{rig.name}.png", latency(rig.label, shown, best)),
        ]
        if differ_in_extents(shown):
            made.append(picture.save(folder / f"extents-{rig.name}.png", extents(rig.label, shown, best)))
        ran = [(cell, one) for cell in shown if has_writeback(cell) and (one := Ran.of(cell, folder))]
        if ran:
            made.append(picture.save(folder / f"dirty-{rig.name}.png", dirty(rig.label, ran, best)))
            made.append(picture.save(folder / f"flushers-{rig.name}.png", flushers(rig.label, ran, best)))
        profiles = [(cell, of) for cell in shown if (of := read_profile(cell, folder)) and of.throttled]
        if any(any(of.throttled) for _, of in profiles):
            made.append(picture.save(folder / f"pauses-{rig.name}.png", pauses(rig.label, profiles, best)))
        written = [(cell, one) for cell, one in ran if one.fio_json.exists()]
        if written:
            path = folder / f"latencies-{rig.name}.png"
            made.append(picture.save(path, latencies(rig.label, written, best)))
    for device in dict.fromkeys(cell.device for cell in cells):
        shown = [cell for cell in in_order(cells) if cell.device == device]
        if len({cell.cpus for cell in shown}) > 1:
            made.append(picture.save(folder / f"scaling-{device}.png", scaling(device, shown)))
    return made


def has_writeback(cell: Cell) -> bool:
    """Say whether a cell is of stock or of ours, and not a bound."""
    return cell.variant not in BOUND_STYLES


def scaling(device: str, cells: list[Cell]) -> Figure:
    """Lines of MiB/s over CPUs: a panel per filesystem and limit.

    Stock, as many contexts as CPUs, each number of contexts that was measured wherever the guest has the
    CPUs for it, and the bounds.
    """
    panels = _groups(cells)
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
    _legend(figure, [axes for row in grid for axes in row])
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
    _legend(figure, [axes])
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
    _legend(figure, [axes])
    return figure


def differ_in_extents(cells: list[Cell]) -> bool:
    """Say whether the files of some settings have other numbers of extents than those of others."""
    return any(
        len({cell.extents.median for cell in group if cell.extents}) > 1
        for group in _groups(cell for cell in cells if has_writeback(cell)).values()
    )


def extents(device: str, cells: list[Cell], best: Sequence[Cell]) -> Figure:
    """Bars of the extents of the median file by filesystem, limit and setting."""
    figure, axes = _wide(cells)
    _groups_of(axes, cells, best, _bar, [cell.extents for cell in cells])
    axes.set_ylabel("extents of the median file")
    axes.set_title(f"Extents, device {device} (median; whiskers: min to max of the rounds)")
    _legend(figure, [axes])
    return figure


def dirty(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """Dirty pages over the time of one run, stock against parallel: a panel per filesystem and limit."""
    figure, grid = _panels(ran, best, dirty_series, ("s", "dirty + writeback, MiB"))
    for (_, limit), axes in grid.items():
        axes.axhline(limit or 0, color="#bbbbbb", linewidth=1, linestyle=":")
        axes.set_ylim(bottom=0)
    figure.suptitle(f"Dirty pages in the first round, device {device}")
    _legend(figure, list(grid.values()))
    return figure


def flushers(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """CPUs that flushers kept busy, over the time of one run: a panel per filesystem and limit."""
    title = f"Flushers in the first round, device {device}"
    return _over_time(title, ran, best, flusher_series, "CPUs busy with flushing")


def pauses(device: str, profiles: Sequence[tuple[Cell, Profile]], best: Sequence[Cell]) -> Figure:
    """Writers that are throttled, over the time of a profiled run: a panel per filesystem and limit."""
    title = f"Pauses of writers in a profiled round, device {device}"
    return _over_time(title, profiles, best, pause_series, "writers asleep")


def _over_time(
    title: str,
    ran: Sequence[tuple[Cell, Source]],
    best: Sequence[Cell],
    series: Callable[[Source], tuple[list[float], list[float]]],
    what: str,
) -> Figure:
    """Draw a line over seconds for each setting, from 0 on; as :func:`_panels`."""
    figure, grid = _panels(ran, best, series, ("s", what))
    for axes in grid.values():
        axes.set_ylim(bottom=0)
    figure.suptitle(title)
    _legend(figure, list(grid.values()))
    return figure


def latencies(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """Share of writes that take so long or longer, of one run; writers' pauses are on the right."""
    labels = ("latency of a write, µs", "share that takes so long or longer")
    figure, grid = _panels(ran, best, latency_series, labels, scale="log")
    figure.suptitle(f"Write latencies in the first round, device {device}")
    _legend(figure, list(grid.values()))
    return figure


def _panels(
    ran: Sequence[tuple[Cell, Source]],
    best: Sequence[Cell],
    series: Callable[[Source], tuple[list[float], list[float]]],
    labels: tuple[str, str],
    scale: Literal["linear", "log"] = "linear",
) -> tuple[Figure, dict[tuple[str, int | None], Axes]]:
    """Draw a line for each setting, in a panel per filesystem and limit.

    Args:
        ran: cells, each with what is left of a run, or its profile.
        best: the settings that are judged; the titles of their panels name them.
        series: returns what is drawn of that.
        labels: of both axes.
        scale: of both axes.
    """
    groups = _groups(cell for cell, _ in ran)
    filesystems = list(dict.fromkeys(fs for fs, _ in groups))
    limits = list(dict.fromkeys(limit for _, limit in groups))
    figure, grid = plt.subplots(
        len(limits), len(filesystems), squeeze=False, sharex="row", sharey="row", layout="constrained",
        figsize=(max(3.6 * len(filesystems), 6), 0.8 + 2.6 * len(limits)),
    )  # fmt: skip
    panels = {
        (fs, limit): grid[line][column]
        for line, limit in enumerate(limits)
        for column, fs in enumerate(filesystems)
    }
    for (fs, limit), axes in panels.items():
        named = "".join(f"\nbest: {cell.label}" for cell in groups.get((fs, limit), []) if cell in best)
        axes.set_title(f"{fs}, dirty limit {limit} MiB{named}", fontsize=10)
        axes.set(xscale=scale, yscale=scale)
        axes.grid(alpha=0.3)
        if limit == limits[-1]:
            axes.set_xlabel(labels[0])
        if fs == filesystems[0]:
            axes.set_ylabel(labels[1])
    for cell, one in ran:
        axes, look = panels[cell.fs, cell.dirty_limit_mib], Look.of(cell, best)
        axes.plot(*series(one), color=look.colour, linewidth=look.width, zorder=look.level, label=look.name)
    return figure, panels


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
    _legend(figure, [axes])
    return figure


def dirty_series(ran: Ran) -> tuple[list[float], list[float]]:
    """Return seconds and MiB of dirty and writeback pages while fio ran."""
    inside = [sample for sample in ran.run.samples if sample.t <= ran.run.fio_s]
    return [sample.t for sample in inside], [
        (sample.dirty + sample.writeback) * ran.raw.page_bytes / MIB for sample in inside
    ]


def flusher_series(ran: Ran) -> tuple[list[float], list[float]]:
    """Return seconds and the CPUs that flushers kept busy while fio ran; empty where they were not read."""
    inside = [sample for sample in ran.run.samples if sample.t <= ran.run.fio_s]
    points = flushers_over_time(inside, PIECES)
    return [second for second, _ in points], [cpus for _, cpus in points]


def pause_series(found: Profile) -> tuple[list[float], list[float]]:
    """Return the middle of each piece of a run, in seconds, and how many writers slept in it, on average."""
    piece_s = found.seconds / len(found.throttled)
    return [(number + 0.5) * piece_s for number in range(len(found.throttled))], found.throttled


def latency_series(ran: Ran) -> tuple[list[float], list[float]]:
    """Return latencies in microseconds, and the share of writes that take so long or longer."""
    bins = write_latencies_ns(read_fio(ran.fio_json))
    left, total = bins.total(), bins.total()
    shares = []
    for latency_ns in sorted(bins):
        shares.append(left / total)
        left -= bins[latency_ns]
    return [max(latency_ns / 1e3, LEAST_LATENCY_US) for latency_ns in sorted(bins)], shares


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
    for key, group in _groups(cell for cell in cells if has_writeback(cell)).items():
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


def _groups(cells: Iterable[Cell]) -> dict[tuple[str, int | None], list[Cell]]:
    found: dict[tuple[str, int | None], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.fs, cell.dirty_limit_mib), []).append(cell)
    return found


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
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
