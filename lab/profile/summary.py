# SPDX-License-Identifier: GPL-2.0
"""A guest's CPU time and waiting in figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from pydantic import BaseModel

from lab.profile import offcpu, oncpu
from lab.profile.offcpu import Sleep, Waiting
from lab.profile.oncpu import Function, Sample, Spinning
from lab.profile.record import IDLE, MS_NS, Record, Windows, overlap, share
from lab.profile.stacks import Departure

_Row = TypeVar("_Row", Function, Waiting, Spinning)

ROWS = 20
PIECES = 40
# A smaller share of what a table is about is left out of it.
LEAST_SHARE = 0.0005
# What lies at the edges of the window is not in the record.
UNSEEN = 0.03


class Profile(BaseModel):
    """What a guest did in a window of virtual time.

    Attributes:
        seconds: length of the window.
        cpus: CPUs that were seen.
        shares: of all CPU time: ``user``, ``kernel`` (without spinning), ``spinning``, ``idle``.
        groups: group -> its share of the CPU time that was not idle, spinning included.
        waiting_ms: time that tasks waited in the kernel, all together.
        host_ms: time that they waited for the host to read or write one of its files.
        ready_ms: time that tasks were preempted or gave way, and could have run on a further CPU.
        functions: those with most time of their own, at most :data:`ROWS`.
        waits: the longest, at most :data:`ROWS`.
        spins: the longest, at most :data:`ROWS`.
        throttled: how many writers the kernel throttled, on average, in each of :data:`PIECES` equal pieces
            of each time that is looked at; empty in old results.
        notes: what limits all this.
    """

    seconds: float
    cpus: int
    shares: dict[str, float]
    groups: dict[str, float]
    waiting_ms: float
    host_ms: float
    ready_ms: float
    functions: list[Function]
    waits: list[Waiting]
    spins: list[Spinning]
    throttled: list[float] = []
    notes: list[str]


def _largest(rows: list[_Row]) -> list[_Row]:
    return [row for row in rows if row.share >= LEAST_SHARE][:ROWS]


def windows(marks: Sequence[int], first_ns: int, last_ns: int) -> Windows:
    """Return the times to look at: between the marks, or all of the record without them.

    The agent marks the beginning and the end of the command. What the command marks itself lies between, in
    pairs, and is then all that counts.

    Args:
        marks: times of the marks, ascending.
        first_ns: begin of the record.
        last_ns: end of the record.
    """
    if len(marks) < 2:
        return [(marks[0] if marks else first_ns, last_ns)]
    inner = list(marks[1:-1] or marks)
    if len(inner) % 2:
        inner.append(marks[-1])
    return list(zip(inner[::2], inner[1::2], strict=True))


def summed_up(
    record: Record,
    chosen: Windows,
    ran: Sequence[Sample],
    slept: Sequence[Sleep],
    *,
    throttled: list[float],
    gaps: int,
) -> Profile:
    """Sum up what was recorded within the windows.

    Args:
        record: the record.
        chosen: times to look at.
        ran: the samples within them.
        slept: the time that tasks were off the CPUs within them.
        throttled: as of :class:`Profile`.
        gaps: context switches that the record lacks.
    """
    window_ns = sum(last - first for first, last in chosen)
    cpus = len(np.unique(record.cpu))
    is_idle = record.kind == IDLE
    until = record.time_ns[is_idle]
    ran_ns = sum(sample.ns for sample in ran)
    if is_idle.any():
        idle_ns = int(overlap(chosen, until - record.a[is_idle].astype(np.int64), until).sum())
    else:
        idle_ns = max(window_ns * cpus - ran_ns, 0)
    cpu_ns = ran_ns + idle_ns
    seen = share(cpu_ns, window_ns * cpus)
    notes = []
    if abs(seen - 1) > UNSEEN:
        notes.append(f"the record has {seen:.0%} of the CPUs' time; shares are of what it has")
    if gaps:
        notes.append(f"{gaps} context switches are missing in the record: waits may be too long")
    away_ns = dict.fromkeys(Departure, 0)
    for one in slept:
        away_ns[one.wait.departure] += one.ns
    waited = offcpu.waiting(slept)
    by_kind = oncpu.by_kind(ran) | {"idle": idle_ns}
    return Profile(
        seconds=window_ns / 1e9,
        cpus=cpus,
        shares={kind: share(ns, cpu_ns) for kind, ns in by_kind.items()},
        groups={group: share(ns, ran_ns) for group, ns in oncpu.by_group(ran).items()},
        waiting_ms=sum(one.total_ms for one in waited),
        host_ms=away_ns[Departure.HOST] / MS_NS,
        ready_ms=away_ns[Departure.READY] / MS_NS,
        functions=_largest(oncpu.functions(ran)),
        waits=_largest(waited),
        spins=_largest(oncpu.spins(ran)),
        throttled=[round(writers, 3) for writers in throttled],
        notes=notes,
    )
