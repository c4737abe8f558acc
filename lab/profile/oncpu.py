# SPDX-License-Identifier: GPL-2.0
"""What CPUs ran and where they spun, from the samples of a record."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from pydantic import BaseModel

from lab.profile import stacks
from lab.profile.flamegraph import Drawn
from lab.profile.record import MS_NS, RUNNING, Record, Windows, share
from lab.profile.stacks import Frames, Spin
from lab.profile.symbols import USER

_Key = TypeVar("_Key", bound=Hashable)

IN_USER, KERNEL, SPINNING = KINDS = ("user", "kernel", "spinning")


class Function(BaseModel):
    """A function that ran.

    Attributes:
        name: of the function.
        kind: ``user``, ``kernel`` or ``spinning``.
        self_ms: CPU time in it.
        share: that of the CPU time that was not idle.
        total_ms: CPU time in it and in what it called.
    """

    name: str
    kind: str
    self_ms: float
    share: float
    total_ms: float


class Spinning(BaseModel):
    """Where CPUs spun.

    Attributes:
        group: whose time: ``tasks`` (system calls and faults), ``flushers``, ``kernel threads`` ...
        primitive: the function that spins.
        who: the function that wants the lock.
        total_ms: CPU time.
        share: of the CPU time that was not idle.
    """

    group: str
    primitive: str
    who: str
    total_ms: float
    share: float


@dataclass(frozen=True)
class Sample:
    """CPU time in one stack.

    Attributes:
        frames: innermost first.
        group: of the stack.
        root: index of its root.
        spin: where it spins, None if it does not.
        ns: time.
    """

    frames: Frames
    group: str
    root: int
    spin: Spin | None
    ns: int

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        return SPINNING if self.spin else IN_USER if self.group == USER else KERNEL

    def drawn(self) -> Drawn:
        """Return the frames for a flame graph."""
        if self.group == USER:
            return [(USER, self.kind)], self.ns / MS_NS
        spins = self.frames.index(self.spin.primitive) if self.spin else -1
        kinds = [SPINNING if number <= spins else KERNEL for number in range(self.root + 1)]
        frames = zip(self.frames[self.root :: -1], reversed(kinds), strict=True)
        return [(self.group, "group"), *frames], self.ns / MS_NS


def samples(record: Record, named: Sequence[Frames], windows: Windows) -> list[Sample]:
    """Sum up the running samples within the windows by stack.

    Args:
        record: the record.
        named: its stacks.
        windows: times to look at.
    """
    is_inside = np.zeros(len(record.kind), dtype=bool)
    for first, last in windows:
        is_inside |= (record.time_ns >= first) & (record.time_ns <= last)
    is_inside &= record.kind == RUNNING
    key = record.stack[is_inside] * 2 + (record.b[is_inside] == 1)
    total = np.bincount(key, weights=record.a[is_inside].astype(np.float64))
    found = []
    for number in np.flatnonzero(total).tolist():
        frames = named[number // 2]
        group, root = stacks.group(frames)
        spin = stacks.spin(frames, is_pause=bool(number % 2))
        found.append(Sample(frames, group, root, spin, int(total[number])))
    return found


def by_kind(found: Sequence[Sample]) -> dict[str, int]:
    """Return the time of each of :data:`KINDS`."""
    return dict.fromkeys(KINDS, 0) | _sums((sample.kind, sample.ns) for sample in found)


def by_group(found: Sequence[Sample]) -> dict[str, int]:
    """Return the time of each group."""
    return _sums((sample.group, sample.ns) for sample in found)


def functions(found: Sequence[Sample]) -> list[Function]:
    """Return the functions, those with most time of their own first."""
    busy_ns = sum(sample.ns for sample in found)
    own = _sums(((sample.frames[0], sample.kind), sample.ns) for sample in found)
    total = _sums((name, sample.ns) for sample in found for name in set(sample.frames[: sample.root + 1]))
    listed = [
        Function(
            name=name, kind=kind, self_ms=ns / MS_NS, share=share(ns, busy_ns), total_ms=total[name] / MS_NS
        )
        for (name, kind), ns in own.items()
    ]
    return sorted(listed, key=lambda one: -one.self_ms)


def spins(found: Sequence[Sample]) -> list[Spinning]:
    """Return the places where CPUs spin, the longest first."""
    busy_ns = sum(sample.ns for sample in found)
    places = _sums(((one.group, one.spin), one.ns) for one in found if one.spin)
    listed = [
        Spinning(
            group=group,
            primitive=spin.primitive,
            who=spin.who,
            total_ms=ns / MS_NS,
            share=share(ns, busy_ns),
        )
        for (group, spin), ns in places.items()
    ]
    return sorted(listed, key=lambda one: -one.total_ms)


def _sums(pairs: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """Add up what belongs to the same key."""
    found: dict[_Key, int] = {}
    for key, ns in pairs:
        found[key] = found.get(key, 0) + ns
    return found
