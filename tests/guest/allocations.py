# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: no memory, at every place where there might be none.

``python -m tests.guest.allocations FAIL_NTH FS``, the program tests/guest/fail_nth.c. Each call that makes
contexts, writebacks of cgroups or modes is made over and over, and of its allocations the first fails, then
the second, until it makes no more; so it is with the flushers. Whatever such a call says, the same call works
afterwards, and what was written is there. What flushers wrote is there, too, or fsync() has told of it. What
else must be durable: sync_allocations.py. Standard library only.
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
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tests.guest import agwb
from tests.guest.kernel_log import Log
from tests.guest.lab_device import flush, settle
from tests.guest.scarce import (
    CGROUPS,
    CONTEXTS,
    FLUSHING,
    MAKE,
    MOUNT,
    NAME,
    NODE,
    STILL,
    Program,
    Sites,
    bdi,
    device,
    drop,
    every_number,
    flushers_fail,
    in_cgroup,
    mounted,
    read,
    umount,
)

# Of AG-aware writeback, those that allocate.
MODES = tuple(mode for mode in agwb.MODES if mode != "off")
COUNTERS = Path("/sys/kernel/debug/xfs", NAME, "writeback")
# Large enough for the workers of AG-aware writeback, and so many small ones that contexts have several.
LARGE_BYTES, SMALL_FILES = 5 << 20, 4 * CONTEXTS
PAGE_BYTES = 4096
NO_MEMORY = re.compile(r"EXT4-fs error \(device \S+\) in \w+:\d+: Out of memory")
# When it finds no memory to note that blocks have been written, ext4, stock's too, tells nobody but the log.
LOST = re.compile(r"failed to convert unwritten extents .*\(inode (\d+), error -12\)")
OVERWRITTEN = MOUNT / "overwritten"
LARGE = (MOUNT / "new", OVERWRITTEN)
SMALL = tuple(MOUNT / f"small{index}" for index in range(SMALL_FILES))


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


def sync_and_drop() -> None:
    """Write everything, and keep nothing in memory."""
    subprocess.run(["sync", "-f", str(MOUNT)], check=True)
    drop()


def inodes(program: Program, fs: str) -> None:
    """Dirty the first inode of contexts, in the root cgroup and in a new one for each number."""

    def dirty(operation: str, number: int) -> bool:
        group = CGROUPS / f"{operation}{number}"
        group.mkdir()
        paths = [MOUNT / f"{operation}{number}-{index}" for index in range(CONTEXTS)]
        if operation == "store":
            for path in paths:
                path.write_bytes(b"none")
            # An inode belongs to who dirties it first after it was read.
            sync_and_drop()

        def call_all() -> bool:
            return any([program.call(number, operation, path) for path in paths])

        has_failed = in_cgroup(group, call_all)
        group.rmdir()
        program.failed += has_failed
        for path in paths:
            path.write_bytes(path.name.encode())
        return has_failed

    # A page that is written gets a hint then.
    with mounted(fs, "ag-hint"):
        for operation in ("dirty", "store"):
            every_number(functools.partial(dirty, operation))
        sync_and_drop()
        for path in itertools.chain(MOUNT.glob("dirty*"), MOUNT.glob("store*")):
            if path.read_bytes() != path.name.encode():
                sys.exit(f"{path} holds something else")


def flushers(program: Program, fs: str) -> None:
    """Write back with all helpers that there are, none of which can be had at first."""
    durable: Counter[bool] = Counter()
    for mode in MODES if fs == "xfs" else ("off",):
        with mounted(fs, mode):
            (bdi() / "wb_workers").write_text("4")
            if fs == "ext4":
                # It is to say each time what it has lost.
                Path("/sys/fs/ext4", NAME, "msg_ratelimit_interval_ms").write_text("0")
            every_number(functools.partial(write_back, program, fs, durable))
            # One whose round found no memory has written nothing; another has.
            if fs == "xfs" and not agwb.passes(COUNTERS):
                sys.exit(f"workers of AG-aware writeback have written nothing in mode {mode}")
    print(f"without memory: {durable[True]} files are durable, {durable[False]} are not, and it was said")


def compare(path: Path, data: bytes, number: int) -> None:
    """Fail if a file does not hold what was written after an allocation of this number had failed."""
    found = read(path)
    if found == data:
        return
    pages_at = range(0, len(data), PAGE_BYTES)
    wrong = [at for at in pages_at if found[at : at + PAGE_BYTES] != data[at : at + PAGE_BYTES]]
    zeros = sum(not any(found[at : at + PAGE_BYTES]) for at in wrong)
    pages = f"{len(wrong)} wrong pages, {zeros} of them zeros, the first at {wrong[:1]}"
    sys.exit(f"{path}, allocation {number}: {len(found)} bytes for {len(data)}, {pages}")


def is_durable(file: BinaryIO) -> bool:
    """Ask whether all that was written to a file is on the device; False if it was not told so."""
    try:
        os.fsync(file.fileno())
    except OSError:
        return False
    return True


def lost_by_ext4() -> set[int]:
    """Return the inodes whose data ext4 says it has lost, since the last time."""
    said = subprocess.run(["dmesg", "--read-clear"], check=True, capture_output=True, text=True).stdout
    return {int(number) for number in LOST.findall(said)}


def write(files: dict[Path, bytes]) -> bool:
    """Write files, all but one of them anew."""
    for path, data in files.items():
        if path != OVERWRITTEN:
            path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, data, 0)
        os.close(fd)
    return True


def new_data() -> dict[Path, bytes]:
    """Return what files are to hold, which none has held before."""
    data = {path: os.urandom(LARGE_BYTES) for path in LARGE}
    return data | {path: os.urandom(PAGE_BYTES) for path in SMALL}


def write_back(program: Program, fs: str, durable: Counter[bool], number: int) -> bool:
    """Dirty files of a new cgroup and have them written; tell whether a flusher allocates so often.

    Args:
        program: its count of failures becomes more.
        fs: what is mounted.
        durable: counts the files after a failure, by whether fsync() returns 0.
        number: of the allocation that fails.
    """
    group = CGROUPS / f"written{number}"
    group.mkdir()
    flush(STILL)
    files = new_data()
    with contextlib.ExitStack() as still_open:
        with flushers_fail(number) as failed:
            # A flusher makes its siblings when it is first woken, though nothing is old enough to be written.
            in_cgroup(group, functools.partial(write, files))
            # Who has a file open from before it is written is told if that fails.
            opened = [(path, still_open.enter_context(path.open("rb"))) for path in files]
            flush(FLUSHING)
            if fs == "f2fs":
                # Its nodes stay dirty until a checkpoint. It may say that not everything was written.
                subprocess.run(["sync", "-f", str(MOUNT)], check=False, capture_output=True)
            settle()
        promised = [path for path, file in opened if is_durable(file)]
    lost = lost_by_ext4()
    kept = [path for path in promised if path.stat().st_ino not in lost]
    program.failed += len(failed)
    group.rmdir()
    # ext4, stock's too, takes blocks for written whose write has failed, while it has the pages: what is
    # written to them next would be zeros, see write_errors.py.
    drop()
    for path in kept:
        compare(path, files[path], number)
    if failed:
        durable.update({True: len(kept), False: len(files) - len(kept)})
    files = new_data()
    write(files)
    sync_and_drop()
    for path, data in files.items():
        compare(path, data, number)
    drop()
    return bool(failed)


def mounts(program: Program, fs: str) -> None:
    """Mount XFS, which has settings of ours; ext4 without memory warns of its own accord, as stock does.

    What all of them allocate for contexts: mount_allocations.py.
    """
    if fs != "xfs":
        return
    subprocess.run([*MAKE[fs], str(NODE)], check=True)

    def mount(number: int) -> bool:
        more = program.call(number, "mount", NODE, MOUNT, fs)
        if os.path.ismount(MOUNT):
            umount()
        return more

    every_number(mount)


class MemoryLog(Log):
    """The kernel's log without what ext4 says of a call that it refuses for want of memory."""

    excused = NO_MEMORY


PARTS: tuple[Callable[[Program, str], None], ...] = (settings, inodes, flushers, mounts)


def main(path: str, fs: str) -> None:
    """Do all that for a filesystem."""
    log = MemoryLog()
    program = Program(path)
    with device(program):
        sites = Sites()
        for part in PARTS:
            program.failed = 0
            with log.only_reports(allowed=()):
                part(program, fs)
            print(
                f"{part.__name__}: {program.failed} allocations failed in {' '.join(sorted(sites.since()))}"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
