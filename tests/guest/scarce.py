# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: a device and filesystems for calls that get no memory. Standard library only."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import Process
from pathlib import Path
from typing import NamedTuple

from tests.guest import agwb
from tests.guest.lab_device import flush

NAME = "scarce"
DEVICE = Path("/sys/kernel/config/labblk", NAME)
NODE = Path("/dev", NAME)
SIZE_MIB = 384
MOUNT = Path("/tmp", NAME)
CGROUPS = Path("/sys/fs/cgroup")
FAILURES = Path("/sys/kernel/debug")
TRACE = Path("/sys/kernel/tracing")
CONTEXTS = 8
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
# Workers write what grows old, not what somebody waits for. The first wakes all flushers when it changes.
WOKEN = {"dirty_writeback_centisecs": 2}
STILL, FLUSHING = {"dirty_expire_centisecs": 100_000}, {"dirty_expire_centisecs": 2}
# What failed allocations may come to; filesystems have other words for a mount that fails.
ERRORS = {"done", "Cannot allocate memory"}
# How a process of a cgroup ends that has True to say; Python's own words are 0 and 1.
TRUE = 3
SITE = re.compile(r"call_site=(\w+)")


class Outcome(NamedTuple):
    """What became of a call: whether an allocation failed, and whether the call did its work all the same."""

    has_failed: bool
    is_done: bool


class Program:
    """tests/guest/fail_nth.c.

    Attributes:
        failed: how many calls were made that had an allocation fail.
    """

    def __init__(self, path: str) -> None:
        """Name the program."""
        self._path = path
        self.failed = 0

    def write(self, path: Path, text: str, number: int) -> bool:
        """Write to a file, see call()."""
        return self.call(number, "write", path, text)

    def call(self, number: int | str, *words: object) -> bool:
        """Make a call whose allocation of this number fails; tell whether it makes so many."""
        return self.outcome(number, *words).has_failed

    def outcome(self, number: int | str, *words: object) -> Outcome:
        """Make a call whose allocation of this number fails, or "every" one; return what became of it."""
        said = subprocess.run(
            [self._path, str(number), *map(str, words)], check=True, capture_output=True, text=True
        ).stdout
        found = re.fullmatch(r"\w+ (failed|none): (.*)\n", said)
        if not found or (found[2] not in ERRORS and words[0] != "mount"):
            sys.exit(f"{words}: {said}")
        outcome = Outcome(found[1] == "failed", found[2] == "done")
        if not any(outcome):
            sys.exit(f"{words} fails though memory is there: {found[2]}")
        self.failed += outcome.has_failed
        return outcome


class Sites:
    """The functions of the kernel whose allocations from slabs fail."""

    def __init__(self) -> None:
        """Begin to follow them."""
        for name in ("kmalloc", "kmem_cache_alloc"):
            (TRACE / "events" / "kmem" / name / "filter").write_text("ptr == 0")
            (TRACE / "events" / "kmem" / name / "enable").write_text("1")

    def since(self) -> Counter[str]:
        """Return how often which has had one fail since the last time."""
        counts = Counter(SITE.findall((TRACE / "trace").read_text()))
        (TRACE / "trace").write_text("")
        return counts


def every_number(call: Callable[[int], bool]) -> None:
    """Have the first allocation fail, then the second, up to the last."""
    number = 1
    while call(number):
        number += 1


def bdi() -> Path:
    """Return the folder of the device's settings."""
    return Path("/sys/class/bdi") / Path("/sys/class/block", NAME, "dev").read_text().strip()


@contextlib.contextmanager
def device(program: Program) -> Iterator[None]:
    """Have the device, made without memory at first, and let any allocation fail that is asked to."""
    for name in ("failslab", "fail_page_alloc"):
        (FAILURES / name / "ignore-gfp-wait").write_text("N")
        (FAILURES / name / "verbose").write_text("0")
    (FAILURES / "fail_page_alloc" / "min-order").write_text("0")
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    flush(WOKEN)
    MOUNT.mkdir(exist_ok=True)
    DEVICE.mkdir()
    (DEVICE / "size_mib").write_text(str(SIZE_MIB))
    every_number(functools.partial(program.write, DEVICE / "power", "1"))
    # Its own memory it takes when something is first written, which is no business of who writes.
    fill = ["dd", "if=/dev/zero", f"of={NODE}", "bs=1M", f"count={SIZE_MIB}", "oflag=direct", "status=none"]
    subprocess.run(fill, check=True)
    yield
    DEVICE.rmdir()


def mount(fs: str, node: Path = NODE) -> None:
    """Mount the filesystem."""
    subprocess.run(["mount", "-t", fs, str(node), str(MOUNT)], check=True)


def umount() -> None:
    """Unmount it."""
    subprocess.run(["umount", str(MOUNT)], check=True)


def drop() -> None:
    """Keep nothing in memory that is on the device."""
    # What was used not long ago is dropped the second time.
    for _ in range(2):
        Path("/proc/sys/vm/drop_caches").write_text("3")


def read(path: Path) -> bytes:
    """Read a file, and leave it to others to dirty its inode first, which makes it one of their cgroup."""
    with open(os.open(path, os.O_RDONLY | os.O_NOATIME), "rb") as file:
        return file.read()


@contextlib.contextmanager
def mounted(fs: str, mode: str = "off") -> Iterator[None]:
    """Have a filesystem mounted on a device that has contexts for the taking, XFS with a mode."""
    subprocess.run([*MAKE[fs], str(NODE)], check=True)
    (bdi() / "nwritebacks").write_text(str(CONTEXTS))
    (bdi() / "wb_affinity").write_text("rotor")
    mount(fs)
    for name in agwb.CLASSES if fs == "xfs" else ():
        Path("/sys/fs/xfs", NAME, "writeback", name).write_text(mode)
    try:
        yield
    finally:
        umount()


def in_cgroup(group: Path, work: Callable[[], bool]) -> bool:
    """Do something in a process of a cgroup, and return what it returns."""

    def join_and_work() -> None:
        (group / "cgroup.procs").write_text("0")
        sys.exit(TRUE if work() else 0)

    process = Process(target=join_and_work)
    process.start()
    process.join()
    if process.exitcode not in (0, TRUE):
        sys.exit("a process of a cgroup failed, see above")
    return process.exitcode == TRUE


def tasks_of_flushers() -> Iterator[Path]:
    """Return the folders of the kernel's workers that may be flushers: those that are bound to no CPU."""
    for task in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().startswith("kworker/u"):
                yield task


@contextlib.contextmanager
def flushers_fail(number: int) -> Iterator[list[Path]]:
    """Have each flusher's allocation of this number fail; yields a list, at the end of those that made it."""
    tasks = list(tasks_of_flushers())
    failed: list[Path] = []
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            (task / "fail-nth").write_text(str(number))
    yield failed
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "fail-nth").read_text() == "0\n":
                failed.append(task)
            (task / "fail-nth").write_text("0")
