# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: who is told of a page that a flusher could not write, and how often.

``python -m tests.guest.write_errors CONTEXTS [MODE]``; 0 sets nothing, as on a kernel that has no contexts.
MODE is one of AG-aware writeback, on XFS. Standard library only.

Some files of each filesystem get a bad block: below the first page of a pass, the last, or one between; the
others none. Everything is overwritten, and once the flushers are done everybody asks who may: two
descriptors from before, the filesystem, a new descriptor. Prints what each got, a line for each file. Then
the same where a thin device has no room for these blocks.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import subprocess
import sys
from pathlib import Path

from tests.guest.agwb import CLASSES, FIBMAP, LIBC, PAGES, SYSFS, passes
from tests.guest.kernel_log import Log
from tests.guest.lab_device import DEVICE, MOUNT, NAME, NODE, device, fail, flush, settle
from tests.guest.resize import MAKE, PAGE_BYTES
from tests.guest.versioned import File

FILES = 8
#: Pages of files that are bad below, by the file's number.
BAD = {1: 0, 3: PAGES - 1, 6: 123}
ATTRIBUTES = {"size_mib": 384, "queues": 2, "channels": 8}
# To change it makes flushers write everything at once, and by themselves.
WOKEN = {"dirty_writeback_centisecs": 2}
FLUSHING = {"dirty_expire_centisecs": 2}
STILL = {"dirty_expire_centisecs": 100_000}
SECTOR_BYTES = 512
FIGETBSZ = 2
#: Why a block cannot be written, by the device's attribute ``thin``.
WHY = ("bad", "no room")
# F2FS writes a page elsewhere each time, unless it is told to overwrite it in place.
IN_PLACE = Path("/sys/fs/f2fs", NAME, "ipu_policy")


def answer(result: int) -> str:
    """Return what a call of the C library came to, in a word."""
    return "ok" if result == 0 else errno.errorcode[ctypes.get_errno()]


def settings(contexts: int) -> None:
    """Set the number of contexts, with inodes that go to each in turn."""
    folder = Path("/sys/class/bdi") / Path("/sys/class/block", NAME, "dev").read_text().strip()
    (folder / "nwritebacks").write_text(str(contexts))
    (folder / "wb_affinity").write_text("rotor")


def mount(fs: str, mode: str) -> None:
    """Mount the filesystem; F2FS overwrites in place, XFS has a mode of AG-aware writeback if asked for."""
    subprocess.run(["mount", "-t", fs, NODE, str(MOUNT)], check=True)
    if fs == "f2fs":
        IN_PLACE.write_text("1")
    if fs == "xfs" and mode:
        for name in CLASSES:
            (SYSFS / name).write_text(mode)


def mark_bad(fd: int, page: int) -> None:
    """Let the device refuse the block of a page."""
    block_bytes = struct.unpack("i", fcntl.ioctl(fd, FIGETBSZ, struct.pack("i", 0)))[0]
    index = page * PAGE_BYTES // block_bytes
    block = struct.unpack("i", fcntl.ioctl(fd, FIBMAP, struct.pack("i", index)))[0]
    (DEVICE / "bad_blocks").write_text(f"{block * block_bytes // SECTOR_BYTES} {PAGE_BYTES // SECTOR_BYTES}")


def ask(file: File, first: int, second: int) -> list[str]:
    """Return what descriptors are told of a file, in the order in which they ask."""
    told = [answer(LIBC.fsync(fd)) for fd in (first, first, second, second)]
    with file.open() as new:
        told.append(answer(LIBC.fsync(new)))
    return told


def write_others(file: File, fd: int) -> None:
    """Write all but the bad page: what went to the device in one command with it was not written either."""
    for page in range(PAGES):
        if page != BAD.get(file.number):
            file.write(fd, page)


def refused(file: File, fd: int) -> list[int]:
    """Return the pages that cannot be read, and compare the others."""
    pages = []
    for page in range(PAGES):
        try:
            data = os.pread(fd, PAGE_BYTES, page * PAGE_BYTES)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            pages.append(page)
            continue
        if page != BAD.get(file.number) and data != file.content(page, page + 1):
            fail(f"page {page} of {file.path} holds something else")
    return pages


def try_filesystem(fs: str, contexts: int, mode: str, case: str, log: Log) -> None:
    """Overwrite files that have bad blocks, and print what everybody was told of the case."""
    # Or what is not bad fails with its neighbour on the device, of another file.
    Path("/sys/block", NAME, "queue/nomerges").write_text("2")
    subprocess.run([*MAKE[fs], NODE], check=True)
    if contexts:
        settings(contexts)
    mount(fs, mode)
    # A bio of F2FS has pages of several files, and fails as a whole: there all files have a bad block.
    numbers = BAD if fs == "f2fs" else range(FILES)
    files = [File(number, PAGES) for number in numbers]
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    for file in files:
        file.write_all()
    LIBC.syncfs(root)
    pairs = [(os.open(file.path, os.O_RDWR), os.open(file.path, os.O_RDWR)) for file in files]
    for file, pair in zip(files, pairs, strict=True):
        if file.number in BAD:
            mark_bad(pair[0], BAD[file.number])
    flush(STILL)
    for file in files:
        file.write_all()
    with log.only_reports():
        flush(FLUSHING)
        settle()
        if fs == "xfs" and mode and not passes():
            fail("no worker of AG-aware writeback has written anything")
        for file, pair in zip(files, pairs, strict=True):
            print(f"{case}, file {file.number}: {' '.join(ask(file, *pair))}")
        print(f"{case}, syncfs: {answer(LIBC.syncfs(root))} {answer(LIBC.syncfs(root))}")
        for file, pair in zip(files, pairs, strict=True):
            write_others(file, pair[0])
            print(f"{case}, file {file.number}, but for what is bad: {answer(LIBC.fsync(pair[0]))}")
        Path("/proc/sys/vm/drop_caches").write_text("3")
        for file, pair in zip(files, pairs, strict=True):
            pages = refused(file, pair[0])
            print(f"{case}, pages of file {file.number} that cannot be read: {pages}", flush=True)
        for fd in (root, *(fd for pair in pairs for fd in pair)):
            os.close(fd)
        subprocess.run(["umount", str(MOUNT)], check=True)


def main(contexts: int, mode: str = "") -> None:
    """Try each filesystem."""
    log = Log()
    flush(WOKEN)
    MOUNT.mkdir(exist_ok=True)
    for fs in MAKE:
        for thin, why in enumerate(WHY):
            with device({**ATTRIBUTES, "thin": thin}):
                try_filesystem(fs, contexts, mode, f"{fs}, {why}", log)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
