# SPDX-License-Identifier: GPL-2.0
"""From what the guest read to the figures of a cell. Pure functions: no clock, no files."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from lab.experiment.figure import Figure, Kind
from lab.experiment.raw import Raw, RawRun, Sample
from lab.experiment.window import (
    MIB,
    between_amounts,
    cut,
    dirty_growth,
    jobs_began_s,
    mib_s,
    mib_s_in_parts,
    steady_window,
    written_bytes,
)
from lab.util.errors import LabError

V = TypeVar("V")

GIB = 1 << 30


class Spread(BaseModel):
    """Median, smallest and largest of the repetitions."""

    model_config = ConfigDict(frozen=True)

    median: float
    min: float
    max: float


class FiguresOf(BaseModel, Generic[V]):
    """The figures of a run, or over several runs: each is declared here, once.

    A figure that could not be had is None. ``mib_s`` is at the device. Latencies are fio's, of writes; None
    where the job wrote nothing. ``slowest_job_mib_s`` is what the slowest of fio's jobs wrote into the cache;
    None for a single job, or one that asks fio for group_reporting. ``read_mib_s`` is what all of fio's jobs
    read together; None where none reads, as ``read_latency_p99_us`` is. ``dirty_max_mib`` counts dirty pages
    and those under writeback together. ``dirty_growth_mib`` tells whether dirty pages still grew: of the
    means of the window's four quarters, the smallest rise from one to the next, times three, the number of
    rises; 0 or less if one of them fell, None without a steady window. ``cpu_busy`` is the share of all CPUs'
    time that was not idle. ``seconds`` is from when the jobs are at work until all they wrote is on the
    device; it says something about a job of a fixed size only. ``extents`` are the median file's,
    ``extents_sum`` those of all files. ``contexts_used`` is the number of writeback contexts when the job
    ended; None for a stock kernel.
    """

    mib_s: Annotated[V, Figure("throughput", "MiB/s", "MiB/s", ".0f", better="more", claim="throughput")]
    latency_mean_us: Annotated[
        V | None,
        Figure("mean latency", "µs", "mean µs", ".0f", better="less", is_cost=True, claim="latency"),
    ] = None
    latency_p99_us: Annotated[
        V | None, Figure("p99 latency", "µs", "p99 µs", ".0f", better="less", is_cost=True, claim="p99")
    ] = None
    flusher_cpu_s_per_gib: Annotated[
        V | None, Figure("flushers' CPU time per GiB", "s/GiB", "CPU s/GiB", better="less", is_cost=True)
    ] = None
    kworker_cpu_s_per_gib: Annotated[
        V | None, Figure("kworkers' CPU time per GiB", "s/GiB", better="less")
    ] = None
    cpu_busy: Annotated[V | None, Figure("CPUs busy", heading="CPUs busy", form=".0%")] = None
    slowest_job_mib_s: Annotated[V | None, Figure("slowest job", "MiB/s", better="more")] = None
    read_mib_s: Annotated[V | None, Figure("reads", "MiB/s", better="more")] = None
    read_latency_p99_us: Annotated[V | None, Figure("p99 latency of reads", "µs", better="less")] = None
    dirty_mib: Annotated[V | None, Figure("dirty pages", "MiB")] = None
    dirty_max_mib: Annotated[V | None, Figure("most dirty", "MiB", better="less")] = None
    dirty_growth_mib: Annotated[V | None, Figure("growth of dirty pages", "MiB")] = None
    writeback_mib: Annotated[V | None, Figure("pages under writeback", "MiB")] = None
    sync_s: Annotated[V | None, Figure("final sync", "s", "sync s", better="less", is_cost=True)] = None
    seconds: Annotated[V | None, Figure("time to the device", "s", better="less", claim="seconds")] = None
    extents: Annotated[V | None, Figure("extents", "", "extents", ".0f", better="less", is_cost=True)] = None
    # Claims are about all files together: steadier than the median file, and it sees the few that are worse.
    extents_sum: Annotated[
        V | None,
        Figure("extents of all files", form=".0f", better="less", claim="extents", ratio="more"),
    ] = None
    extents_before: Annotated[V | None, Figure("extents before")] = None
    contexts_used: Annotated[V | None, Figure("contexts in use")] = None


#: What is declared of each figure, by its name.
FIGURES = {
    name: one
    for name, field in FiguresOf.model_fields.items()
    for one in field.metadata
    if isinstance(one, Figure)
}
#: Those that a verdict on throughput is held against, and what to call them.
COSTS = {name: one.name for name, one in FIGURES.items() if one.is_cost}
#: The figure that each kind of claim is about.
ABOUT: dict[Kind, str] = {one.claim: name for name, one in FIGURES.items() if one.claim}


class Figures(FiguresOf[float]):
    """The figures of one run.

    ``parts_mib_s`` are the rates in the parts of the window. ``steady`` says that figures are from the steady
    window; otherwise the job was too short for one and the whole run counts, final sync included.
    """

    parts_mib_s: list[float] = []
    steady: bool

    @property
    def rates(self) -> Rates:
        """Return the rate, and those in the parts of the window."""
        return Rates(self.mib_s, self.parts_mib_s or [self.mib_s])


def figures(
    raw: Raw,
    run: RawRun,
    fio: dict[str, Any],
    *,
    ramp_s: float,
    window_s: float | None,
    between_mib: tuple[int, int] | None = None,
    from_device: bool = False,
    parts: int = 1,
) -> Figures:
    """Work out the figures of one run.

    Args:
        raw: the boot that the run belongs to.
        run: the run.
        fio: what fio wrote about it (``--output-format=json+``).
        ramp_s: seconds after the start of fio that are left out.
        window_s: seconds that count from then on; None: until fio ended.
        from_device: the ramp counts from when the device is first written to, not from the first dirty page.
        between_mib: what counts instead: from when so much has reached the device until so much has, in MiB.
        parts: pieces of equal length of a steady window, to tell how much the rate varies within it.

    Raises:
        LabError: no byte reached the device, or less than the amounts that count.
    """
    if between_mib:
        window, steady = between_amounts(run, *between_mib), True
    else:
        window, steady = steady_window(run, ramp_s, window_s, from_device=from_device)
    first, last = window[0], window[-1]
    written = written_bytes(window)
    if written <= 0:
        raise LabError(
            f"run {run.name}: the device counted no written byte in {last.t - first.t:.1f} s; "
            "expected a job that writes, on a device that keeps statistics"
        )
    mean, p99 = write_latency_us(fio)
    counts_time = steady and not between_mib
    growth = dirty_growth(window) if counts_time else None
    mib_per_page = raw.page_bytes / MIB
    return Figures(
        mib_s=mib_s(window),
        parts_mib_s=mib_s_in_parts(window, parts if counts_time else 1),
        steady=steady,
        flusher_cpu_s_per_gib=_per_gib(cpu_s(window, flushers_only=True), written),
        kworker_cpu_s_per_gib=_per_gib(cpu_s(window, flushers_only=False), written),
        cpu_busy=cpu_busy(window, raw.cpus),
        latency_mean_us=mean,
        latency_p99_us=p99,
        slowest_job_mib_s=slowest_job_mib_s(fio),
        read_mib_s=read_mib_s(fio),
        read_latency_p99_us=_p99_us(fio, "read"),
        dirty_mib=statistics.fmean(sample.dirty for sample in window) * mib_per_page,
        dirty_max_mib=max(sample.dirty + sample.writeback for sample in window) * mib_per_page,
        dirty_growth_mib=None if growth is None else growth * mib_per_page,
        writeback_mib=statistics.fmean(sample.writeback for sample in window) * mib_per_page,
        sync_s=run.sync_s,
        seconds=seconds_to_device(run),
        extents=statistics.median(run.extents.values()) if run.extents else None,
        extents_sum=sum(run.extents.values()) if run.extents else None,
        extents_before=statistics.median(raw.extents_before.values()) if raw.extents_before else None,
        contexts_used=run.contexts,
    )


def cpu_s(window: Sequence[Sample], *, flushers_only: bool) -> float | None:
    """Return the CPU seconds that kworkers spent in the window.

    Args:
        window: successive samples.
        flushers_only: only kworkers that were seen flushing at any sample of the window. A kworker serves
            every unbound work queue in turn, so what one of them did besides flushing counts as well.

    Returns:
        None where the guest kernel gave no CPU times.
    """
    steps = _cpu_ns(window, flushers_only=flushers_only)
    return None if steps is None else sum(steps) / 1e9


def flushers_over_time(samples: Sequence[Sample], parts: int) -> list[tuple[float, float]]:
    """Return how many CPUs the flushers kept busy, over time.

    Args:
        samples: successive samples.
        parts: into how many pieces of about equal length their time is cut.

    Returns:
        Of each piece the second in which it ends, and the mean number of CPUs; empty where the kernel gave
        no CPU times.
    """
    steps = _cpu_ns(samples, flushers_only=True)
    if steps is None:
        return []
    so_far = dict(zip((sample.t for sample in samples), [0, *itertools.accumulate(steps)], strict=True))
    ends = [(piece[0].t, piece[-1].t) for piece in cut(samples, parts)]
    return [(end, (so_far[end] - so_far[begin]) / 1e9 / (end - begin)) for begin, end in ends]


def _cpu_ns(window: Sequence[Sample], *, flushers_only: bool) -> list[int] | None:
    """Return the CPU time of kworkers between each two samples, in ns; None where it was not read."""
    found = []
    flushers = {pid for sample in window for pid, (flushing, _) in sample.kworkers.items() if flushing}
    for before, after in itertools.pairwise(window):
        spent_ns = 0
        for pid, (_, ns) in after.kworkers.items():
            if flushers_only and pid not in flushers:
                continue
            if ns is None:
                return None
            # A kworker that appeared since the last sample started from 0.
            spent_ns += ns - (before.kworkers[pid][1] or 0 if pid in before.kworkers else 0)
        found.append(spent_ns)
    return found


def cpu_busy(window: Sequence[Sample], cpus: int | None) -> float | None:
    """Return the share of the CPUs' time in the window that was not idle; None where it was not read."""
    begin, end = window[0], window[-1]
    if cpus is None or begin.idle_s is None or end.idle_s is None:
        return None
    return max(0.0, 1 - (end.idle_s - begin.idle_s) / (cpus * (end.t - begin.t)))


def write_latency_us(fio: dict[str, Any]) -> tuple[float | None, float | None]:
    """Return mean and 99th percentile of the latency of all jobs' writes, in microseconds.

    The mean is that of fio's ``lat`` (submission and completion). So is the percentile where fio was told to
    count it, else it is that of ``clat`` (completion), which is all of a write that waits for it. It is from
    the counts that fio keeps: the smallest latency that at least 99% of the writes do not exceed. The largest
    of the jobs' own percentiles would be that of whichever wrote least.
    """
    jobs = [job["write"] for job in fio["jobs"] if job["write"]["lat_ns"].get("N")]
    if not jobs:
        return None, None
    count = sum(job["lat_ns"]["N"] for job in jobs)
    mean_ns = sum(job["lat_ns"]["mean"] * job["lat_ns"]["N"] for job in jobs) / count
    return mean_ns / 1e3, _p99_us(fio, "write")


def latencies_ns(fio: dict[str, Any], kind: Literal["read", "write"]) -> Counter[int]:
    """Return how many reads or writes of all jobs took how long, as fio counts them.

    Args:
        fio: what fio wrote (``--output-format=json+``).
        kind: which of them; their ``lat`` counts, from submission on, or else their ``clat``.
    """
    bins: Counter[int] = Counter()
    for job in fio["jobs"]:
        of = job.get(kind, {})
        counted = of.get("lat_ns", {}).get("bins") or of.get("clat_ns", {}).get("bins", {})
        bins.update({int(ns): times for ns, times in counted.items()})
    return bins


def _p99_us(fio: dict[str, Any], kind: Literal["read", "write"]) -> float | None:
    bins = latencies_ns(fio, kind)
    return _percentile(bins, 0.99) / 1e3 if bins else None


def _percentile(bins: Counter[int], part: float) -> int:
    values = sorted(bins)
    so_many = itertools.accumulate(bins[value] for value in values)
    return next(value for value, seen in zip(values, so_many, strict=True) if seen >= part * bins.total())


def read_mib_s(fio: dict[str, Any]) -> float | None:
    """Return what all jobs read together, in MiB/s; None where none reads."""
    rates = [job["read"]["bw_bytes"] / MIB for job in fio["jobs"] if job.get("read", {}).get("bw_bytes")]
    return sum(rates) if rates else None


def slowest_job_mib_s(fio: dict[str, Any]) -> float | None:
    """Return the rate of the slowest of several jobs that write, in MiB/s at the page cache.

    A job that was to write, and has not come to it, is the slowest of all.

    Returns:
        None where only one job writes.
    """
    rates = [
        job["write"]["bw_bytes"] / MIB
        for job in fio["jobs"]
        if job["write"].get("bw_bytes") or _is_to_write(fio, job)
    ]
    return min(rates) if len(rates) > 1 else None


def _is_to_write(fio: dict[str, Any], job: dict[str, Any]) -> bool:
    """Say whether the options of a job, or those for all, have it write."""
    options = fio.get("global options", {}) | job.get("job options", {})
    # Only the names of what writes have a w in them: write, randwrite, rw, randrw, trimwrite.
    return "w" in options.get("rw", "read")


def seconds_to_device(run: RawRun) -> float | None:
    """Return the seconds from when the jobs are at work to the end of the final sync.

    Sections of a job that run one after the other all count, and so does what fio takes to end.

    Returns:
        None where the jobs have written next to nothing.
    """
    began_s = jobs_began_s(run)
    return run.fio_s - began_s + run.sync_s if began_s < run.fio_s else None


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return median, smallest and largest of the values there are; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(
        median=significant(statistics.median(known)), min=significant(min(known)), max=significant(max(known))
    )


@dataclass(frozen=True)
class Rates:
    """The rate of a run, and those in the parts of its window."""

    whole: float
    parts: list[float]


def rate_spread(rounds: Sequence[Rates | None]) -> Spread | None:
    """Return the median of the rounds, with the smallest and largest rate in any part; None without any."""
    whole = spread(one.whole for one in rounds if one)
    parts = spread(part for one in rounds if one for part in one.parts)
    if whole is None or parts is None:
        return None
    return Spread(median=whole.median, min=parts.min, max=parts.max)


def ratio(ours: Sequence[Rates | None], base: Sequence[Rates | None]) -> tuple[float | None, Spread | None]:
    """Compare repetitions with those of a base that were made in the same rounds.

    Args:
        ours: the rates of each round.
        base: the base's rates in the same round.

    Returns:
        The ratio of the medians, and the spread of the ratios round by round, part by part; None, None
        without a base.
    """
    own, other = rate_spread(ours), rate_spread(base)
    if own is None or other is None or other.median == 0:
        return None, None
    parts = [
        part / of
        for a, b in zip(ours, base, strict=False)
        if a is not None and b is not None
        for part, of in zip(a.parts, b.parts, strict=False)
        if of
    ]
    return significant(own.median / other.median), spread(parts)


def significant(value: float) -> float:
    """Round to 5 significant digits: more than the noise leaves, and a small file."""
    return float(f"{value:.5g}")


def _per_gib(seconds: float | None, written_bytes: int) -> float | None:
    return None if seconds is None else seconds / (written_bytes / GIB)
