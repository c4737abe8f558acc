# SPDX-License-Identifier: GPL-2.0
"""Which part of a run counts, and how much reached the device in it. Pure functions."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

import numpy as np

from guest.sampler import IDLE_SECTORS
from lab.experiment.raw import RawRun, Sample
from lab.util.errors import LabError

SECTOR_BYTES = 512
MIB = 1 << 20
# Less than this is not yet a job at work: a filesystem dirties a little of its own accord.
IDLE_PAGES = 256
# A window shorter than this says nothing about a steady state. Of a longer one that was asked for, what the
# job has left is more of a steady state than its whole run.
MIN_WINDOW_S = 1.0
# So much of a shorter window that was asked for has to be there.
MIN_SHARE = 0.9


def steady_window(
    run: RawRun, ramp_s: float, window_s: float | None, *, from_device: bool = False
) -> tuple[list[Sample], bool]:
    """Return the samples that count, and whether they are a steady window; a short job counts as a whole.

    The ramp counts from the first sample that shows the jobs at work, not from the start of fio, which takes
    its time; with ``from_device`` from the first that shows them at work on the device, as the guest counts
    which stops a job.
    """
    begin = jobs_began_s(run, from_device=from_device) + ramp_s
    end = run.fio_s if window_s is None else min(run.fio_s, begin + window_s)
    # Half a sampling interval of tolerance: the sample next to the wanted moment may be just before it. What
    # comes after fio has the final sync in it.
    step = _sampling_step(run.samples)
    last = min(end + step / 2, run.fio_s)
    inside = [sample for sample in run.samples if begin - step / 2 <= sample.t <= last]
    needed_s = MIN_WINDOW_S if window_s is None else min(MIN_WINDOW_S, MIN_SHARE * window_s)
    if window_s is not None and run.fio_s >= begin + window_s:
        # The jobs ran all through it: first and last sample may be half an interval off at either end.
        needed_s -= step
    if len(inside) > 1 and inside[-1].t - inside[0].t >= needed_s:
        return inside, True
    return run.samples, False


def between_amounts(run: RawRun, begin_mib: int, end_mib: int) -> list[Sample]:
    """Return the samples between two amounts written; first and last are interpolated to the very amounts.

    Args:
        run: the run.
        begin_mib: MiB that have reached the device at the first.
        end_mib: MiB that have reached it at the last.

    Raises:
        LabError: less than ``end_mib`` reached the device while the jobs ran.
    """
    begin, begin_index = _at_amount(run, begin_mib)
    end, end_index = _at_amount(run, end_mib)
    return [begin, *run.samples[begin_index:end_index], end]


def _at_amount(run: RawRun, mib: int) -> tuple[Sample, int]:
    """Return a sample as of when so much had reached the device, and the index of the first one after it.

    Time and sectors are interpolated, all else is of the sample after it.
    """
    base = sum(run.samples[0].sectors)
    reached = 0.0
    for index, sample in enumerate(run.samples):
        written = (sum(sample.sectors) - base) * SECTOR_BYTES / MIB
        # The final sync is not the jobs' work.
        if sample.t > run.fio_s:
            break
        if written > mib:
            before = run.samples[index - 1]
            part = (mib - reached) / (written - reached)
            sectors = [round(a + part * (b - a)) for a, b in zip(before.sectors, sample.sectors, strict=True)]
            t = before.t + part * (sample.t - before.t)
            return sample.model_copy(update={"t": t, "sectors": sectors}), index
        reached = written
    raise LabError(
        f"run {run.name}: {reached:.0f} MiB reached the device while the jobs ran, expected more than {mib} "
        "MiB (between_mib): give the jobs more time (window_s), or take less"
    )


def jobs_began_s(run: RawRun, *, from_device: bool = False) -> float:
    """Return the time of the last sample before anything was dirtied or written, in seconds.

    With ``from_device`` what was dirtied does not count.
    """
    first = run.samples[0]
    idle = [first.t]
    for sample in run.samples[1:]:
        has_dirtied = sample.dirty - first.dirty > IDLE_PAGES and not from_device
        if has_dirtied or sum(sample.sectors) - sum(first.sectors) > IDLE_SECTORS:
            break
        idle.append(sample.t)
    return idle[-1]


def cut(window: Sequence[Sample], parts: int) -> list[Sequence[Sample]]:
    """Cut a window into pieces of about equal length, at samples; neighbours share one.

    There are fewer than ``parts`` where there are too few samples.
    """
    begin, end = window[0].t, window[-1].t
    wanted = [begin + (end - begin) * part / parts for part in range(parts + 1)]
    places = sorted({min(range(len(window)), key=lambda i: abs(window[i].t - t)) for t in wanted})
    return [window[first : last + 1] for first, last in itertools.pairwise(places)]


def written_bytes(window: Sequence[Sample]) -> int:
    """Return the bytes that reached the device in a window."""
    return (sum(window[-1].sectors) - sum(window[0].sectors)) * SECTOR_BYTES


def mib_s(window: Sequence[Sample]) -> float:
    """Return the rate at the device in a window, in MiB/s."""
    return written_bytes(window) / MIB / (window[-1].t - window[0].t)


def mib_s_in_parts(window: Sequence[Sample], parts: int) -> list[float]:
    """Return the rates at the device in pieces of equal length of a window, in MiB/s; their mean is the rate.

    Between two samples what was written grows steadily. There are fewer than ``parts`` where there are too
    few samples, or pieces would be one another's interpolation.
    """
    times = [sample.t for sample in window]
    ends = np.linspace(times[0], times[-1], min(parts, len(window) - 1) + 1)
    written = np.interp(ends, times, [sum(sample.sectors) * SECTOR_BYTES / MIB for sample in window])
    rates: list[float] = (np.diff(written) / np.diff(ends)).tolist()
    return rates


def dirty_growth(window: Sequence[Sample]) -> float | None:
    """Return by how many pages the dirty ones rose all through a window; None with few samples.

    Of the means of its four quarters it is the smallest rise from one to the next, times three, the number of
    rises. Dirty pages that swing about a level fall in one of them; while they climb towards the limit they
    do not.
    """
    quarter = len(window) // 4
    if not quarter:
        return None
    means = [
        statistics.fmean(sample.dirty for sample in window[number * quarter :][:quarter])
        for number in range(4)
    ]
    return 3 * min(after - before for before, after in itertools.pairwise(means))


def _sampling_step(samples: Sequence[Sample]) -> float:
    gaps = [after.t - before.t for before, after in itertools.pairwise(samples)]
    return statistics.median(gaps) if gaps else 0.0
