# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: who is told of a page that a flusher could not write, and how often.

``python -m tests.guest.write_errors CONTEXTS WORKERS [MODE]``; CONTEXTS 0 sets nothing, as on a kernel that
has none. MODE is one of AG-aware writeback, on XFS. Standard library only.

Some files of each filesystem get a bad block: below the first page of a pass, the last, or one that a seed
chooses; the others none. Some have blocks that were never written, some are written in a cgroup. Everything
is overwritten, and once the flushers are done everybody asks who may: descriptors from before, by fsync(),
by msync() and by a synchronous write of what is not bad; the filesystem; a new descriptor; and who writes
synchronously what is bad. Prints what each got, a line for each file. Then the same where a thin device has
no room for these blocks.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from guest.fiemap import extents
from tests.guest.agwb import CLASSES, LIBC, PAGES, SYSFS, passes
from tests.guest.fsck import check
from tests.guest.kernel_log import Log
from tests.guest.lab_device import DEVICE, MOUNT, NAME, NODE, device, fail, flush, settle
from tests.guest.resize import CGROUPS, MAKE, PAGE_BYTES, finish, start
from tests.guest.versioned import File

FILES = 10
#: Files whose blocks were never written; F2FS has none such, it chooses a block when it writes.
UNWRITTEN = (8, 9)
CHOSEN = random.Random(0)
#: Pages of files that are bad below, by the file's number.
BAD = {
    1: 0,
    3: PAGES - 1,
    4: CHOSEN.randrange(8, PAGES - 1),
    6: CHOSEN.randrange(8, PAGES - 1),
    8: 0,
    9: CHOSEN.randrange(8, PAGES - 1),
}
#: One that is never bad.
GOOD = 4
GROUP = CGROUPS / "errors"
IN_GROUP = (2, 4, 9)
ATTRIBUTES = {"size_mib": 384, "queues": 2, "channels": 8}
# To change it makes flushers write everything at once, and by themselves.
WOKEN = {"dirty_writeback_centisecs": 2}
FLUSHING = {"dirty_expire_centisecs": 2}
STILL = {"dirty_expire_centisecs": 100_000}
SECTOR_BYTES = 512
#: Why a block cannot be written, by the device's attribute ``thin``.
WHY = ("bad", "no room")
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
# F2FS writes a page elsewhere each time, unless it is told to overwrite it in place.
IN_PLACE = Path("/sys/fs/f2fs", NAME, "ipu_policy")


class Kernel(NamedTuple):
    """How a kernel is to write back: contexts, 0 for one without, their workers, and a mode for XFS."""

    contexts: str
    workers: str = "1"
    mode: str = ""


class Descriptors(NamedTuple):
    """Those of a file that were there before it is written.

    Attributes:
        first: asks by fsync().
        second: does so too.
        mapped: asks by msync().
        synchronous: asks by a write.
    """

    first: int
    second: int
    mapped: mmap.mmap
    synchronous: int

    def close(self) -> None:
        """Close them."""
        self.mapped.close()
        for fd in (self.first, self.second, self.synchronous):
            os.close(fd)


def descriptors(file: File) -> Descriptors:
    """Open a file in each way."""
    with file.open() as fd:
        mapped = mmap.mmap(fd, PAGES * PAGE_BYTES)
    first, second = (os.open(file.path, os.O_RDWR) for _ in range(2))
    return Descriptors(first, second, mapped, os.open(file.path, os.O_RDWR | os.O_SYNC))


def answer(result: int) -> str:
    """Return what a call of the C library came to, in a word."""
    return "ok" if result == 0 else errno.errorcode[ctypes.get_errno()]


def settings(contexts: str, workers: str) -> None:
    """Set the number of contexts and of their workers, with inodes that go to each in turn."""
    folder = Path("/sys/class/bdi") / Path("/sys/class/block", NAME, "dev").read_text().strip()
    (folder / "nwritebacks").write_text(contexts)
    (folder / "wb_workers").write_text(workers)
    (folder / "wb_affinity").write_text("rotor")


def mount(fs: str, mode: str) -> None:
    """Mount the filesystem; F2FS overwrites in place, XFS has a mode of AG-aware writeback if asked for."""
    subprocess.run(["mount", "-t", fs, NODE, str(MOUNT)], check=True)
    if fs == "f2fs":
        IN_PLACE.write_text("1")
    if fs == "xfs" and mode:
        for name in CLASSES:
            (SYSFS / name).write_text(mode)


def mark_bad(path: Path, page: int) -> None:
    """Let the device refuse the block of a page of a file without holes."""
    offset = page * PAGE_BYTES
    for physical, length in extents(path):
        if offset < length:
            first, count = (physical + offset) // SECTOR_BYTES, PAGE_BYTES // SECTOR_BYTES
            (DEVICE / "bad_blocks").write_text(f"{first} {count}")
            return
        offset -= length
    fail(f"page {page} of {path} has no block")


def make(file: File) -> None:
    """Make a file with a block below each page."""
    if file.number not in UNWRITTEN:
        write_all(file)
        return
    file.path.parent.mkdir()
    with file.open() as fd:
        os.posix_fallocate(fd, 0, PAGES * PAGE_BYTES)
    file.size[0] = PAGES


def write_all(file: File) -> None:
    """Write every page, in a process of a cgroup if the file has one."""
    finish([start(write_in_group if file.number in IN_GROUP else File.write_all, file)])


def write_in_group(file: File) -> None:
    """Join the cgroup and write every page."""
    (GROUP / "cgroup.procs").write_text("0")
    file.write_all()


def write_again(file: File, fd: int, page: int) -> str:
    """Write what a page must hold already; return what the call came to."""
    try:
        os.pwrite(fd, file.content(page, page + 1), page * PAGE_BYTES)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def sync_mapped(mapped: mmap.mmap) -> str:
    """Call msync() for a page that is not bad; return what that came to."""
    try:
        mapped.flush(GOOD * PAGE_BYTES, PAGE_BYTES)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def ask(file: File, before: Descriptors) -> list[str]:
    """Return what descriptors are told of a file, in the order in which they ask, each twice."""
    told = [answer(LIBC.fsync(fd)) for fd in (before.first, before.first, before.second, before.second)]
    told += [sync_mapped(before.mapped) for _ in range(2)]
    told += [write_again(file, before.synchronous, GOOD) for _ in range(2)]
    with file.open() as new:
        told.append(answer(LIBC.fsync(new)))
    return told


def write_others(file: File, fd: int) -> None:
    """Write all but the bad page: what went to the device in one command with it was not written either."""
    for page in range(PAGES):
        if page != BAD.get(file.number):
            file.write(fd, page)


def found(file: File, fd: int) -> str:
    """Return what the bad page holds, if there is one, and compare the others."""
    what = "all of it"
    for page in range(PAGES):
        is_bad = page == BAD.get(file.number)
        try:
            data = os.pread(fd, PAGE_BYTES, page * PAGE_BYTES)
        except OSError as error:
            if error.errno != errno.EIO or not is_bad:
                raise
            what = "EIO"
            continue
        if data == file.content(page, page + 1):
            continue
        if not is_bad:
            fail(f"page {page} of {file.path} holds something else")
        what = "what was there before" if any(data) else "zeros"
    return what


def try_filesystem(fs: str, kernel: Kernel, case: str, log: Log) -> None:
    """Overwrite files that have bad blocks, and print what everybody was told of the case."""
    # Or what is not bad fails with its neighbour on the device, of another file.
    Path("/sys/block", NAME, "queue/nomerges").write_text("2")
    subprocess.run([*MAKE[fs], NODE], check=True)
    if kernel.contexts != "0":
        settings(kernel.contexts, kernel.workers)
    mount(fs, kernel.mode)
    files = [File(number, PAGES) for number in numbers(fs)]
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    for file in files:
        make(file)
    LIBC.syncfs(root)
    pairs = [(file, descriptors(file)) for file in files]
    for file in files:
        if file.number in BAD:
            mark_bad(file.path, BAD[file.number])
    flush(STILL)
    for file in files:
        write_all(file)
    with log.only_reports(allowed=()):
        flush(FLUSHING)
        settle()
        if fs == "xfs" and kernel.mode and not passes():
            fail("no worker of AG-aware writeback has written anything")
        for file, before in pairs:
            print(f"{case}, file {file.number}: {' '.join(ask(file, before))}")
        print(f"{case}, syncfs: {answer(LIBC.syncfs(root))} {answer(LIBC.syncfs(root))}")
        # Once a write to unwritten blocks has failed, ext4 takes them for written while it has the pages: it
        # does not note that the next write is done, and later they read as zeros though fsync() returned 0.
        DROP_CACHES.write_text("3")
        for file, before in pairs:
            write_others(file, before.first)
            print(f"{case}, file {file.number}, but for what is bad: {answer(LIBC.fsync(before.first))}")
            if file.number in BAD:
                told = write_again(file, before.synchronous, BAD[file.number])
                print(f"{case}, file {file.number}, what is bad: {told}")
        DROP_CACHES.write_text("3")
        for file, before in pairs:
            print(f"{case}, file {file.number} holds: {found(file, before.first)}", flush=True)
            before.close()
        os.close(root)
        subprocess.run(["umount", str(MOUNT)], check=True)


def numbers(fs: str) -> list[int]:
    """Return the numbers of the files that a filesystem has."""
    # A bio of F2FS has pages of several files, and fails as a whole: there all files have a bad block.
    return [number for number in BAD if number not in UNWRITTEN] if fs == "f2fs" else list(range(FILES))


def main(kernel: Kernel) -> None:
    """Try each filesystem."""
    log = Log()
    flush(WOKEN)
    MOUNT.mkdir(exist_ok=True)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    GROUP.mkdir()
    for fs in MAKE:
        for thin, why in enumerate(WHY):
            with device({**ATTRIBUTES, "thin": thin}):
                try_filesystem(fs, kernel, f"{fs}, {why}", log)
                # Beside its own blocks xfs_repair reads others, and ends at one that cannot be read.
                if fs != "xfs" or thin:
                    check(fs, NODE)


if __name__ == "__main__":
    main(Kernel(*sys.argv[1:]))
