# SPDX-License-Identifier: GPL-2.0
"""What tasks were off the CPUs for, and for how long, from the context switches of a record."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel

from lab.profile import stacks
from lab.profile.flamegraph import Drawn
from lab.profile.record import MS_NS, SWITCH, US_NS, Record, Times, Windows, overlap, share
from lab.profile.stacks import Departure, Frames, Wait


class Waiting(BaseModel):
    """What tasks slept for.

    Attributes:
        group: whose tasks: ``tasks`` (system calls and faults), ``flushers`` or ``kernel threads``.
        kind: the primitive, such as ``mutex``.
        who: the function that waits.
        count: how often.
        total_ms: time asleep of all tasks together, until they were on a CPU again.
        mean_us: of one wait.
        share: of all waiting.
    """

    group: str
    kind: str
    who: str
    count: int
    total_ms: float
    mean_us: float
    share: float


@dataclass(frozen=True)
class Absences:
    """Each time that a task was off the CPUs, one entry of each array.

    Attributes:
        stack: where it left, index into the record's stacks.
        left_ns: when.
        back_ns: when it was on a CPU again; the end of the record if it never was.
        gaps: switches that the record lacks.
    """

    stack: Times
    left_ns: Times
    back_ns: Times
    gaps: int


@dataclass(frozen=True)
class Sleep:
    """Time off the CPUs with one stack.

    Attributes:
        frames: innermost first.
        wait: what for.
        count: how often.
        ns: time, all together.
    """

    frames: Frames
    wait: Wait
    count: int
    ns: int

    def drawn(self) -> Drawn:
        """Return the frames for a flame graph."""
        group, root = stacks.group(self.frames)
        asleep = stacks.primitives(self.frames)
        kinds = ["waiting" if number < asleep else "kernel" for number in range(root + 1)]
        frames = zip(self.frames[root::-1], reversed(kinds), strict=True)
        return [(group, "group"), *frames], self.ns / MS_NS


def absences(record: Record) -> Absences:
    """Find how long each task was off the CPUs.

    A switch to a task and the next switch on that CPU, which is the one away from it, bound a time on the
    CPU. Times of one CPU are in order whatever the skew between CPUs, so this needs no order of the file.
    """
    switches = np.flatnonzero(record.kind == SWITCH)
    order = switches[np.lexsort((record.time_ns[switches], record.cpu[switches]))]
    if not len(order):
        none = np.zeros(0, dtype=np.int64)
        return Absences(none, none, none, 0)
    cpu, time, stack = record.cpu[order], record.time_ns[order], record.stack[order]
    leaves, comes = record.a[order], record.b[order]
    same_cpu = cpu[1:] == cpu[:-1]
    is_run = same_cpu & (leaves[1:] == comes[:-1])
    at = np.flatnonzero(is_run)
    # A task whose switch to the CPU, or away from it, is not in the record.
    only_left, only_came = ~np.r_[False, is_run], ~np.r_[is_run, False]
    is_first = ~np.r_[False, same_cpu]
    task = np.concatenate([comes[at], leaves[only_left], comes[only_came]])
    came = np.concatenate([time[at], np.where(is_first, -1, time)[only_left], time[only_came]])
    left = np.concatenate([time[at + 1], time[only_left], time[only_came]])
    left_at = np.concatenate([stack[at + 1], stack[only_left], np.full(only_came.sum(), -1)])
    by_task = np.lexsort((left, came, task))
    task, came, left, left_at = task[by_task], came[by_task], left[by_task], left_at[by_task]
    end = int(record.time_ns.max())
    again = np.r_[task[1:] == task[:-1], False]
    back = np.where(again, np.r_[came[1:], end], end)
    has_left = left_at >= 0
    gaps = int((same_cpu & ~is_run).sum())
    return Absences(left_at[has_left], left[has_left], np.maximum(back, left)[has_left], gaps)


def waits(record: Record, named: Sequence[Frames]) -> dict[int, Wait]:
    """Say for each stack of a switch, by its number, why the task left."""
    used = np.unique(record.stack[record.kind == SWITCH])
    return {number: stacks.wait(named[number]) for number in used.tolist()}


def marks(absent: Absences, why: dict[int, Wait]) -> list[int]:
    """Return the times of the agent's marks, ascending."""
    marked = [number for number, wait in why.items() if wait.departure is Departure.MARK]
    times: list[int] = absent.left_ns[np.isin(absent.stack, marked)].tolist()
    return sorted(times)


def sleeps(absent: Absences, named: Sequence[Frames], why: dict[int, Wait], windows: Windows) -> list[Sleep]:
    """Sum up the time off the CPUs within the windows by stack.

    Args:
        absent: from :func:`absences`.
        named: the record's stacks.
        why: from :func:`waits`.
        windows: times to look at.
    """
    inside = overlap(windows, absent.left_ns, absent.back_ns)
    counts = np.bincount(absent.stack[inside > 0], minlength=len(named))
    total = np.bincount(absent.stack, weights=inside, minlength=len(named))
    return [
        Sleep(named[number], why[number], int(counts[number]), int(total[number]))
        for number in np.flatnonzero(total).tolist()
    ]


def asleep(absent: Absences, why: dict[int, Wait], kind: str, windows: Windows, pieces: int) -> list[float]:
    """Return how many tasks waited for something, on average, in each of equal pieces of each window.

    Args:
        absent: from :func:`absences`.
        why: from :func:`waits`.
        kind: what they waited for, as in :class:`~lab.profile.stacks.Wait`.
        windows: times to look at.
        pieces: how many pieces to cut a window into.
    """
    waits_so = np.isin(absent.stack, [number for number, wait in why.items() if wait.kind == kind])
    left, back = absent.left_ns[waits_so], absent.back_ns[waits_so]
    means = []
    for first, last in windows:
        edges = [first + (last - first) * number // pieces for number in range(pieces + 1)]
        for begin, end in itertools.pairwise(edges):
            means.append(share(int(overlap([(begin, end)], left, back).sum()), end - begin))
    return means


def waiting(found: Sequence[Sleep]) -> list[Waiting]:
    """Return what tasks waited for, the longest first.

    Args:
        found: sleeps; those that are not waits for something in the kernel do not count.
    """
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for one in found:
        if one.wait.departure is Departure.WAITS:
            key = (stacks.group(one.frames)[0], one.wait.kind, one.wait.who)
            count, ns = sums.get(key, (0, 0))
            sums[key] = (count + one.count, ns + one.ns)
    all_ns = sum(ns for _, ns in sums.values())
    listed = [
        Waiting(
            group=group,
            kind=kind,
            who=who,
            count=count,
            total_ms=ns / MS_NS,
            mean_us=ns / count / US_NS,
            share=share(ns, all_ns),
        )
        for (group, kind, who), (count, ns) in sums.items()
    ]
    return sorted(listed, key=lambda one: -one.total_ms)
