# SPDX-License-Identifier: GPL-2.0
"""Draw what went on in one round: dirty pages, flushers and pauses over time, and latencies of writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.experiment.measure import flushers_over_time, latencies_ns
from lab.experiment.raw import Raw, RawRun
from lab.experiment.window import MIB
from lab.profile.summary import Profile
from lab.result.look import Look, groups, has_writeback, legend
from lab.result.results import Cell, read_fio, read_profile, read_raw
from lab.util import picture

#: Pieces that the time of a run is cut into, to show what its flushers did.
PIECES = 40
#: What is less tells nothing, and a logarithmic axis has no 0.
LEAST_LATENCY_US = 0.1

#: What a line over time is drawn of.
Source = TypeVar("Source")


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


def draw(folder: Path, device: tuple[str, str], cells: Sequence[Cell], best: Sequence[Cell]) -> list[Path]:
    """Write the plots of one device into the folder of its result and return their paths.

    Drawn are the settings whose raw data is there; where it is all gone, nothing is.

    Args:
        folder: of the result.
        device: name in the files', and label.
        cells: of the device.
        best: the settings that are judged.
    """
    name, label = device
    made: list[Path] = []
    ran = [(cell, one) for cell in cells if has_writeback(cell) and (one := Ran.of(cell, folder))]
    if ran:
        made.append(picture.save(folder / f"dirty-{name}.png", dirty(label, ran, best)))
        made.append(picture.save(folder / f"flushers-{name}.png", flushers(label, ran, best)))
    profiles = [
        (cell, of)
        for cell in cells
        if has_writeback(cell) and (of := read_profile(cell, folder)) and of.throttled
    ]
    if any(any(of.throttled) for _, of in profiles):
        made.append(picture.save(folder / f"pauses-{name}.png", pauses(label, profiles, best)))
    written = [(cell, one) for cell, one in ran if one.fio_json.exists()]
    if written:
        made.append(picture.save(folder / f"latencies-{name}.png", latencies(label, written, best)))
    return made


def dirty(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """Dirty pages over the time of one run, stock against parallel: a panel per filesystem and limit."""
    figure, grid = _panels(ran, best, dirty_series, ("s", "dirty + writeback, MiB"))
    for (_, limit), axes in grid.items():
        axes.axhline(limit or 0, color="#bbbbbb", linewidth=1, linestyle=":")
        axes.set_ylim(bottom=0)
    figure.suptitle(f"Dirty pages in the first round, device {device}")
    legend(figure, list(grid.values()))
    return figure


def flushers(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """CPUs that flushers kept busy, over the time of one run: a panel per filesystem and limit."""
    title = f"Flushers in the first round, device {device}"
    return _over_time(title, ran, best, flusher_series, "CPUs busy with flushing")


def pauses(device: str, profiles: Sequence[tuple[Cell, Profile]], best: Sequence[Cell]) -> Figure:
    """Writers that are throttled, over the time of a profiled run: a panel per filesystem and limit."""
    title = f"Pauses of writers in a profiled round, device {device}"
    return _over_time(title, profiles, best, pause_series, "writers asleep")


def latencies(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
    """Share of writes that take so long or longer, of one run; writers' pauses are on the right."""
    labels = ("latency of a write, µs", "share that takes so long or longer")
    figure, grid = _panels(ran, best, latency_series, labels, scale="log")
    figure.suptitle(f"Write latencies in the first round, device {device}")
    legend(figure, list(grid.values()))
    return figure


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
    legend(figure, list(grid.values()))
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
    found = groups(cell for cell, _ in ran)
    filesystems = list(dict.fromkeys(fs for fs, _ in found))
    limits = list(dict.fromkeys(limit for _, limit in found))
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
        named = "".join(f"\nbest: {cell.label}" for cell in found.get((fs, limit), []) if cell in best)
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
    bins = latencies_ns(read_fio(ran.fio_json), "write")
    left, total = bins.total(), bins.total()
    shares = []
    for latency_ns in sorted(bins):
        shares.append(left / total)
        left -= bins[latency_ns]
    return [max(latency_ns / 1e3, LEAST_LATENCY_US) for latency_ns in sorted(bins)], shares
