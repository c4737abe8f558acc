# SPDX-License-Identifier: GPL-2.0
"""What ``vtime.so`` recorded of a guest's CPUs in virtual time: samples, context switches, idle times.

A file is the magic and then records of 64-bit little-endian words: kind (u8), CPU (u8), depth (u16) and
the low half of the word at the top of the stack (u32, 0 unless that is in the kernel's text); time in ns;
a; b; and ``depth`` addresses, innermost first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.util.errors import LabError

Times = NDArray[np.int64]
# Begin and end of each time to look at, ns.
Windows = list[tuple[int, int]]

MAGIC = b"PWBVT001"
RUNNING, SWITCH, IDLE = 1, 2, 3
_HEAD_WORDS = 4
_WORD = 8
MS_NS, US_NS = 1e6, 1e3


@dataclass(frozen=True)
class Stack:
    """A stack that occurs at least once.

    Attributes:
        addresses: innermost first.
        is_sample: the first address is the one that ran; all others are return addresses.
        top: low half of the word at the top of the stack, 0 unless that is in the kernel's text.
    """

    addresses: tuple[int, ...]
    is_sample: bool
    top: int


@dataclass(frozen=True)
class Record:
    """All records of a file, one entry of each array for each.

    Attributes:
        kind: RUNNING, SWITCH or IDLE.
        cpu: number of the CPU.
        time_ns: virtual time.
        a: ns that a running sample stands for; task that leaves; ns halted until ``time_ns``.
        b: 1 for a sample of PAUSE; task that comes.
        stack: index into ``stacks``.
        stacks: each different stack once.
    """

    kind: Times
    cpu: Times
    time_ns: Times
    a: NDArray[np.uint64]
    b: NDArray[np.uint64]
    stack: Times
    stacks: list[Stack]

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a file; a last record that was cut off, as by a guest that was killed, is left out.

        Raises:
            LabError: no such file, or none of this format.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise LabError(f"{path}: expected what the guest's machine recorded: {error.strerror}") from None
        if not data.startswith(MAGIC):
            raise LabError(
                f"{path}: expected a record of a guest in virtual time, which begins with {MAGIC!r}"
            )
        body = data[len(MAGIC) : len(data) - len(data) % _WORD]
        starts, stack_of, stacks = _split(body, path)
        words = np.frombuffer(body, dtype="<u8")
        heads = words[np.array(starts, dtype=np.int64)[:, None] + np.arange(_HEAD_WORDS)]
        first = heads[:, 0].astype(np.int64)
        return cls(
            kind=first & 0xFF,
            cpu=(first >> 8) & 0xFF,
            time_ns=heads[:, 1].astype(np.int64),
            a=heads[:, 2],
            b=heads[:, 3],
            stack=np.array(stack_of, dtype=np.int64),
            stacks=stacks,
        )


def overlap(windows: Windows, begin: Times, end: Times) -> Times:
    """Return how much of each time from ``begin`` to ``end`` lies within the windows, in ns."""
    inside = np.zeros(len(begin), dtype=np.int64)
    for first, last in windows:
        inside += np.maximum(np.minimum(end, last) - np.maximum(begin, first), 0)
    return inside


def share(part: float, whole: float) -> float:
    """Return ``part`` as a share of ``whole``, 0 of nothing."""
    return part / whole if whole else 0.0


def _split(body: bytes, path: Path) -> tuple[list[int], list[int], list[Stack]]:
    """Find where each record starts, in words, and which stack it has."""
    view = memoryview(body)
    depths = view.cast("H")
    tops = view.cast("I")
    starts: list[int] = []
    stack_of: list[int] = []
    numbers: dict[tuple[bool, int, bytes], int] = {}
    at, size = 0, len(body) // _WORD
    while at + _HEAD_WORDS <= size:
        kind = view[at * _WORD]
        if kind not in (RUNNING, SWITCH, IDLE):
            raise LabError(
                f"{path}: expected a record of kind 1 to 3, found {kind} at byte {len(MAGIC) + at * _WORD}: "
                "it was written by another version, or is damaged; record again"
            )
        frames = at + _HEAD_WORDS
        end = frames + depths[at * 4 + 1]
        if end > size:
            break
        key = (kind == RUNNING, tops[at * 2 + 1], bytes(view[frames * _WORD : end * _WORD]))
        starts.append(at)
        stack_of.append(numbers.setdefault(key, len(numbers)))
        at = end
    stacks = [Stack(tuple(memoryview(words).cast("Q")), sample, top) for sample, top, words in numbers]
    return starts, stack_of, stacks
