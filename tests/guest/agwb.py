# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: everything that may happen to a file while workers write it back by allocation group.

``python -m tests.guest.agwb MODE`` from the repository's folder. MODE is one of XFS's writeback modes, for
overwrites and for delayed allocation, or ``changing``: all of them, one after the other, all the time.
Standard library only.

Each case gets a fresh XFS on a labblk device, with eight allocation groups and one file that spans several.
Flushers are busy all the time. After the case the filesystem is unmounted and checked, then mounted, and
every byte is compared with what was written. What a page must hold follows from its file, its number and
its version, as in resize.py; version 0 is a page of zeros.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import itertools
import os
import random
import re
import struct
import subprocess
import sys
import time
from multiprocessing import Process
from pathlib import Path

from tests.guest.lab_device import (
    DEVICE,
    FIFREEZE,
    FITHAW,
    MOUNT,
    NAME,
    NODE,
    device,
    fail,
    flush,
    quietly,
    sectors_written,
    settle,
)
from tests.guest.resize import PAGE_BYTES, content, finish, start
from tests.guest.versioned import OPERATIONS, File, overwrite_some, together

MODES = ("off", "ag-hint", "rotor", "generic")
CLASSES = ("overwrite", "delalloc")
CHANGING = "changing"
CHANGE_S = 0.02

SYSFS = Path("/sys/fs/xfs", NAME, "writeback")
COUNTERS = Path("/sys/kernel/debug/xfs", NAME, "writeback")
# Submission sleeps a little, so that passes are under way when something else happens.
ATTRIBUTES = {"size_mib": 192, "queues": 2, "channels": 8, "submit_ns": 50_000}
GROUPS = 8
# mkfs.xfs makes a filesystem this small for xfstests only, which it knows by these.
SMALL = {"TEST_DIR": "1", "TEST_DEV": "1", "QA_CHECK_FS": "1"}
FLUSHING = {
    "dirty_writeback_centisecs": 5,
    "dirty_expire_centisecs": 10,
    "dirty_bytes": 64 << 20,
    "dirty_background_bytes": 1 << 20,
}

WRITERS = 4
# Less than 4 MiB in memory is not worth a worker.
PAGES = 1280
# A group has 24 MiB.
SPANNING_PAGES = 7168

PUNCH_HOLE_KEEP_SIZE = 0x03
FICLONE = 0x40049409
FIBMAP = 1
# FS_IOC_SHUTDOWN with "flush neither the log nor data".
SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = struct.pack("=I", 2)
CUT_OFF = {errno.EIO, errno.ESHUTDOWN, errno.EROFS}

LIBC = ctypes.CDLL(None, use_errno=True)


def passes(counters: Path = COUNTERS) -> int:
    """Return how many passes the workers of a mounted filesystem have ended, ever."""
    return sum(int(count) for count in re.findall(r"passes (\d+)", counters.read_text()))


def check(what: str, result: int) -> None:
    """End the program when a call of the C library failed."""
    if result != 0:
        fail(f"{what}: {os.strerror(ctypes.get_errno())}")


def append_some(file: File) -> None:
    """Write a file from its start, in pieces of different sizes, so that folios of all sizes are dirty."""
    choose = random.Random(file.number)
    file.path.parent.mkdir(exist_ok=True)
    with file.open() as fd:
        page = 0
        while page < file.most_pages:
            count = min(choose.choice((1, 2, 16, 64, 256)), file.most_pages - page)
            data = b"".join(content(file.number, page + i, 1) for i in range(count))
            os.pwrite(fd, data, page * PAGE_BYTES)
            for i in range(count):
                file.versions[page + i] = 1
            page += count
            file.size[0] = page


def punch_some(file: File) -> None:
    """Overwrite pages and punch holes."""
    choose = random.Random(file.number)
    with file.open() as fd:
        for _ in range(OPERATIONS):
            page = choose.randrange(file.size[0])
            if choose.random() < 0.9:
                file.write(fd, page)
                continue
            end = min(page + choose.choice((1, 3, 64, 512)), file.size[0])
            offset, length = page * PAGE_BYTES, (end - page) * PAGE_BYTES
            check(
                "fallocate",
                LIBC.fallocate(fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(offset), ctypes.c_long(length)),
            )
            file.zero(page, end)


def truncate_some(file: File) -> None:
    """Write pages, and cut the file short while they are being written back."""
    choose = random.Random(file.number)
    with file.open() as fd:
        for _ in range(OPERATIONS):
            if choose.random() < 0.98:
                file.write(fd, choose.randrange(file.most_pages))
                continue
            page = choose.randrange(file.most_pages)
            os.ftruncate(fd, page * PAGE_BYTES)
            if page < file.size[0]:
                file.cut(page)
            file.size[0] = page


def write_and_remove(file: File) -> None:
    """Write a file and remove it while it is being written back, several times."""
    for _ in range(8):
        file.write_all()
        file.path.unlink()
        file.cut(0)


class Case:
    """One case: a fresh filesystem, and files on it."""

    def __init__(self, mode: str) -> None:
        """Make the filesystem and mount it."""
        self.mode = mode
        self.files = [File(number, PAGES) for number in range(WRITERS)]
        self.spanning = File(WRITERS, SPANNING_PAGES)
        self.all = [*self.files, self.spanning]
        command = ["mkfs.xfs", "-q", "-f", "-d", f"agcount={GROUPS}", NODE]
        subprocess.run(command, check=True, env={**os.environ, **SMALL})
        self._changer: Process | None = None
        self.mount()

    def mount(self) -> None:
        """Mount the filesystem, and switch the mode on."""
        subprocess.run(["mount", "-t", "xfs", NODE, str(MOUNT)], check=True)
        if self.mode == CHANGING:
            self._changer = start(self._change)
            return
        self.set_mode(self.mode)

    def set_mode(self, mode: str) -> None:
        """Set the mode of both classes."""
        for name in CLASSES:
            (SYSFS / name).write_text(mode)

    def _change(self) -> None:
        """Change modes for ever."""
        for modes in itertools.cycle(itertools.product(MODES, MODES)):
            for name, mode in zip(CLASSES, modes, strict=True):
                (SYSFS / name).write_text(mode)
            time.sleep(CHANGE_S)

    def unmount(self) -> None:
        """Unmount the filesystem."""
        if self._changer:
            if not self._changer.is_alive():
                fail("the modes could not be changed, see above")
            self._changer.kill()
            self._changer.join()
            self._changer = None
        subprocess.run(["umount", str(MOUNT)], check=True)

    def counters(self) -> dict[str, int]:
        """Return the sums of the counters, by their names; those of a kind have it ahead of their name."""
        sums: dict[str, int] = {}
        for line in COUNTERS.read_text().splitlines():
            head, _, rest = line.partition(": ")
            words = rest.split()
            for name, value in zip(words[::2], words[1::2], strict=True):
                key = name if head.startswith("worker") else f"{head} {name}"
                sums[key] = sums.get(key, 0) + int(value)
        return sums

    def fill(self, files: list[File]) -> None:
        """Write files whole, and to the device."""
        together(File.write_all, files)
        os.sync()

    def conclude(self) -> None:
        """Unmount, check, mount again, compare every byte, and unmount."""
        self.unmount()
        quietly("xfs_repair", "-n", NODE)
        self.mount()
        for file in self.all:
            if file.path.exists():
                file.compare()
        self.unmount()


def overwrite(case: Case) -> None:
    """Overwrite, also a file that spans groups; predictions of what is mapped are all right."""
    case.fill(case.all)
    together(overwrite_some, case.all)
    settle()
    counters = case.counters()
    if case.mode not in ("off", CHANGING) and not counters["submitted"]:
        fail("no worker has written anything")
    if case.mode == "ag-hint" and not counters["overwrite right"]:
        fail("no prediction has come true")
    if counters.get("overwrite wrong", 0):
        fail(f"{counters['overwrite wrong']} folios were predicted to be elsewhere than they are")


def append(case: Case) -> None:
    """Write new files."""
    together(append_some, case.all)
    settle()
    counters = case.counters()
    if case.mode not in ("off", CHANGING) and not counters["submitted"]:
        fail("no worker has written anything")
    # Nothing is dirty, so no hint may be left.
    if counters.get("hints entries", 0):
        fail(f"{counters['hints entries']} hints outlive their folios")


def hole_punch(case: Case) -> None:
    """Punch holes into files that are being written."""
    case.fill(case.files)
    together(punch_some, case.files)


def truncate(case: Case) -> None:
    """Cut files short while they are being written."""
    case.fill(case.files)
    together(truncate_some, case.files)


def unlink(case: Case) -> None:
    """Remove files while they are being written: nobody may write an inode that is gone."""
    together(write_and_remove, case.files)
    settle()
    if case.counters().get("hints entries", 0):
        fail("hints outlive their files")


def reflink(case: Case) -> None:
    """Overwrite files whose blocks are shared, original and copy."""
    case.fill(case.files[:2])
    for original, copy in zip(case.files[:2], case.files[2:], strict=True):
        overwrite_some(original, OPERATIONS // 4)
        copy.path.parent.mkdir(exist_ok=True)
        with original.open() as source, copy.open() as target:
            fcntl.ioctl(target, FICLONE, source)
            # The copy holds what the original did: pages of the original's number.
            copy.number = original.number
            copy.versions[:] = original.versions
            copy.size[0] = original.size[0]
    together(overwrite_some, case.files)


def fill_up(file: File) -> None:
    """Write pages until there is no space."""
    file.path.parent.mkdir(exist_ok=True)
    with file.open() as fd:
        for page in range(file.most_pages):
            try:
                file.write(fd, page)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                # What a short write left of a page is not ours to know.
                os.ftruncate(fd, file.size[0] * PAGE_BYTES)
                return


def enospc(case: Case) -> None:
    """Run out of space, with the rest of it taken by a large file, and go on after it is removed."""
    ballast = MOUNT / "ballast"
    left = os.statvfs(MOUNT)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, left.f_bavail * left.f_frsize - (48 << 20))
    together(fill_up, case.all)
    settle()
    ballast.unlink()
    together(overwrite_some, [file for file in case.all if file.size[0]])


def eio(case: Case) -> None:
    """Write to a bad block: who asks is told, once for each descriptor, and the other blocks are written."""
    file = case.files[0]
    case.fill([file])
    page = 700
    with file.open() as fd, file.open() as other:
        block = struct.unpack("i", fcntl.ioctl(fd, FIBMAP, struct.pack("i", page)))[0]
        (DEVICE / "bad_blocks").write_text(f"{block * PAGE_BYTES // 512} {PAGE_BYTES // 512}")
        for number in range(file.most_pages):
            file.write(fd, number)
        settle()
        for descriptor in (fd, other):
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
            else:
                fail("fsync() does not report that a page was not written")
            os.fsync(descriptor)
        # What went along in the same command was not written either.
        for number in range(file.most_pages):
            if number != page:
                file.write(fd, number)
        os.fsync(fd)
    file.lost[0] = page + 1


def freeze(case: Case) -> None:
    """Freeze under load: nothing is written while the filesystem is frozen."""
    case.fill(case.files)
    processes = [start(overwrite_some, file) for file in case.files]
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(5):
        time.sleep(0.1)
        fcntl.ioctl(root, FIFREEZE, 0)
        before = sectors_written()
        time.sleep(0.1)
        after = sectors_written()
        fcntl.ioctl(root, FITHAW, 0)
        if after != before:
            fail(f"{after - before} sectors were written to a frozen filesystem")
    os.close(root)
    finish(processes)


def overwrite_until_cut_off(file: File) -> None:
    """Overwrite pages until the filesystem is shut down."""
    try:
        while True:
            overwrite_some(file)
    except OSError as error:
        if error.errno not in CUT_OFF:
            raise


def shutdown(case: Case) -> None:
    """Shut the filesystem down under load: what was synced and left alone before is there."""
    case.fill(case.all)
    processes = [start(overwrite_until_cut_off, file) for file in case.files]
    time.sleep(0.5)
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
    os.close(root)
    for process in processes:
        process.join()
        # A store to a mapped page of a filesystem that is shut down ends in a signal.
        if process.exitcode not in (0, -7):
            fail(f"a writer ended with {process.exitcode}")
    # The log has to be recovered before anything can be checked.
    case.unmount()
    case.mount()
    case.all = [case.spanning]


def remount(case: Case) -> None:
    """Remount read-only with dirty files: nothing is written after that, and all is there."""
    case.fill(case.files)
    for _ in range(3):
        together(overwrite_some, case.files)
        subprocess.run(["mount", "-o", "remount,ro", str(MOUNT)], check=True)
        before = sectors_written()
        for file in case.files:
            file.compare()
        if sectors_written() != before:
            fail("sectors were written to a read-only filesystem")
        subprocess.run(["mount", "-o", "remount,rw", str(MOUNT)], check=True)


CASES = (overwrite, append, hole_punch, truncate, unlink, reflink, enospc, eio, freeze, shutdown, remount)


def main(mode: str) -> None:
    """Run every case in a mode, and tell when each is done."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    for run in CASES:
        with device(ATTRIBUTES):
            case = Case(mode)
            run(case)
            case.conclude()
        print(f"{run.__name__}: as it should be", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
