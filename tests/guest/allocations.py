# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: no memory, at every place where there might be none.

``python -m tests.guest.allocations FAIL_NTH``, the program tests/guest/fail_nth.c. Each call that makes
contexts, writebacks of cgroups or modes is made over and over, and of its allocations the first fails, then
the second, until it makes no more; so it is with the flushers. Whatever such a call says, the same call works
afterwards, and what was written is there. Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.guest import agwb
from tests.guest.kernel_log import Log
from tests.guest.lab_device import flush, settle

NAME = "scarce"
DEVICE = Path("/sys/kernel/config/labblk", NAME)
NODE = Path("/dev", NAME)
MOUNT = Path("/tmp", NAME)
CGROUPS = Path("/sys/fs/cgroup")
FAILURES = Path("/sys/kernel/debug")
CONTEXTS = 8
# Of AG-aware writeback, those that allocate.
MODES = tuple(mode for mode in agwb.MODES if mode != "off")
COUNTERS = Path("/sys/kernel/debug/xfs", NAME, "writeback")
# Flushers do not say when they have made their last allocation; most are made by then.
FLUSHERS_NUMBERS = 9
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


class Program:
    """tests/guest/fail_nth.c."""

    def __init__(self, path: str) -> None:
        """Name the program."""
        self._path = path
        self.failed = 0

    def write(self, path: Path, text: str, number: int) -> bool:
        """Write to a file, see call()."""
        return self.call(number, "write", path, text)

    def call(self, number: int, *words: object) -> bool:
        """Make a call whose allocation of this number fails; tell whether it makes so many."""
        said = subprocess.run(
            [self._path, str(number), *map(str, words)], check=True, capture_output=True, text=True
        ).stdout
        found = re.fullmatch(r"\d+ (failed|none): (.*)\n", said)
        if not found or (found[2] not in ERRORS and words[0] != "mount"):
            sys.exit(f"{words}: {said}")
        has_failed = found[1] == "failed"
        if not has_failed and found[2] != "done":
            sys.exit(f"{words} fails though memory is there: {found[2]}")
        self.failed += has_failed
        return has_failed


def every_number(call: Callable[[int], bool]) -> None:
    """Have the first allocation fail, then the second, up to the last."""
    number = 1
    while call(number):
        number += 1


def device() -> None:
    """Make the device."""
    DEVICE.mkdir()
    (DEVICE / "size_mib").write_text("384")


def bdi() -> Path:
    """Return the folder of the device's settings."""
    return Path("/sys/class/bdi") / Path("/sys/class/block", NAME, "dev").read_text().strip()


@contextlib.contextmanager
def mounted(fs: str, mode: str = "off") -> Iterator[None]:
    """Have a filesystem mounted on a device that has contexts for the taking, XFS with a mode."""
    subprocess.run([*MAKE[fs], str(NODE)], check=True)
    (bdi() / "nwritebacks").write_text(str(CONTEXTS))
    (bdi() / "wb_affinity").write_text("rotor")
    subprocess.run(["mount", "-t", fs, str(NODE), str(MOUNT)], check=True)
    for name in agwb.CLASSES if fs == "xfs" else ():
        Path("/sys/fs/xfs", NAME, "writeback", name).write_text(mode)
    try:
        yield
    finally:
        subprocess.run(["umount", str(MOUNT)], check=True)


def settings(program: Program, fs: str) -> None:
    """Write every setting."""
    with mounted(fs):
        values = [(bdi() / name, text) for name, text in (("nwritebacks", "2"), ("wb_workers", "3"))]
        values += [(bdi() / "wb_affinity", "ino"), (bdi() / "nwritebacks", "auto")]
        if fs == "xfs":
            folder = Path("/sys/fs/xfs", NAME)
            values += [(folder / "writeback" / name, mode) for name in agwb.CLASSES for mode in MODES]
            values += [(folder / "write_streams" / "software", "3")]
        for path, text in values:
            every_number(functools.partial(program.write, path, text))


def inodes(program: Program, fs: str) -> None:
    """Dirty the first inode of contexts, in the root cgroup and in a new one for each number."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")

    def dirty(number: int) -> bool:
        group = CGROUPS / f"group{number}"
        group.mkdir()
        path = MOUNT / f"file{number}"
        child = os.fork()
        if not child:
            (group / "cgroup.procs").write_text("0")
            more = [program.call(number, "dirty", f"{path}-{index}") for index in range(CONTEXTS)]
            os._exit(2 if any(more) else 0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        group.rmdir()
        if status not in (0, 2):
            sys.exit("a process of a cgroup failed, see above")
        program.failed += status == 2
        for index in range(CONTEXTS):
            Path(f"{path}-{index}").write_bytes(path.name.encode())
        return status == 2

    # A page that is written gets a hint then.
    with mounted(fs, "ag-hint"):
        every_number(dirty)
        subprocess.run(["sync", "-f", str(MOUNT)], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("3")
        for path in MOUNT.glob("file*"):
            if path.read_bytes() != path.name.rpartition("-")[0].encode():
                sys.exit(f"{path} holds something else")


def flushers(program: Program, fs: str) -> None:
    """Write back with all helpers that there are, none of which can be had at first."""
    data = os.urandom(8 << 20)
    modes = MODES if fs == "xfs" else ("off",)
    written: Counter[str] = Counter()
    for number, mode in itertools.product(range(1, FLUSHERS_NUMBERS), modes):
        with mounted(fs, mode):
            (bdi() / "wb_workers").write_text("4")
            flush(STILL)
            paths = [MOUNT / str(name) for name in range(4)]
            for path in paths:
                path.write_bytes(data)
            fails = list(tasks_of_flushers())
            for task in fails:
                (task / "fail-nth").write_text(str(number))
            flush(FLUSHING)
            if fs == "f2fs":
                # Its nodes stay dirty until a checkpoint. It may say that not everything was written.
                subprocess.run(["sync", "-f", str(MOUNT)], check=False, capture_output=True)
            settle()
            if fs == "xfs":
                # One whose round found no memory has written nothing; another has.
                written.update({mode: agwb.passes(COUNTERS)})
            for task in fails:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    program.failed += (task / "fail-nth").read_text() == "0\n"
                    (task / "fail-nth").write_text("0")
            for path in paths:
                path.write_bytes(data)
            subprocess.run(["sync", "-f", str(MOUNT)], check=True)
            Path("/proc/sys/vm/drop_caches").write_text("3")
            if any(path.read_bytes() != data for path in paths):
                sys.exit("a file holds something else")
    if fs == "xfs" and not all(written[mode] for mode in modes):
        sys.exit(f"workers of AG-aware writeback have written nothing in a mode: {dict(written)}")


def tasks_of_flushers() -> Iterator[Path]:
    """Return the folders of the kernel's workers that may be flushers: those that are bound to no CPU."""
    for task in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().startswith("kworker/u"):
                yield task


def mounts(program: Program, fs: str) -> None:
    """Mount XFS, which has settings of ours; ext4 without memory warns of its own accord, as stock does."""
    if fs != "xfs":
        return
    subprocess.run([*MAKE[fs], str(NODE)], check=True)

    def mount(number: int) -> bool:
        more = program.call(number, "mount", NODE, MOUNT, fs)
        if os.path.ismount(MOUNT):
            subprocess.run(["umount", str(MOUNT)], check=True)
        return more

    every_number(mount)


def main() -> int:
    """Do all that for every filesystem."""
    for name in ("failslab", "fail_page_alloc"):
        (FAILURES / name / "ignore-gfp-wait").write_text("N")
        (FAILURES / name / "verbose").write_text("0")
    (FAILURES / "fail_page_alloc" / "min-order").write_text("0")
    log = Log()
    flush(WOKEN)
    MOUNT.mkdir(exist_ok=True)
    program = Program(sys.argv[1])
    device()
    every_number(functools.partial(program.write, DEVICE / "power", "1"))
    for fs in MAKE:
        for part in (settings, inodes, flushers, mounts):
            program.failed = 0
            with log.only_reports():
                part(program, fs)
            print(f"{fs}, {part.__name__}: {program.failed} allocations failed", flush=True)
    DEVICE.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
