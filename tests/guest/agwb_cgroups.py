# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: workers write for several cgroups, and none waits for another's budget.

``python -m tests.guest.agwb_cgroups CONTEXTS`` from the repository's folder. Standard library only.

A cgroup overwrites a file, of which its controller lets little through. Then the root cgroup, which has no
limit, overwrites another file of the same allocation group. Only flushers write. The second file has to be
clean while most of the first one is not, which would take an hour; then the limit is lifted.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.guest.agwb import LIBC, MODES, Case
from tests.guest.lab_device import MOUNT, NAME, NODE, SETTLE_S, device, fail, flush, settle
from tests.guest.resize import CGROUPS, finish, start
from tests.guest.versioned import File

ATTRIBUTES = {"size_mib": 192, "queues": 2, "channels": 8}
FLUSHING = {
    "dirty_writeback_centisecs": 5,
    "dirty_expire_centisecs": 10,
    "dirty_bytes": 1 << 29,
    "dirty_background_bytes": 1 << 20,
}
PROVE_LOCKING = Path("/proc/sys/kernel/prove_locking")
SLOW = CGROUPS / "slow"
VICTIM = CGROUPS / "victim"
# This takes more than an hour, and the least that a worker has of it, a MiB, longer than SETTLE_S by far. A
# flusher begins with more than half of it.
SLOW_PAGES = 8192
SLOW_BYTES_PER_S = 8 << 10
# The command that waits when the limit is lifted: a second's worth.
COMMAND_KIB = SLOW_BYTES_PER_S >> 10
FREE_PAGES = 2048

CACHESTAT = 451


class Range(ctypes.Structure):
    """struct cachestat_range."""

    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class Cached(ctypes.Structure):
    """struct cachestat."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently")
    )


def unwritten(file: File) -> tuple[int, int]:
    """Return how many pages of a file are dirty, and how many are being written."""
    found = Cached()
    with file.open(os.O_RDONLY) as fd:
        if LIBC.syscall(CACHESTAT, fd, ctypes.byref(Range(0, 0)), ctypes.byref(found), 0):
            fail(f"cachestat: {os.strerror(ctypes.get_errno())}")
    return found.dirty, found.writeback


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """Wait for something that has to come."""
    end = time.monotonic() + SETTLE_S
    while not holds():
        if time.monotonic() > end:
            fail(f"{what}: not so after {SETTLE_S} s")
        time.sleep(0.01)


def number() -> str:
    """Return MAJ:MIN of the device."""
    status = os.stat(NODE)
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def set_cost(name: str, values: str) -> None:
    """Set the cost controller of the device; its two files lock a queue in different orders, in stock too."""
    PROVE_LOCKING.write_text("0")
    (CGROUPS / name).write_text(f"{number()} {values}")
    PROVE_LOCKING.write_text("1")


@contextmanager
def cost() -> Iterator[None]:
    """Limit by the cost model: tasks sleep in submission."""
    model = {"rbps": 1 << 30, "rseqiops": 1 << 20, "rrandiops": 1 << 20, "wbps": SLOW_BYTES_PER_S}
    model |= {"wseqiops": 1 << 20, "wrandiops": 1 << 20}
    values = " ".join(f"{name}={value}" for name, value in model.items())
    set_cost("io.cost.model", f"ctrl=user model=linear {values}")
    set_cost("io.cost.qos", "enable=1 ctrl=user rpct=0 wpct=0 min=100 max=100")
    yield
    set_cost("io.cost.qos", "enable=0")


@contextmanager
def maximum() -> Iterator[None]:
    """Limit by io.max: what the cgroup submits waits."""
    (SLOW / "io.max").write_text(f"{number()} wbps={SLOW_BYTES_PER_S}")
    yield
    (SLOW / "io.max").write_text(f"{number()} wbps=max")


def write_directly(path: Path) -> None:
    """Write without the cache, for ever, in a cgroup whose I/O never is as fast as it asks for."""
    (VICTIM / "cgroup.procs").write_text("0")
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 1 << 20)
    command = ["dd", "if=/dev/zero", f"of={path}", "bs=4k", "count=256", "oflag=direct", "conv=notrunc"]
    while True:
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


@contextmanager
def latency() -> Iterator[None]:
    """Protect another cgroup: who else writes has few commands and sleeps for one in submission."""
    VICTIM.mkdir()
    (VICTIM / "io.latency").write_text(f"{number()} target=1")
    process = start(write_directly, MOUNT / "victim")
    yield
    process.kill()
    process.join()
    (VICTIM / "cgroup.kill").write_text("1")
    wait_until("the cgroup is empty", lambda: not (VICTIM / "cgroup.procs").read_text())
    VICTIM.rmdir()


def write(file: File, group: Path | None = None) -> None:
    """Write the next version of every page, in a cgroup."""
    if group:
        (group / "cgroup.procs").write_text("0")
    with file.open() as fd:
        for page in range(file.most_pages):
            file.write(fd, page)


def in_group(file: File, group: Path) -> None:
    """Have a process of a cgroup write a file."""
    finish([start(write, file, group)])


def overtakes(case: Case, slow: File, free: File) -> None:
    """Have the file without a limit dirtied second and written first."""
    in_group(slow, SLOW)
    is_overtaken(slow, free)


def overtakes_in_a_worker(case: Case, slow: File, free: File) -> None:
    """Have the file without a limit written first although a worker sleeps over the slow one."""
    in_group(slow, SLOW)
    if case.mode != "off":
        wait_until("a worker has a pass of the slow file", lambda: case.counters()["out"] > 0)
    is_overtaken(slow, free)


def is_overtaken(slow: File, free: File) -> None:
    """Have a file written while another one is under way."""
    wait_until("the slow file is being written", lambda: unwritten(slow)[1] > 0)
    write(free)
    wait_until("the file without a limit is written", lambda: not any(unwritten(free)))
    if sum(unwritten(slow)) < SLOW_PAGES // 2:
        fail("the file without a limit had to wait for the slow one")


def both_are_written(case: Case, slow: File, free: File) -> None:
    """Have both written, in any order: who is let through depends on how fast the device was."""
    dirty(slow, free)
    wait_until("both are written", lambda: not any(unwritten(slow) + unwritten(free)))


def dirty(slow: File, free: File) -> None:
    """Write both files."""
    in_group(slow, SLOW)
    write(free)


Limit = Callable[[], AbstractContextManager[None]]
LIMITS: dict[Limit, Callable[[Case, File, File], None]] = {
    cost: overtakes_in_a_worker,
    maximum: overtakes,
    latency: both_are_written,
}


def share(mode: str, contexts: int, limit: Limit) -> None:
    """Let both cgroups write, with one mode and one controller."""
    slow, free = File(0, SLOW_PAGES), File(1, FREE_PAGES)
    with device(ATTRIBUTES):
        case = Case(mode)
        case.all = [slow, free]
        Path("/sys/class/bdi", number(), "nwritebacks").write_text(str(contexts))
        Path("/sys/block", NAME, "queue/max_sectors_kb").write_text(str(COMMAND_KIB))
        # Files of one directory begin in one allocation group.
        for file in case.all:
            file.path = MOUNT / f"file{file.number}"
        dirty(slow, free)
        settle()
        # After this no file has a round from before, and a flusher's first call for it hands it over.
        case.set_mode("off")
        dirty(slow, free)
        settle()
        case.set_mode(mode)
        with limit():
            LIMITS[limit](case, slow, free)
        settle()
        case.conclude()


def main(contexts: int) -> None:
    """Go through all modes and controllers."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    SLOW.mkdir()
    for mode in MODES:
        for limit in LIMITS:
            share(mode, contexts, limit)
            print(f"{mode} {limit.__name__}: as it should be", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
