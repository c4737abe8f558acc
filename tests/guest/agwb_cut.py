# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what a power cut leaves of a file that workers write back while it grows.

``python -m tests.guest.agwb_cut MODE`` from the repository's folder; modes are those of agwb.py. Standard
library only.

A file is dirtied while no flusher runs, and then written back by one. When its size on disk reaches a mark,
the log is forced and the power is cut. The device takes long for a submission and loses what was not
flushed. Then there is data up to whatever size the file has, but for what the device had been given and had
not completed: commands complete in any order, on stock as well. In no mode a page that nobody had begun to
write is below that size.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import time

from tests.guest import cachestat
from tests.guest.agwb import SHUTDOWN, WITHOUT_FLUSH, Case
from tests.guest.lab_device import DEVICE, MOUNT, NODE, SETTLE_S, device, fail, flush
from tests.guest.resize import PAGE_BYTES, content
from tests.guest.versioned import File

ATTRIBUTES = {"size_mib": 192, "queues": 2, "cache": 1}
SUBMIT_NS = 100_000_000
STILL = {
    "dirty_writeback_centisecs": 0,
    "dirty_expire_centisecs": 100_000,
    "dirty_bytes": 1 << 30,
    "dirty_background_bytes": 1 << 29,
}
LOOSE = {"dirty_background_bytes": 1 << 20}
# Who dirties so many pages finds the limit exceeded, and wakes the flusher.
KICK_PAGES = 1000
# With this the file does not fit into its allocation group, which has 24 MiB: a part is expected in the next.
BALLAST_BYTES = 14 << 20
PAGES = 6144
# How many pages are on the device before, and how many more the size has when the power is cut.
BEFORE = (0, 2048)
MARKS = (1, 1100, 2500)

# XFS_IOC_BULKSTAT: the size in it is that on disk.
BULKSTAT = 2 << 30 | 64 << 16 | ord("X") << 8 | 127
REQUEST, ANSWER_BYTES = struct.Struct("<QIIII40x"), 192


def size_on_disk(root: int, inode: int) -> int:
    """Return the size of a file as the log has it, in bytes."""
    request = bytearray(REQUEST.pack(inode, 0, 1, 0, 0) + bytes(ANSWER_BYTES))
    fcntl.ioctl(root, BULKSTAT, request)
    found, size = struct.unpack_from("<QQ", request, REQUEST.size)
    if found != inode:
        fail(f"there is no inode {inode}")
    return int(size)


def dirty(case: Case, file: File, before: int) -> None:
    """Have so many pages on the device, and then every page dirty."""
    flush(STILL)
    file.path.parent.mkdir()
    with (file.path.parent / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, BALLAST_BYTES)
    with file.open() as fd:
        os.pwrite(fd, b"".join(content(file.number, page, 1) for page in range(before)), 0)
    os.sync()
    (DEVICE / "submit_ns").write_text(str(SUBMIT_NS))
    with file.open() as fd:
        os.pwrite(fd, b"".join(content(file.number, page, 2) for page in range(PAGES)), 0)


def covered(fd: int, before: int, size: int) -> None:
    """See that the size on disk, in bytes, covers no new page that nobody has begun to write.

    A page is dirty once only, so one that is dirty now was so when the file had that size.
    """
    pages = size // PAGE_BYTES
    if pages <= before:
        return
    waiting, _ = cachestat.states(fd, before, pages - before)
    if waiting:
        fail(f"{pages} pages are on disk, of which nobody has begun to write {len(waiting)}")


def cut_when(file: File, before: int, mark: int) -> tuple[set[int], set[int]]:
    """Let flushers write until so many more pages are on disk, force the log, and cut the power.

    Return the pages that were dirty after the log was forced, and those that were clean before.
    """
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    inode = file.path.stat().st_ino
    other = os.open(MOUNT / "other", os.O_CREAT | os.O_RDWR)
    end = time.monotonic() + SETTLE_S
    flush(LOOSE)
    with (MOUNT / "kick").open("wb", buffering=0) as kick:
        for _ in range(KICK_PAGES):
            kick.write(bytes(PAGE_BYTES))
    with file.open(os.O_RDONLY) as fd:
        while True:
            size = size_on_disk(root, inode)
            covered(fd, before, size)
            if size >= (before + mark) * PAGE_BYTES:
                break
            if time.monotonic() > end:
                fail("nobody writes the file back")
        _, done = cachestat.states(fd, 0, PAGES)
        os.pwrite(other, b"something", 0)
        os.fsync(other)
        waiting, _ = cachestat.states(fd, 0, PAGES)
    fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
    (DEVICE / "power").write_text("0")
    os.close(other)
    os.close(root)
    return waiting, done


def check(file: File, before: int, waiting: set[int], done: set[int]) -> str:
    """Compare what is left with what was written, and return how much that is."""
    in_flight = 0
    with file.open(os.O_RDONLY) as fd:
        pages = os.fstat(fd).st_size // PAGE_BYTES
        for page in range(pages):
            found = os.pread(fd, PAGE_BYTES, page * PAGE_BYTES)
            versions = (1, 2) if page < before else (2,)
            if found in [content(file.number, page, version) for version in versions]:
                continue
            what = f"page {page} of {pages} is {'something else' if any(found) else 'zeros'}"
            if page < before or any(found):
                fail(f"{what}; {before} were on the device before")
            if page in done:
                fail(f"{what}, and had been written")
            if page in waiting:
                fail(f"{what}, and nobody had begun to write it")
            in_flight += 1
    return f"{pages} pages, {in_flight} not completed"


def main(mode: str) -> None:
    """Cut the power at every mark."""
    MOUNT.mkdir()
    for before in BEFORE:
        for mark in MARKS:
            with device({**ATTRIBUTES, "seed": mark}):
                case = Case(mode)
                file = File(1, PAGES)
                dirty(case, file, before)
                waiting, done = cut_when(file, before, mark)
                case.unmount()
                (DEVICE / "submit_ns").write_text("0")
                (DEVICE / "power").write_text("1")
                case.mount()
                left = check(file, before, waiting, done)
                case.unmount()
                subprocess.run(["xfs_repair", "-n", NODE], check=True, stderr=subprocess.DEVNULL)
            print(f"from {before} by {mark}: {left}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
