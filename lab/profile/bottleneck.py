# SPDX-License-Identifier: GPL-2.0
"""What limits a run, from its profile: where the CPUs' time goes, and the lock most waited for."""

from __future__ import annotations

from collections import defaultdict

from pydantic import BaseModel

from lab.profile.summary import Profile

FUNCTIONS = 5
# What a task sleeps for and another task holds. It also sleeps to be slowed down, or for a device.
LOCKS = frozenset(
    {
        "mutex",
        "rwsem, read",
        "rwsem, write",
        "percpu rwsem",
        "semaphore",
        "rt mutex",
        "folio writeback",
        "folio lock",
        "folio",
        "buffer",
        "bit",
        "futex",
    }
)
# A lock of user space says nothing by the system call in which tasks wait for it.
OF_THE_JOB = "the job itself (futex)"


class Bottleneck(BaseModel):
    """What a run spends its time in.

    Attributes:
        shares: of all CPU time: ``user``, ``kernel`` (without spinning), ``spinning``, ``idle``.
        functions: the functions with most time of their own -> their share of the time that was not idle.
        lock: the function in which tasks wait most for another's lock, asleep or spinning, or
            :data:`OF_THE_JOB`; empty if none do.
        lock_tasks: how many wait there, on average.
    """

    shares: dict[str, float]
    functions: dict[str, float]
    lock: str
    lock_tasks: float


def bottleneck(profile: Profile) -> Bottleneck:
    """Pick from a profile what limits the run."""
    waited_ms: dict[str, float] = defaultdict(float)
    for wait in profile.waits:
        if wait.kind in LOCKS:
            waited_ms[OF_THE_JOB if wait.kind == "futex" else wait.who] += wait.total_ms
    for spin in profile.spins:
        waited_ms[spin.who] += spin.total_ms
    # A function that spins has its other time apart.
    shares: dict[str, float] = defaultdict(float)
    for one in profile.functions:
        shares[one.name] += one.share
    lock = max(waited_ms, key=lambda who: waited_ms[who], default="")
    return Bottleneck(
        shares=profile.shares,
        functions=dict(sorted(shares.items(), key=lambda one: one[1], reverse=True)[:FUNCTIONS]),
        lock=lock,
        lock_tasks=waited_ms[lock] / 1e3 / profile.seconds if lock and profile.seconds else 0,
    )
