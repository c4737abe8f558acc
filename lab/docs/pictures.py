# SPDX-License-Identifier: GPL-2.0
"""Pictures of pages, drawn of what is kept in measurements/.

They are SVG with text as text and without a date, so the same figures give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from lab.docs import auto, derived, measurements
from lab.docs.measurements import MEASUREMENTS
from lab.experiment.measure import Spread
from lab.result import plots, throttle
from lab.result.look import BOUND_STYLES
from lab.result.results import Cell

STOCK_COLOUR = "#8a8f98"
# Light to dark with the number of contexts: told apart without colour vision too.
CONTEXT_COLOURS = matplotlib.colormaps["Blues"]
PUBLISHED_COLOUR = "#d94801"
OURS_COLOUR = to_hex(CONTEXT_COLOURS(0.85))
BOUND_COLOUR = BOUND_STYLES["bdis"][0]


def over_cpus() -> Figure:
    """Lines of throughput over CPUs: stock, a context for each CPU, and flushers that share nothing."""
    cells = sorted(measurements.cells("scaling-overwrite"), key=lambda cell: cell.cpus)
    filesystems = [fs for fs in derived.TITLES if any(cell.fs == fs for cell in cells)]
    counts = sorted({cell.cpus for cell in cells})
    figure, panels = plt.subplots(1, len(filesystems), figsize=(9, 3.3), sharey=True, layout="constrained")
    for axes, fs in zip(panels, filesystems, strict=True):
        of = [cell for cell in cells if cell.fs == fs]
        stock = [cell for cell in of if cell.variant == "stock"]
        ours = [cell for cell in of if cell.variant == "parallel" and cell.contexts == cell.cpus]
        bound = [cell for cell in of if cell.variant == "bdis"]
        _line(axes, bound, BOUND_COLOUR, "--", "a device for each CPU (bound)")
        _line(axes, ours, OURS_COLOUR, "-", "a context for each CPU")
        _line(axes, stock, STOCK_COLOUR, "-", "stock")
        for cell, base in zip(ours, stock, strict=True):
            # With fewer CPUs the lines are all in one place.
            if cell.cpus >= 8:
                said = f"{cell.mib_s.median / base.mib_s.median:.1f} x"
                axes.annotate(
                    said, (cell.cpus, cell.mib_s.median), (3, -12), textcoords="offset points",
                    fontsize=8, color=OURS_COLOUR,
                )  # fmt: skip
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlabel("CPUs, a job each")
        axes.set_title(derived.TITLES[fs], fontsize=10)
        axes.margins(x=0.2)
        axes.grid(alpha=0.3)
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("MiB/s at the device")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def _line(axes: Axes, cells: Sequence[Cell], colour: str, style: str, label: str) -> None:
    """Draw throughput over CPUs, with the intervals of its means."""
    rates = [plots.rate(cell) for cell in cells]
    whiskers = [[rate.median - rate.min for rate in rates], [rate.max - rate.median for rate in rates]]
    axes.errorbar(
        [cell.cpus for cell in cells], [rate.median for rate in rates], yerr=whiskers,
        marker="o", markersize=4, capsize=2, color=colour, linestyle=style, label=label,
    )  # fmt: skip


def affinity() -> Figure:
    """Bars of even and skewed files, by number and by place."""
    cells = measurements.cells("skew")
    figure, axes = plt.subplots(figsize=(7.2, 3), layout="constrained")
    bars: dict[str, tuple[str, list[Spread]]] = {}
    filesystems = list(dict.fromkeys(cell.fs for cell in cells))
    for label, colour, asked in (
        ("stock, skewed", STOCK_COLOUR, {"variant": "stock", "layout": "skewed"}),
        ("ino, even", _blue(0), {"affinity": "ino", "layout": "even"}),
        ("ino, skewed", _blue(1), {"affinity": "ino", "layout": "skewed"}),
        ("fs, even", _blue(2), {"affinity": "fs", "layout": "even"}),
        ("fs, skewed", _blue(3), {"affinity": "fs", "layout": "skewed"}),
    ):
        bars[label] = (colour, [derived.one(cells, fs=fs, **asked).mib_s for fs in filesystems])
    _bars(axes, [derived.TITLES[fs] for fs in filesystems], bars)
    axes.set_ylabel("MiB/s at the device")
    axes.set_title("Eight files, 8 contexts (whiskers: min to max)", fontsize=10)
    _legend_beside(axes)
    return figure


def workers() -> Figure:
    """Bars by number of workers: one file blocked, and nothing blocked."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3), layout="constrained", width_ratios=(1, 2.2))
    cells = measurements.cells("blocked")
    _bars(left, [derived.TITLES[cells[0].fs]], _by_workers([cells]))
    left.set_title("one file blocked, 200 free", fontsize=10)
    left.set_ylabel("MiB/s at the device")
    free = [cell for cell in measurements.cells("workers") if cell.dirty_limit_mib == 1024]
    filesystems = list(dict.fromkeys(cell.fs for cell in free))
    grouped = [[cell for cell in free if cell.fs == fs] for fs in filesystems]
    _bars(right, [derived.TITLES[fs] for fs in filesystems], _by_workers(grouped))
    right.set_title("nothing blocked", fontsize=10)
    _legend_beside(right)
    return figure


def _by_workers(groups: Sequence[Sequence[Cell]]) -> dict[str, tuple[str, list[Spread]]]:
    """Gather bars of stock and each number of workers, of groups with the same settings."""
    shades = {None: STOCK_COLOUR, 1: _blue(0), 2: _blue(1), 4: _blue(2), 8: _blue(3)}
    return {
        derived.workers_said(column[0]): (shades[column[0].workers], [cell.mib_s for cell in column])
        for column in zip(*groups, strict=True)
    }


def throttled() -> Figure:
    """Lines of throughput and p99 latency over contexts, a line for each dirty limit."""
    cells = measurements.cells("throttle-even")
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3), layout="constrained")
    limits = sorted({cell.dirty_limit_mib for cell in cells if cell.dirty_limit_mib})
    counts = sorted({cell.contexts for cell in cells if cell.contexts})
    for axes, (figure_name, title) in zip(
        panels, (("mib_s", "throughput"), ("latency_p99_us", "p99 write latency")), strict=True
    ):
        for place, limit in enumerate(limits):
            means = [throttle.mean(cells, figure_name, limit, contexts) for contexts in counts]
            axes.plot(counts, means, marker="o", color=_blue(place), label=f"{limit} MiB")
        axes.axhline(1, color=STOCK_COLOUR, linestyle="--")
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlabel("contexts")
        axes.set_title(f"{title}, of stock", fontsize=10)
        axes.grid(alpha=0.3)
    panels[0].legend(title="dirty limit", fontsize=8, title_fontsize=8)
    return figure


def published() -> Figure:
    """Points of each claim but extents: how many times stock, as published and as measured."""
    shown = [
        claim
        for claim in derived.published_summary("published").comparisons
        if claim.kind != "extents" and claim.measured
    ]
    shown.sort(key=lambda claim: claim.id, reverse=True)
    figure, axes = plt.subplots(figsize=(7.2, 0.9 + 0.27 * len(shown)), layout="constrained")
    for place, claim in enumerate(shown):
        assert claim.measured is not None
        ends = (claim.published.ratio, claim.measured.ratio)
        axes.plot(ends, (place, place), color=STOCK_COLOUR, linewidth=1, zorder=1)
        for ratio, colour, label in zip(
            ends, (PUBLISHED_COLOUR, OURS_COLOUR), ("published", "measured here"), strict=True
        ):
            axes.scatter(ratio, place, color=colour, label=label if place == 0 else None, zorder=2)
    names = [f"{claim.id}, {claim.claim} ({derived.TITLES[claim.fs]})" for claim in shown]
    axes.set_yticks(range(len(shown)), names, fontsize=8)
    axes.axvline(1, color=STOCK_COLOUR, linestyle="--")
    axes.set_xlabel("gain, times stock (T2: times one context)")
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def auto_found() -> Figure:
    """Points of the kernel's own number by load, device and filesystem: of the best fixed one, of stock."""
    devices = list(auto.DEVICES)
    every = [each for name in auto.names() for each in auto.found_in(name)]
    every.sort(key=lambda each: (each.load, devices.index(each.auto.device), each.auto.cpus))
    names = [
        each.load_and_machine if each.load else f"random overwrites, {each.load_and_machine}"
        for each in every
    ]
    rows = list(dict.fromkeys(names))
    figure, (of_best, of_stock) = plt.subplots(
        1, 2, figsize=(8.2, 1.2 + 0.27 * len(rows)), layout="constrained", sharey=True
    )
    for place, (fs, marker) in enumerate(zip(derived.TITLES, "os^", strict=True)):
        of = [(name, each) for name, each in zip(names, every, strict=True) if each.auto.fs == fs]
        # Beside each other in their row, else those that are alike would hide each other.
        at = [rows.index(name) + 0.22 * (place - 1) for name, _ in of]
        for axes, bases in (
            (of_best, [each.best for _, each in of]),
            (of_stock, [each.stock for _, each in of]),
        ):
            ratios = [
                each.auto.mib_s.median / base.mib_s.median for (_, each), base in zip(of, bases, strict=True)
            ]
            axes.scatter(
                ratios, at, 18, marker=marker, color=_blue(place + 1), label=derived.TITLES[fs], zorder=2
            )
    [least] = [asked.least for asked in auto.ASKED if asked.figure == "mib_s" and asked.of_best]
    of_best.axvline(least, color=PUBLISHED_COLOUR, linestyle="--", label=f"asked: {least}", zorder=1)
    of_best.set_xlabel("of that of the best fixed number of contexts")
    of_stock.set_xscale("log")
    of_stock.set_xticks((1, 2, 3, 4, 6), ("1", "2", "3", "4", "6"))
    of_stock.minorticks_off()
    of_stock.set_xlabel("of that of stock")
    for axes in (of_best, of_stock):
        axes.axvline(1, color=STOCK_COLOUR, zorder=1)
        axes.grid(alpha=0.3)
    of_best.set_yticks(range(len(rows)), rows, fontsize=8)
    of_best.invert_yaxis()
    handles, labels = of_best.get_legend_handles_labels()
    figure.suptitle("Throughput of auto as a multiple", fontsize=10)
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    return figure


def ag_modes() -> Figure:
    """Bars of AG-aware writeback's modes: throughput of three jobs, extents of a fourth."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(7.2, 3.2), layout="constrained", width_ratios=(2.4, 1)
    )
    jobs = ("ag-overwrite", "ag-large", "t4-12-files-100us")
    every = [measurements.cells(job) for job in jobs]
    _bars(left, [derived.AG_JOBS[job].replace(", ", ",\n") for job in jobs], _by_mode(every, "mib_s"))
    left.set_title("throughput, of stock", fontsize=10)
    _bars(right, ["new blocks,\neach once"], _by_mode([measurements.cells("ag-extents")], "extents"))
    right.set_title("extents, of stock", fontsize=10)
    for axes in (left, right):
        axes.axhline(1, color=STOCK_COLOUR, linestyle="--")
    left.legend(fontsize=8)
    return figure


def _by_mode(groups: list[list[Cell]], name: str) -> dict[str, tuple[str, list[Spread]]]:
    """Gather bars of each mode as multiples of stock's median, a group for each measurement."""
    shown: dict[str, tuple[str, list[Spread]]] = {}
    for place, mode in enumerate(("off", *derived.AG_MODES)):
        multiples = []
        for cells in groups:
            base = getattr(derived.one(cells, variant="stock"), name).median
            ours = getattr(derived.one(cells, ag_mode=mode), name)
            multiples.append(Spread(median=ours.median / base, min=ours.min / base, max=ours.max / base))
        shown[mode] = (_blue(place), multiples)
    return shown


def _bars(axes: Axes, groups: list[str], bars: dict[str, tuple[str, list[Spread]]]) -> None:
    """Draw a bar for each group under each label, with whiskers from the smallest to the largest."""
    width = 0.8 / len(bars)
    for place, (label, (colour, values)) in enumerate(bars.items()):
        at = [group - 0.4 + width * (place + 0.5) for group in range(len(groups))]
        whiskers = [
            [value.median - value.min for value in values],
            [value.max - value.median for value in values],
        ]
        axes.bar(
            at, [value.median for value in values], width,
            yerr=whiskers, capsize=2, color=colour, label=label,
        )  # fmt: skip
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)


def _legend_beside(axes: Axes) -> None:
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _blue(place: int) -> str:
    """Return one of four shades, from light to dark."""
    return to_hex(CONTEXT_COLOURS(0.3 + 0.23 * place))


#: What draws each picture, by its place below measurements/.
PICTURES: dict[str, Callable[[], Figure]] = {
    "scaling-overwrite/over-cpus.svg": over_cpus,
    "skew/affinity.svg": affinity,
    "blocked/workers.svg": workers,
    "throttle-even/contexts.svg": throttled,
    "published/claims.svg": published,
    "ag-extents/modes.svg": ag_modes,
    "auto-overwrite/auto.svg": auto_found,
}


def drawn(name: str) -> bytes:
    """Draw a picture and return it as SVG.

    Args:
        name: in :data:`PICTURES`.
    """
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lab"}):
        figure = PICTURES[name]()
        made = io.BytesIO()
        figure.savefig(made, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    # Matplotlib ends some lines with a blank.
    lines = made.getvalue().decode().splitlines()
    return ("\n".join(line.rstrip() for line in lines) + "\n").encode()


def write() -> None:
    """Draw all pictures again."""
    for name in PICTURES:
        (MEASUREMENTS / name).write_bytes(drawn(name))
