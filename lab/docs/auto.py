# SPDX-License-Identifier: GPL-2.0
"""Tables of what the kernel's own number of contexts comes to, and of what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.docs import measurements
from lab.docs.derived import PROFILE_HEADS, TITLES, one, profile_said
from lab.experiment.measure import FIGURES
from lab.result.results import Cell
from lab.util import markdown
from lab.util.grouping import grouped
from lab.util.progress import duration

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
#: CPUs of nearly all measurements; others are named.
CPUS = 8
DEVICES = {
    "brd": "RAM disk",
    "nvme": "NVMe drive",
    "sata": "SATA SSD",
    "network": "network volume",
    "disk": "rotating disk",
}


@dataclass(frozen=True)
class Found:
    """The kernel's own number of contexts, and what it is held against, on one device, CPUs and filesystem.

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
        """Name the load, the device, the CPUs and the filesystem."""
        return f"{self.load_and_machine}, {TITLES[self.auto.fs]}"

    @property
    def load_and_machine(self) -> str:
        """Name the load, the device and how many CPUs there are."""
        cpus = "" if self.auto.cpus == CPUS else f"{self.auto.cpus} CPUs"
        return ", ".join(filter(None, (self.load, DEVICES[self.auto.device], cpus)))


@dataclass(frozen=True)
class Asked:
    """What is asked of a figure of the kernel's own number.

    It is held against the best fixed number's (``of_best``) or stock's: the ratio is at least ``least``, at
    most ``most``.
    """

    figure: str
    of_best: bool = False
    least: float | None = None
    most: float | None = None

    def ratio(self, each: Found) -> float | None:
        """Return the ratio; None where the figure is not known of both, or zero."""
        ours, base = (
            getattr(cell, self.figure) for cell in (each.auto, each.best if self.of_best else each.stock)
        )
        return ours.median / base.median if ours and base and base.median else None

    def is_kept(self, ratio: float) -> bool:
        """Tell whether a ratio is as asked."""
        return (self.least is None or ratio >= self.least) and (self.most is None or ratio <= self.most)

    def is_missed(self, each: Found) -> bool:
        """Tell whether what was found is known not to be as asked."""
        ratio = self.ratio(each)
        return ratio is not None and not self.is_kept(ratio)


ASKED = (
    Asked("mib_s", least=0.99),
    Asked("mib_s", of_best=True, least=0.97),
    Asked("latency_p99_us", most=1.05),
    Asked("extents", most=1.01),
)


def names() -> list[str]:
    """List the measurements of the kernel's own number."""
    return [name for name in measurements.names() if name.startswith("auto-")]


def found_in(name: str) -> list[Found]:
    """Return what the kernel has found on each device, CPUs and filesystem of a measurement."""
    groups = grouped(lambda cell: (cell.device, cell.cpus, cell.fs), measurements.cells(name))
    return [
        Found(
            load=LOADS.get(name, ""),
            stock=one(of, variant="stock"),
            auto=one(of, variant="parallel", contexts=None),
            fixed=[cell for cell in of if cell.variant == "parallel" and cell.contexts],
        )
        for of in groups.values()
    ]


def _most_said(every: Sequence[Found]) -> str:
    """Name the number of contexts that is the CPUs'."""
    cpus = {each.auto.cpus for each in every}
    return f"{cpus.pop()} contexts" if len(cpus) == 1 else "a context per CPU"


def _fixed_said(every: Sequence[Found]) -> str:
    """Name the fixed numbers of contexts that were measured, if these are the same in all cells."""
    if len({each.auto.cpus for each in every}) > 1:
        return "the best fixed number of contexts"
    counts = sorted({cell.contexts or 0 for each in every for cell in each.fixed})
    said = " and ".join(filter(None, (", ".join(map(str, counts[:-1])), str(counts[-1]))))
    return f"the {'better' if len(counts) == 2 else 'best'} of {said} contexts"


def found(*names: str) -> str:
    """Return the table of what the kernel's own number of contexts comes to, by load, device and CPUs."""
    every = [each for name in names for each in found_in(name)]
    rows = []
    for place in dict.fromkeys(each.load_and_machine for each in every):
        columns: list[list[str]] = []
        for each in every:
            if each.load_and_machine == place:
                stock, auto = each.stock.mib_s.median, each.auto.mib_s.median
                most = one(each.fixed, contexts=each.auto.cpus).mib_s.median
                ratios = (most / stock, auto / stock, auto / each.best.mib_s.median)
                columns.append([f"{ratio:.2f}" for ratio in ratios])
        rows.append([place, *(", ".join(told) for told in zip(*columns, strict=True))])
    heads = (
        "XFS, ext4, F2FS",
        f"{_most_said(every)}, of stock",
        "`auto`, of stock",
        f"`auto`, of {_fixed_said(every)}",
    )
    return markdown.table(heads, rows, left=4)


def misses(*names: str) -> str:
    """Return the table of what is asked of the kernel's own number of contexts, and which cells miss it."""
    every = [each for name in names for each in found_in(name)]
    rows = []
    for asked in ASKED:
        ratios = {each.where: asked.ratio(each) for each in every}
        known = {where: ratio for where, ratio in ratios.items() if ratio is not None}
        # A digit more than what is asked: what is missed by little must not look kept.
        missed = [f"{where} {ratio:.3f}" for where, ratio in known.items() if not asked.is_kept(ratio)]
        bound = f"at least {asked.least}" if asked.most is None else f"at most {asked.most}"
        of = _fixed_said(every) if asked.of_best else "stock"
        said = f"{FIGURES[asked.figure].name}, {bound} of {of}"
        rows.append([said, f"{len(known) - len(missed)} of {len(known)}", "; ".join(missed) or "-"])
    return markdown.table(("asked of `auto`", "kept by", "missed by"), rows, left=3)


def profiles(*names: str) -> str:
    """Return the table of what the profiles show where the kernel's own number misses what is asked.

    A row each is stock, the kernel's own number and the fixed number that writes most; of measurements
    without profiles there is none.
    """
    rows = []
    for each in (each for name in names for each in found_in(name)):
        missed = [FIGURES[asked.figure].name for asked in ASKED if asked.is_missed(each)]
        where = f"{each.where}: {', '.join(dict.fromkeys(missed))}"
        for cell in (each.stock, each.auto, each.best) if missed else ():
            if cell.bottleneck:
                said = [cell.label, f"{cell.mib_s.median:.0f}", *profile_said(cell.bottleneck)]
                rows.append([where, *said])
                where = ""
    return markdown.table(("missed", "", "MiB/s", *PROFILE_HEADS), rows, left=2)


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
