# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is what was promised there after a power cut?

``python -m tests.guest.cuts FS SEED CUTS [--lie]``. Prints what it found as JSON.

Writers change files of their own in every way that makes or breaks a promise, see promises.py, while the
number of contexts and workers, the affinity and the mode of AG-aware writeback are others for each cut; in
half of them the number of contexts is another one from the middle of the load on. Then the device loses its
power: what its cache holds, and what is in flight, is gone, kept or torn. The filesystem is mounted,
unmounted, checked by its own tools and mounted again, and every file is compared. With ``--lie`` nothing is
synced and yet promised: a check that finds nothing then sees nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from guest.layout import SET_STREAM, WRITE_STREAM
from tests.guest.agwb import passes
from tests.guest.kernel_log import Log
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File, History

WRITERS = 4
FILES = 6
MOST_SECTORS = 512
LONGEST_WRITE = 64
# One writer has a file that AG-aware writeback takes for large: of more than 4 MiB in the page cache.
LARGE = "large"
LARGE_SECTORS = 12_000
MOST_LARGE_SECTORS = 14_000
LONGEST_LARGE_WRITE = 512
# A filesystem is used so often; what recovery makes of it is what the next cut meets.
CUTS_PER_MKFS = 8
# What dumpe2fs says of a torn superblock, and the status of e2fsck that has mended all it found.
TORN = "uperblock checksum does not match superblock"
MENDED = 1
# Operations that are told where something is lost.
MOST_TOLD = 60
# Lines of the kernel's log that are told where a filesystem cannot be mounted.
MOST_SAID = 4
LONGEST_LOAD_S = 0.15

DEVICE = Path("/sys/kernel/config/labblk/cuts")
POWER = DEVICE / "power"
NODE = Path("/dev/cuts")
MOUNT = Path("/tmp/cuts")
XFS_MODES = Path("/sys/fs/xfs/cuts/writeback")
XFS_COUNTERS = Path("/sys/kernel/debug/xfs/cuts/writeback")
ATTRIBUTES = {
    "size_mib": 384,
    "queues": 2,
    "channels": 8,
    "write_ns": 20_000,
    "flush_ns": 100_000,
    "cache_ns": 50_000,
    "submit_ns": 5_000,
    "cache": 1,
    "max_write_streams": 4,
}
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f", "-d", "agcount=4"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-J", "size=8"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
# Look, and mend nothing.
CHECK = {"xfs": ["xfs_repair", "-n"], "ext4": ["e2fsck", "-fn"], "f2fs": ["fsck.f2fs", "--dry-run"]}
WAYS = {
    "nwritebacks": ("1", "4", "8", "auto"),
    "wb_workers": ("1", "1", "2", "4"),
    "wb_affinity": ("fs", "ino", "rotor", "least-loaded"),
}
MODES = ("off", "ag-hint", "rotor", "generic")
FLUSHING = (
    {"dirty_writeback_centisecs": 1, "dirty_expire_centisecs": 1, "dirty_background_bytes": 64 << 10},
    {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 10, "dirty_background_bytes": 1 << 20},
    {"dirty_writeback_centisecs": 0, "dirty_expire_centisecs": 3000, "dirty_background_bytes": 256 << 20},
)

# Stock's syncfs() leaves overwritten data in the device's cache there, see syncfs_cut.py.
LEFT_IN_CACHE = ("xfs", "f2fs")
# FS_IOC_SHUTDOWN of include/uapi/linux/fs.h with "flush neither the log nor data".
SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = struct.pack("=I", 2)
FICLONE = 0x40049409
PUNCH_HOLE_KEEP_SIZE, ZERO_RANGE = 0x03, 0x10
SYNC_FILE_RANGE_WRITE_AND_WAIT = 7
# What a filesystem without power answers.
CUT_OFF = {errno.EIO, errno.EROFS, errno.ESHUTDOWN}
UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}

LIBC = ctypes.CDLL(None, use_errno=True)


def called(name: str, *arguments: object) -> None:
    """Call a function of the C library that Python does not have, or fall over its error."""
    if getattr(LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)


def bytes_of(first: int, count: int) -> tuple[ctypes.c_long, ctypes.c_long]:
    """Return the offset and the length of sectors in bytes, for a function of the C library."""
    return ctypes.c_long(first * SECTOR_BYTES), ctypes.c_long(count * SECTOR_BYTES)


class Found(NamedTuple):
    """What a check has found.

    Attributes:
        promised: sectors and names that had to be there.
        longer: files that hold what was promised, and more behind it.
        lost: what is lost, a text each.
        mended: filesystems that could be mounted only after their superblock had been mended.
    """

    promised: int
    longer: int
    lost: list[str]
    mended: int = 0


class Writer:
    """A process's folder, its files, and what each of its names may stand for."""

    def __init__(self, fs: str, number: int, seed: int, *, lie: bool) -> None:
        """Begin without files; ``lie``: promise without a sync."""
        self._fs = fs
        self._has_large = number == 0
        self.folder = MOUNT / f"writer{number}"
        self._chosen = random.Random(f"{seed} {number}")
        self._lie = lie
        self._next_file = number
        self._change = 0
        self._names: dict[str, History[File | None]] = {}
        # What was begun since the last check, for who wants to know how something was lost.
        self._begun: list[str] = []
        self._longer = 0
        self._ways: list[Callable[[str], None]] = [
            *[self.overwrite] * 4,
            *[self.append] * 4,
            *[self.write_and_sync] * 3,
            *[self.write_synchronously] * 2,
            *[self.write_mapped] * 2,
            self.write_beyond,
            self.write_directly,
            self.write_range,
            self.truncate,
            self.punch,
            self.zero,
            self.allocate,
            self.replace,
            self.replace,
            self.copy,
            self.remove,
            self.sync_all,
            *[self.write_large] * (8 if self._has_large else 0),
        ]

    def begin(self) -> None:
        """Make the files of a fresh filesystem."""
        self.folder.mkdir()
        self._names, self._begun = {}, []
        self._change = 0
        for number in range(FILES):
            self._create(f"file{number}")
        if self._has_large:
            self._create(LARGE, LARGE_SECTORS)
        os.sync()
        for name in self._names:
            self._promise_name(name)

    def go_on(self) -> None:
        """Change files until the power is gone."""
        try:
            while True:
                way, name = self._chosen.choice(self._ways), self._chosen.choice(self._small)
                self._begun.append(f"{way.__name__} {name}")
                way(name)
        except OSError as error:
            if error.errno not in CUT_OFF:
                raise

    @property
    def _small(self) -> list[str]:
        return [name for name in self._names if name != LARGE]

    def check(self) -> Found:
        """Compare all files, and begin anew."""
        try:
            return self._check()
        except OSError as error:
            return Found(0, 0, [f"{error}; {self._begun[-MOST_TOLD:]}"])

    def _check(self) -> Found:
        promised, lost = 0, []
        self._longer = 0
        for name, history in self._names.items():
            candidates = history.possible
            if len(candidates) == 1 and candidates[0]:
                promised += 1 + candidates[0].promised()
            found, broken = self._found(name, candidates)
            lost += [f"{self.folder.name}/{name}: {one}; {self._begun[-MOST_TOLD:]}" for one in broken]
            self._names[name] = History(found)
            if found:
                round_up(self.folder / name, found)
        with contextlib.suppress(FileNotFoundError):
            (self.folder / "new").unlink()
        self._change = 0
        self._begun = []
        return Found(promised, self._longer, lost)

    def _found(self, name: str, candidates: list[File | None]) -> tuple[File | None, list[str]]:
        """Return which of the files a name stands for, and what is lost if it can be none."""
        try:
            data = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None, [] if None in candidates else ["there is no such file"]
        broken = []
        for candidate in filter(None, reversed(candidates)):
            wrong = self._broken(candidate, data)
            if wrong is not None and self._is_extended(candidate, data):
                self._longer += 1
                wrong = None
            if wrong is None:
                candidate.settle(data)
                return candidate, []
            broken.append(wrong)
        # Whatever it is now, it is a file without a history.
        (self.folder / name).unlink()
        self._create(name)
        os.sync()
        self._promise_name(name)
        return self._names[name].last, broken

    def _is_extended(self, file: File, data: bytes) -> bool:
        """Tell whether recovery has extended a file over blocks behind its end, as that of F2FS does."""
        whole = len(data) % (PAGE_SECTORS * SECTOR_BYTES) == 0
        return self._fs == "f2fs" and whole and self._broken(file, data[: file.largest]) is None

    def _broken(self, file: File, data: bytes) -> str | None:
        # What was overwritten or cut off may be another's by then that had shared it, see shared_cut.py.
        return file.broken(data, anything_else=self._fs == "f2fs" or file.shares)

    # What can be done to a file.

    def overwrite(self, name: str) -> None:
        """Write within the file."""
        file, path = self._file(name)
        first, count = self._range_within(file)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))

    def append(self, name: str) -> None:
        """Write at the end, and make it a promise now and then."""
        file, path = self._file(name)
        first = file.size // SECTOR_BYTES
        if first >= MOST_SECTORS:
            return self.truncate(name)
        count = self._chosen.randint(1, LONGEST_WRITE)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))
            if self._chosen.random() < 0.3:
                self._sync(os.fsync, fd)
                file.promise()
        return None

    def write_large(self, name: str) -> None:
        """Write within the large file or at its end, and make that a promise now and then; no other file."""
        file, path = self._file(LARGE)
        end = file.size // SECTOR_BYTES
        if end > MOST_LARGE_SECTORS:
            file.truncate(LARGE_SECTORS * SECTOR_BYTES)
            os.truncate(path, LARGE_SECTORS * SECTOR_BYTES)
            return
        first = self._chosen.choice((end, self._chosen.randint(0, end)))
        with opened(path) as fd:
            put(fd, first, file.write(first, self._chosen.randint(1, LONGEST_LARGE_WRITE)))
            if self._chosen.random() < 0.1:
                self._sync(os.fsync, fd)
                file.promise()

    def write_beyond(self, name: str) -> None:
        """Write past the end, which leaves a hole."""
        file, path = self._file(name)
        first = min(file.size // SECTOR_BYTES, MOST_SECTORS) + self._chosen.randint(1, 40)
        with opened(path) as fd:
            put(fd, first, file.write(first, self._chosen.randint(1, 16)))

    def write_and_sync(self, name: str) -> None:
        """Write somewhere, and sync the file."""
        self._chosen.choice((self.overwrite, self.append))(name)
        file, path = self._file(name)
        with opened(path) as fd:
            self._sync(self._chosen.choice((os.fsync, os.fdatasync)), fd)
        file.promise()

    def write_synchronously(self, name: str) -> None:
        """Write by a descriptor that promises each write."""
        file, path = self._file(name)
        first, count = self._range_within(file)
        flag = self._chosen.choice((os.O_SYNC, os.O_DSYNC))
        with opened(path, 0 if self._lie else flag) as fd:
            put(fd, first, file.write(first, count))
        has_returned_in_time()
        file.promise_range(first, count)

    def write_directly(self, name: str) -> None:
        """Write past the page cache; that promises nothing."""
        file, path = self._file(name)
        page = self._chosen.randint(0, file.size // SECTOR_BYTES // PAGE_SECTORS)
        data = file.write(page * PAGE_SECTORS, PAGE_SECTORS)
        with mmap.mmap(-1, len(data)) as memory, opened(path, os.O_DIRECT) as fd:
            memory.write(data)
            os.pwritev(fd, [memory], page * PAGE_SECTORS * SECTOR_BYTES)

    def write_mapped(self, name: str) -> None:
        """Write to memory in a process that may die of it, and make it a promise now and then."""
        file, path = self._file(name)
        if not file.size:
            return
        first, count = self._range_within(file)
        count = min(count, file.size // SECTOR_BYTES - first)
        data = file.write(first, count)
        with opened(path) as fd, mmap.mmap(fd, file.size) as memory:
            child = os.fork()
            if not child:
                memory[first * SECTOR_BYTES : (first + count) * SECTOR_BYTES] = data
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                raise OSError(errno.EIO, "a mapped write")
            if self._chosen.random() < 0.5:
                page = first // PAGE_SECTORS * PAGE_SECTORS * SECTOR_BYTES
                self._sync(memory.flush, page, (first + count) * SECTOR_BYTES - page)
                file.promise_range(first, count)

    def write_range(self, name: str) -> None:
        """Write, and have that written back; sync_file_range() promises nothing."""
        file, path = self._file(name)
        first, count = self._range_within(file)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))
            called("sync_file_range", fd, *bytes_of(first, count), SYNC_FILE_RANGE_WRITE_AND_WAIT)

    def truncate(self, name: str) -> None:
        """Cut the file short, or have it end with a hole."""
        file, path = self._file(name)
        size = self._chosen.randint(0, file.size // SECTOR_BYTES + 16) * SECTOR_BYTES
        file.truncate(size)
        os.truncate(path, size)

    def punch(self, name: str) -> None:
        """Punch a hole."""
        self._fallocate(name, PUNCH_HOLE_KEEP_SIZE)

    def zero(self, name: str) -> None:
        """Zero a range."""
        self._fallocate(name, ZERO_RANGE)

    def _fallocate(self, name: str, mode: int) -> None:
        file, path = self._file(name)
        if not file.size:
            return
        first, count = self._range_within(file)
        if self._fs == "ext4":
            # A range that is zeroed beyond the end costs stock ext4 the next synchronous write to that block.
            count = min(count, file.size // SECTOR_BYTES - first)
        file.zero(first, count, keep_size=mode == PUNCH_HOLE_KEEP_SIZE)
        with opened(path) as fd:
            called("fallocate", fd, mode, *bytes_of(first, count))

    def allocate(self, name: str) -> None:
        """Have blocks for a larger file."""
        file, path = self._file(name)
        size = file.size + self._chosen.randint(1, 32) * SECTOR_BYTES
        file.allocate(size)
        with opened(path) as fd:
            os.posix_fallocate(fd, 0, size)

    # What can be done to a name.

    def replace(self, name: str) -> None:
        """Write a new file, sync it, and rename it over the old one."""
        new, path = self._new()
        with opened(path, os.O_CREAT | os.O_TRUNC) as fd:
            self._give_stream(fd)
            put(fd, 0, new.write(0, self._chosen.randint(1, LONGEST_WRITE)))
            self._sync(os.fsync, fd)
            new.promise()
        self._rename(path, name, new)

    def copy(self, name: str) -> None:
        """Replace another file by a copy that shares its blocks, where the filesystem can do that."""
        source, path = self._file(name)
        new, new_path = self._new()
        with opened(path) as fd, opened(new_path, os.O_CREAT | os.O_TRUNC) as new_fd:
            try:
                fcntl.ioctl(new_fd, FICLONE, fd)
            except OSError as error:
                if error.errno in UNSUPPORTED:
                    return
                raise
            new.clone(source)
            self._sync(os.fsync, new_fd)
            new.promise()
        self._rename(new_path, self._chosen.choice(self._small), new)

    def remove(self, name: str) -> None:
        """Remove a file and make another one of that name."""
        _, path = self._file(name)
        self._change += 1
        self._names[name].add(self._change, None)
        path.unlink()
        self._create(name)

    def sync_all(self, name: str) -> None:
        """Sync the filesystem."""
        _, path = self._file(name)
        with opened(path) as fd:
            self._sync(self._sync_filesystem, fd)
        for one in self._names:
            self._promise_name(one)

    def _sync_filesystem(self, fd: int) -> None:
        called("syncfs", fd)
        if self._fs in LEFT_IN_CACHE:
            node = os.open(NODE, os.O_RDONLY)
            try:
                os.fsync(node)
            finally:
                os.close(node)

    def _rename(self, path: Path, name: str, new: File) -> None:
        self._change += 1
        self._names[name].add(self._change, new)
        path.rename(self.folder / name)
        if self._chosen.random() < 0.5:
            self._sync_names()

    def _sync_names(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._sync(os.fsync, fd)
        finally:
            os.close(fd)
        for history in self._names.values():
            history.promise(self._change)

    def _promise_name(self, name: str) -> None:
        history = self._names[name]
        history.promise(self._change)
        for file in filter(None, history.possible):
            file.promise()

    def _create(self, name: str, sectors: int | None = None) -> None:
        self._change += 1
        self._next_file += WRITERS
        file = File(self._next_file)
        if name in self._names:
            self._names[name].add(self._change, file)
        else:
            self._names[name] = History(file)
        with opened(self.folder / name, os.O_CREAT | os.O_EXCL) as fd:
            self._give_stream(fd)
            put(fd, 0, file.write(0, sectors or self._chosen.randint(1, LONGEST_WRITE)))

    def _new(self) -> tuple[File, Path]:
        self._next_file += WRITERS
        return File(self._next_file), self.folder / "new"

    def _file(self, name: str) -> tuple[File, Path]:
        """Return the file that a name stands for now, made if there is none."""
        if self._names[name].last is None:
            self._create(name)
        file = self._names[name].last
        assert file is not None
        return file, self.folder / name

    def _range_within(self, file: File) -> tuple[int, int]:
        first = self._chosen.randint(0, max(0, file.size // SECTOR_BYTES - 1))
        return first, self._chosen.randint(1, LONGEST_WRITE)

    def _give_stream(self, fd: int) -> None:
        stream = self._chosen.randint(0, 4)
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0))

    def _sync(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._lie:
            call(*arguments)
        has_returned_in_time()


@contextlib.contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file for reading and writing, as a descriptor."""
    fd = os.open(path, os.O_RDWR | flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


def mend_superblock(fs: str) -> bool:
    """Have a filesystem mended that cannot be mounted, where that is stock's; return whether it is.

    A superblock of ext4 has two sectors. One that was torn is wrong by its checksum, and e2fsck goes on with
    a copy of it and with the journal. Whatever else it finds is a loss.
    """
    if fs != "ext4":
        return False
    look = subprocess.run(["dumpe2fs", "-h", str(NODE)], capture_output=True, text=True, check=False)
    if TORN not in look.stderr:
        return False
    mend = subprocess.run(["e2fsck", "-fy", str(NODE)], capture_output=True, text=True, check=False)
    other = re.search(r"Inode \d|[Jj]ournal superblock|has been deleted", mend.stdout)
    return mend.returncode <= MENDED and not other


def round_up(path: Path, file: File) -> None:
    """Have a file end with a whole block of its own, and no blocks behind it.

    F2FS, stock's too, leaves in the last block what was cut off. XFS warns when a file that has written
    blocks behind its end grows over them, see blocks_behind.py.
    """
    block = PAGE_SECTORS * SECTOR_BYTES
    last = file.size // block * block
    if last < file.size:
        with path.open("r+b", buffering=0) as written:
            written.seek(last)
            data = written.read()
            written.seek(last)
            written.write(data.ljust(block, b"\0"))
    os.truncate(path, path.stat().st_size)
    file.settle(path.read_bytes())


def has_returned_in_time() -> None:
    """Fail as the call before should have if the power was gone when it returned: then nobody heard of it.

    Filesystems may call a sync done that comes after they have given up, stock ones too: XFS that of a
    directory, F2FS syncfs().
    """
    if POWER.read_text() != "1\n":
        raise OSError(errno.EIO, "the power is gone")


def put(fd: int, first: int, data: bytes) -> None:
    """Write sectors."""
    if os.pwrite(fd, data, first * SECTOR_BYTES) != len(data):
        raise OSError(errno.EIO, "a short write")


def writer_process(writer: Writer, orders: Connection, answers: Connection) -> None:
    """Do as told: begin, go_on, check."""
    while True:
        answers.send(getattr(writer, orders.recv())())


class Machine:
    """A device, its filesystem and the processes that write there.

    Attributes:
        passes: passes of AG-aware writeback's workers, over all cuts.
    """

    def __init__(self, fs: str, seed: int, *, lie: bool) -> None:
        """Make the device and start the writers."""
        self._fs = fs
        self._chosen = random.Random(seed)
        self._log = Log()
        self.passes = 0
        DEVICE.mkdir()
        for name, value in {**ATTRIBUTES, "seed": seed, "power": 1}.items():
            (DEVICE / name).write_text(str(value))
        self._bdi = Path("/sys/class/bdi") / Path("/sys/class/block/cuts/dev").read_text().strip()
        MOUNT.mkdir(exist_ok=True)
        # Where orders go and where answers come from; pipes, for the guest has no sockets.
        self._writers: list[tuple[Connection, Connection]] = []
        for number in range(WRITERS):
            orders, order = Pipe(duplex=False)
            answer, answers = Pipe(duplex=False)
            writer = Writer(fs, number, seed, lie=lie)
            Process(target=writer_process, args=(writer, orders, answers), daemon=True).start()
            answers.close()
            self._writers.append((order, answer))

    def fresh(self) -> None:
        """Make a filesystem and files."""
        subprocess.run([*MAKE[self._fs], str(NODE)], check=True)
        self._mount()
        self._all("begin")
        subprocess.run(["sync", "-f", str(MOUNT)], check=True)

    def cut(self) -> dict[str, str]:
        """Write for a while and cut the power; return the settings that were in force."""
        way = self._set()
        root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
        for order, _ in self._writers:
            order.send("go_on")
        self._wait_while_they_write()
        # Each cut has its own of what is gone, kept and torn.
        (DEVICE / "seed").write_text(str(self._chosen.getrandbits(64)))
        with self._log.only_reports():
            POWER.write_text("0")
            # It may have noticed by itself, and says so.
            with contextlib.suppress(OSError):
                fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
            for _, answer in self._writers:
                answer.recv()
            if XFS_COUNTERS.exists():
                self.passes += passes(XFS_COUNTERS)
            os.close(root)
            subprocess.run(["umount", str(MOUNT)], check=True)
        POWER.write_text("1")
        return way

    def _wait_while_they_write(self) -> None:
        seconds = self._chosen.uniform(0.01, LONGEST_LOAD_S)
        contexts = self._bdi / "nwritebacks"
        other = self._chosen.choice(WAYS["nwritebacks"])
        if self._chosen.random() < 0.5 and contexts.exists():
            time.sleep(seconds / 2)
            contexts.write_text(other)
            time.sleep(seconds / 2)
        else:
            time.sleep(seconds)

    def recover(self) -> Found:
        """Mount, check and compare."""
        mended = 0
        try:
            self._mount()
        except subprocess.CalledProcessError:
            said = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()
            if not mend_superblock(self._fs):
                return Found(0, 0, [f"it cannot be mounted: {said[-MOST_SAID:]}"])
            self._mount()
            mended = 1
        subprocess.run(["umount", str(MOUNT)], check=True)
        check = subprocess.run([*CHECK[self._fs], str(NODE)], capture_output=True, text=True, check=False)
        lost = [f"{CHECK[self._fs][0]}: {check.stdout}{check.stderr}"] if check.returncode else []
        self._mount()
        found = self._all("check")
        subprocess.run(["sync", "-f", str(MOUNT)], check=True)
        for one in found:
            lost += one.lost
        return Found(sum(one.promised for one in found), sum(one.longer for one in found), lost, mended)

    def remove(self) -> None:
        """Unmount the filesystem, unless it could not be mounted."""
        if os.path.ismount(MOUNT):
            subprocess.run(["umount", str(MOUNT)], check=True)

    def _mount(self) -> None:
        subprocess.run(["mount", "-t", self._fs, str(NODE), str(MOUNT)], check=True)

    def _all(self, what: str) -> list[Found]:
        for order, _ in self._writers:
            order.send(what)
        return [answer.recv() for _, answer in self._writers]

    def _set(self) -> dict[str, str]:
        """Choose how to write back; what a kernel does not have is left out."""
        for name, number in self._chosen.choice(FLUSHING).items():
            Path("/proc/sys/vm", name).write_text(str(number))
        way = {}
        for name, values in WAYS.items():
            value = self._chosen.choice(values)
            if (self._bdi / name).exists():
                (self._bdi / name).write_text(value)
                way[name] = value
        mode = self._chosen.choice(MODES)
        for name in ("overwrite", "delalloc"):
            if (XFS_MODES / name).exists():
                (XFS_MODES / name).write_text(mode)
                way["mode"] = mode
        return way


def main() -> int:
    """Cut the power so often, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fs", choices=MAKE)
    parser.add_argument("seed", type=int)
    parser.add_argument("cuts", type=int)
    parser.add_argument("--lie", action="store_true")
    asked = parser.parse_args()
    machine = Machine(asked.fs, asked.seed, lie=asked.lie)
    promised, longer, mended, lost = 0, 0, 0, []
    settings: Counter[str] = Counter()
    used = CUTS_PER_MKFS
    for number in range(asked.cuts):
        if used == CUTS_PER_MKFS:
            if number:
                machine.remove()
            machine.fresh()
            used = 0
        used += 1
        way = machine.cut()
        settings.update(f"{name} {value}" for name, value in way.items())
        found = machine.recover()
        promised += found.promised
        longer += found.longer
        mended += found.mended
        if found.lost:
            # What is broken need not be found again and again.
            used = CUTS_PER_MKFS
        lost += [{"cut": number, "way": way, "what": what[:2000]} for what in found.lost]
    machine.remove()
    counts = {"promised": promised, "longer": longer, "mended": mended, "passes": machine.passes}
    print(json.dumps({**counts, "lost": lost, "settings": settings}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
