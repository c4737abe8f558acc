# SPDX-License-Identifier: GPL-2.0
"""Tables of what the kernel's own number of contexts comes to, and of what is asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.docs import measurements
from lab.docs.derived import TITLES, one
from lab.experiment.measure import FIGURES
from lab.result.results import Cell
from lab.util import markdown
from lab.util.grouping import grouped
from lab.util.progress import duration

#: A figure, whether it is held against the best fixed number or against stock, and what is asked of the
#: ratio, at least and at most.
ASKED: tuple[tuple[str, bool, float | None, float | None], ...] = (
    ("mib_s", False, 0.99, None),
    ("mib_s", True, 0.97, None),
    ("latency_p99_us", False, None, 1.05),
    ("extents", False, None, 1.01),
)
#: Measurements of the kernel's own number under other loads than random overwrites, and what those are.
LOADS = {
    "auto-allocate": "random allocation",
    "auto-append": "appends with fsync",
    "auto-append-disk": "appends with fsync",
    "auto-cgroups": "two cgroups",
    "auto-reads": "reads beside writes",
    "auto-small": "small files",
    "auto-stream": "a stream",
    "auto-streams": "16 streams",
    "auto-unthrottled": "no writeback throttling",
}
DEVICES = {
    "brd": "RAM disk",
    "nvme": "NVMe drive",
    "sata": "SATA SSD",
    "network": "network volume",
    "disk": "rotating disk",
}


@dataclass(frozen=True)
class Found:
    """The kernel's own number of contexts, and what it is held against, on one device and filesystem.

    ``load`` is empty for plain random overwrites.
    """

    load: str
    stock: Cell
    auto: Cell
    fixed: Sequence[Cell]

    @property
    def best(self) -> Cell:
        """Return the fixed number that writes most."""
        return max(self.fixed, key=lambda cell: cell.mib_s.median)

    @property
    def where(self) -> str:
        """Name the load, the device and the filesystem."""
        return f"{self.load_and_device}, {TITLES[self.auto.fs]}"

    @property
    def load_and_device(self) -> str:
        """Name the load and the device."""
        return ", ".join(filter(None, (self.load, DEVICES[self.auto.device])))


def names() -> list[str]:
    """List the measurements of the kernel's own number."""
    return [name for name in measurements.names() if name.startswith("auto-")]


def found_in(name: str) -> list[Found]:
    """Return what the kernel has found on each device and filesystem of a measurement."""
    groups = grouped(lambda cell: (cell.device, cell.fs), measurements.cells(name))
    return [
        Found(
            load=LOADS.get(name, ""),
            stock=one(of, variant="stock"),
            auto=one(of, variant="parallel", contexts=None),
            fixed=[cell for cell in of if cell.variant == "parallel" and cell.contexts],
        )
        for of in groups.values()
    ]


def _fixed_said(every: Iterable[Found]) -> str:
    """Name the fixed numbers of contexts that were measured."""
    counts = sorted({cell.contexts or 0 for each in every for cell in each.fixed})
    said = " and ".join(filter(None, (", ".join(map(str, counts[:-1])), str(counts[-1]))))
    return f"the better of {said}" if len(counts) == 2 else f"the best of {said}"


def found(*names: str) -> str:
    """Return the table of what the kernel's own number of contexts comes to, by load and device."""
    every = [each for name in names for each in found_in(name)]
    rows = []
    for place in dict.fromkeys(each.load_and_device for each in every):
        columns: list[list[str]] = []
        for each in every:
            if each.load_and_device == place:
                stock, auto = each.stock.mib_s.median, each.auto.mib_s.median
                eight = one(each.fixed, contexts=8).mib_s.median
                ratios = (eight / stock, auto / stock, auto / each.best.mib_s.median)
                columns.append([f"{ratio:.2f}" for ratio in ratios])
        rows.append([place, *(", ".join(told) for told in zip(*columns, strict=True))])
    heads = (
        "XFS, ext4, F2FS",
        "8 contexts, of stock",
        "`auto`, of stock",
        f"`auto`, of {_fixed_said(every)} contexts",
    )
    return markdown.table(heads, rows, left=4)


def misses(*names: str) -> str:
    """Return the table of what is asked of the kernel's own number of contexts, and which cells miss it."""
    every = [each for name in names for each in found_in(name)]
    rows = []
    for figure, is_best, least, most in ASKED:
        ratios = {each.where: _of_base(each, figure, is_best=is_best) for each in every}
        known = {where: ratio for where, ratio in ratios.items() if ratio is not None}
        # A digit more than what is asked: what is missed by little must not look kept.
        missed = [
            f"{where} {ratio:.3f}"
            for where, ratio in known.items()
            if (least is not None and ratio < least) or (most is not None and ratio > most)
        ]
        bound = f"at least {least}" if most is None else f"at most {most}"
        of = f"{_fixed_said(every)} contexts" if is_best else "stock"
        said = f"{FIGURES[figure].name}, {bound} of {of}"
        rows.append([said, f"{len(known) - len(missed)} of {len(known)}", "; ".join(missed) or "-"])
    return markdown.table(("asked of `auto`", "kept by", "missed by"), rows, left=3)


def reads(name: str) -> str:
    """Return the table of what those get who read beside the writers: rate and p99 latency."""
    rows = []
    for each in found_in(name):
        eight = one(each.fixed, contexts=8)
        told = [_reads_said(cell) for cell in (each.stock, eight, each.auto)]
        rows.append([DEVICES[each.auto.device], TITLES[each.auto.fs], *told])
    heads = ("reads", "", "stock, MiB/s (p99)", "8 contexts", "`auto`")
    return markdown.table(heads, rows, left=2)


def _reads_said(cell: Cell) -> str:
    rate, p99 = cell.read_mib_s, cell.read_latency_p99_us
    return f"{rate.median:.0f} ({p99.median / 1e3:.1f} ms)" if rate and p99 else "-"


def took() -> str:
    """Return the table of how long measurements of the kernel's own number took."""
    rows = []
    for name in names():
        count, meta = len(measurements.cells(name)), measurements.meta(name)
        # Of a measurement that found part of its boots in the cache the time says nothing.
        is_noted = meta.seconds is not None and not meta.boots_from_cache
        took_s = duration(meta.seconds or 0) if is_noted else "not noted"
        cores = str(meta.host.cpus) if meta.host else "-"
        rows.append([f"`./pwb bench {name}`", str(count), cores, took_s])
    return markdown.table(("", "cells", "cores of the host", "took"), rows, left=1)


def _of_base(each: Found, figure: str, *, is_best: bool) -> float | None:
    """Return a figure of the kernel's own number as a multiple of stock's, or of the best fixed number's."""
    ours, base = (getattr(cell, figure) for cell in (each.auto, each.best if is_best else each.stock))
    return ours.median / base.median if ours and base and base.median else None
