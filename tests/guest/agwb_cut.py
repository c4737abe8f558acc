# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what a power cut leaves of a file that workers write back while it grows.

``python -m tests.guest.agwb_cut MODE`` from the repository's folder; modes are those of agwb.py. Standard
library only.

A file is dirtied while no flusher runs, and then written back by one. When its size on disk reaches a mark,
the log is forced and the power is cut. The device takes long for a submission and loses what was not
flushed. A flusher that writes in order leaves data up to whatever size the file has afterwards; so must all.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import time
from pathlib import Path

from tests.guest.agwb import SHUTDOWN, WITHOUT_FLUSH, Case
from tests.guest.lab_device import DEVICE, MOUNT, NAME, NODE, SETTLE_S, device, fail, flush, quietly
from tests.guest.resize import PAGE_BYTES, content
from tests.guest.versioned import File

# One command at a time: with more, they complete in any order on a busy host, on stock as well.
ATTRIBUTES = {"size_mib": 192, "queues": 1, "queue_depth": 1, "cache": 1}
# Of commands that wait it might take the later one first.
SCHEDULER = Path("/sys/block", NAME, "queue/scheduler")
SUBMIT_NS = 20_000_000
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


def cut_when(file: File, size: int) -> None:
    """Let flushers write until the file has this size on disk, force the log, and cut the power."""
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    inode = file.path.stat().st_ino
    other = os.open(MOUNT / "other", os.O_CREAT | os.O_RDWR)
    end = time.monotonic() + SETTLE_S
    flush(LOOSE)
    with (MOUNT / "kick").open("wb", buffering=0) as kick:
        for _ in range(KICK_PAGES):
            kick.write(bytes(PAGE_BYTES))
    while size_on_disk(root, inode) < size:
        if time.monotonic() > end:
            fail("nobody writes the file back")
    os.pwrite(other, b"something", 0)
    os.fsync(other)
    fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
    (DEVICE / "power").write_text("0")
    os.close(other)
    os.close(root)


def check(file: File, before: int) -> int:
    """Compare what is left with what was written, and return how many pages that is."""
    with file.open(os.O_RDONLY) as fd:
        pages = os.fstat(fd).st_size // PAGE_BYTES
        for page in range(pages):
            found = os.pread(fd, PAGE_BYTES, page * PAGE_BYTES)
            versions = (1, 2) if page < before else (2,)
            if found not in [content(file.number, page, version) for version in versions]:
                what = "zeros" if not any(found) else "something else"
                fail(f"page {page} of {pages} is {what}; {before} were on the device before")
    return pages


def main(mode: str) -> None:
    """Cut the power at every mark."""
    MOUNT.mkdir(exist_ok=True)
    for before in BEFORE:
        for mark in MARKS:
            with device({**ATTRIBUTES, "seed": mark}):
                SCHEDULER.write_text("none")
                case = Case(mode)
                file = File(1, PAGES)
                dirty(case, file, before)
                cut_when(file, (before + mark) * PAGE_BYTES)
                case.unmount()
                (DEVICE / "submit_ns").write_text("0")
                (DEVICE / "power").write_text("1")
                case.mount()
                pages = check(file, before)
                case.unmount()
                quietly("xfs_repair", "-n", NODE)
            print(f"from {before} by {mark}: {pages} pages", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
