# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what is done to files while the power is cut, see cuts.py.

Every way that makes or breaks a promise is a method of one class, which does it and notes what was promised.
Standard library only.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from guest.layout import SET_STREAM, WRITE_STREAM
from tests.guest.cut_calls import (
    AT_FDCWD,
    FICLONE,
    MODES,
    RENAME_EXCHANGE,
    RWF_DONTCACHE,
    SYNC_FILE_RANGE_WRITE_AND_WAIT,
    bytes_of,
    called,
    flush_device,
    has_returned_in_time,
    opened,
    put,
)
from tests.guest.cut_names import Names
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File
from tests.guest.resize import store

MOST_SECTORS = 512
LONGEST_WRITE = 64
# A file that AG-aware writeback takes for large: of more than 4 MiB in the page cache.
LARGE = "large"
LARGE_SECTORS = 12_000
LEAST_LARGE_SECTORS, MOST_LARGE_SECTORS = 9_000, 14_000
LONGEST_LARGE_WRITE = 512
# So often what was appended to a file is synced.
SYNCED_SHARE, SYNCED_LARGE_SHARE = 0.3, 0.1
LONGEST_SHIFT_PAGES = 16
# The device has so many, and where it is not to hear of them XFS has more of its own.
STREAMS = 4

# Stock's syncfs() leaves overwritten data in the device's cache there, see syncfs_cut.py.
LEFT_IN_CACHE = ("xfs", "f2fs")
# These write over the blocks that a file has, so that what was written needs no metadata to be found.
IN_PLACE = ("xfs", "ext4")
# To sync a new file is to sync its name: both are in one transaction, and the log is written in order.
SYNCED_WITH_NAME = ("xfs", "ext4")
# What a filesystem answers that does not have something, or not for this file or with these settings.
REFUSED = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}


class Operations:
    """What can be done to the files of a folder, and what that promises.

    Attributes:
        names: what the folder's names may stand for.
        taken: how often the filesystem took each thing that it may refuse.
    """

    def __init__(
        self, fs: str, folder: Path, numbers: Iterator[int], chosen: random.Random, *, lie: bool
    ) -> None:
        """Begin without files; each gets the next number. ``lie``: promise without a sync."""
        self._fs = fs
        self._folder = folder
        self._numbers = numbers
        self._chosen = chosen
        self._lie = lie
        self.names = Names(folder)
        self.taken: Counter[str] = Counter()

    def begin(self, names: Sequence[str]) -> None:
        """Make the files of a fresh filesystem, which has the folders for them."""
        self.names = Names(self._folder)
        for name in names:
            self.create(name)
        os.sync()
        self.names.promise_all()

    def has(self, mode: int) -> bool:
        """Tell whether the filesystem has a mode of fallocate(), by a file of its own."""
        path = self.names.new
        with opened(path, os.O_CREAT) as fd:
            put(fd, 0, bytes(4 * PAGE_SECTORS * SECTOR_BYTES))
            path.unlink()
            try:
                called("fallocate", fd, mode, *bytes_of(PAGE_SECTORS, PAGE_SECTORS))
            except OSError as error:
                if error.errno in REFUSED:
                    return False
                raise
        return True

    def create(self, name: str) -> None:
        """Make a file of a name that no file has."""
        file = File(next(self._numbers))
        self.names.create(name, file)
        with opened(self._folder / name, os.O_CREAT | os.O_EXCL) as fd:
            self._give_stream(fd)
            put(fd, 0, file.write(0, self._whole(name)))

    # What can be done to a file.

    def overwrite(self, name: str) -> None:
        """Write within the file."""
        file, path = self._file(name)
        first, count = self._range_within(file, name)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))

    def append(self, name: str) -> None:
        """Write at the end, and make it a promise now and then."""
        file, path = self._file(name)
        first = file.size // SECTOR_BYTES
        if first >= (MOST_LARGE_SECTORS if name == LARGE else MOST_SECTORS):
            return self.truncate(name)
        with opened(path) as fd:
            put(fd, first, file.write(first, self._some(name)))
            if self._chosen.random() < (SYNCED_LARGE_SHARE if name == LARGE else SYNCED_SHARE):
                self._sync_file(file, os.fsync, fd)
        return None

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
            self._sync_file(file, self._chosen.choice((os.fsync, os.fdatasync)), fd)

    def write_synchronously(self, name: str) -> None:
        """Write by a descriptor that promises each write."""
        file, path = self._file(name)
        first, count = self._range_within(file, name)
        flag = self._chosen.choice((os.O_SYNC, os.O_DSYNC))
        with opened(path, 0 if self._lie else flag) as fd:
            put(fd, first, file.write(first, count))
        has_returned_in_time()
        file.promise_range(first, count)

    def write_directly(self, name: str) -> None:
        """Write past the page cache, and half of the time by a descriptor that promises each write."""
        file, path = self._file(name)
        page = self._chosen.randint(0, file.size // SECTOR_BYTES // PAGE_SECTORS)
        grows = (page + 1) * PAGE_SECTORS * SECTOR_BYTES > file.size
        data = file.write(page * PAGE_SECTORS, PAGE_SECTORS)
        is_promised = self._chosen.random() < 0.5
        flags = os.O_DIRECT | (os.O_DSYNC if is_promised and not self._lie else 0)
        with mmap.mmap(-1, len(data)) as memory, opened(path, flags) as fd:
            memory.write(data)
            put(fd, page * PAGE_SECTORS, memory)
        # F2FS syncs the file before it has its new size, see direct_cut.py.
        if is_promised and not (grows and self._fs == "f2fs"):
            has_returned_in_time()
            file.promise_range(page * PAGE_SECTORS, PAGE_SECTORS)

    def write_flagged(self, name: str) -> None:
        """Write with a flag of its own: one that promises the write, or one that drops its pages soon."""
        file, path = self._file(name)
        first, count = self._range_within(file, name)
        is_promised = self._chosen.random() < 0.5
        with opened(path) as fd:
            data = file.write(first, count)
            if is_promised:
                put(fd, first, data, 0 if self._lie else os.RWF_DSYNC)
                has_returned_in_time()
                file.promise_range(first, count)
            elif not self._is_taken("dontcache", put, fd, first, data, RWF_DONTCACHE):
                put(fd, first, data)

    def write_mapped(self, name: str) -> None:
        """Write to memory in a process that may die of it, and make it a promise now and then."""
        file, path = self._file(name)
        if not file.size:
            return
        first, count = self._range_within(file, name)
        count = min(count, file.size // SECTOR_BYTES - first)
        data = file.write(first, count)
        with opened(path) as fd, mmap.mmap(fd, file.size) as memory:
            child = os.fork()
            if not child:
                store(memory, first * SECTOR_BYTES, data)
                os._exit(0)
            if os.waitpid(child, 0)[1]:
                raise OSError(errno.EIO, "a mapped write")
            if self._chosen.random() < 0.5:
                page = first // PAGE_SECTORS * PAGE_SECTORS * SECTOR_BYTES
                self._sync(memory.flush, page, (first + count) * SECTOR_BYTES - page)
                file.promise_range(first, count)

    def write_range(self, name: str) -> None:
        """Write, and have that written back.

        With a flush of the device sync_file_range() is a promise where the file's blocks stay what they are.
        """
        file, path = self._file(name)
        first, count = self._range_within(file, name)
        count = max(1, min(count, file.size // SECTOR_BYTES - first))
        is_promised = self._fs in IN_PLACE and file.is_in_place(first, count)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))
            self._sync(called, "sync_file_range", fd, *bytes_of(first, count), SYNC_FILE_RANGE_WRITE_AND_WAIT)
        if is_promised:
            self._sync(flush_device)
            file.promise_range(first, count, has_metadata=False)
            self.taken["sync_file_range"] += 1

    def truncate(self, name: str) -> None:
        """Cut the file short, or have it end with a hole."""
        file, path = self._file(name)
        end = file.size // SECTOR_BYTES
        # The large one stays large.
        least, most = (LEAST_LARGE_SECTORS, max(LEAST_LARGE_SECTORS, end)) if name == LARGE else (0, end + 16)
        size = self._chosen.randint(least, most) * SECTOR_BYTES
        file.truncate(size)
        os.truncate(path, size)

    def punch(self, name: str) -> None:
        """Punch a hole."""
        self._fallocate(name, MODES["punch"])

    def zero(self, name: str) -> None:
        """Zero a range."""
        self._fallocate(name, MODES["zero"])

    def _fallocate(self, name: str, mode: int) -> None:
        file, path = self._file(name)
        if not file.size:
            return
        first, count = self._range_within(file, name)
        if self._fs == "ext4":
            # A range that is zeroed beyond the end costs stock ext4 the next synchronous write to that block.
            count = min(count, file.size // SECTOR_BYTES - first)
        file.zero(first, count, keep_size=mode == MODES["punch"])
        with opened(path) as fd:
            called("fallocate", fd, mode, *bytes_of(first, count))

    def collapse(self, name: str) -> None:
        """Take blocks out of the file."""
        self._shift(name, "collapse", File.collapse)

    def insert(self, name: str) -> None:
        """Put a hole into the file, before what is there."""
        self._shift(name, "insert", File.insert)

    def _shift(self, name: str, what: str, noted: Callable[[File, int, int], None]) -> None:
        file, path = self._file(name)
        pages = file.size // SECTOR_BYTES // PAGE_SECTORS
        # The end is elsewhere, for the kernel refuses it.
        if pages < 2:
            return
        page = self._chosen.randint(0, pages - 2)
        count = self._chosen.randint(1, min(LONGEST_SHIFT_PAGES, pages - 1 - page))
        first, sectors = page * PAGE_SECTORS, count * PAGE_SECTORS
        noted(file, first, sectors)
        with opened(path) as fd:
            called("fallocate", fd, MODES[what], *bytes_of(first, sectors))
            if self._chosen.random() < 0.5:
                self._sync_file(file, os.fsync, fd)
        self.taken[what] += 1

    def reserve(self, name: str) -> None:
        """Have blocks behind the end of the file."""
        file, path = self._file(name)
        with opened(path) as fd:
            called("fallocate", fd, MODES["reserve"], *bytes_of(file.size // SECTOR_BYTES, self._some(name)))
        self.taken["reserve"] += 1

    def unshare(self, name: str) -> None:
        """Have blocks of its own for a range that may be shared; it holds what it held."""
        file, path = self._file(name)
        with opened(path) as fd:
            called("fallocate", fd, MODES["unshare"], *bytes_of(*self._range_within(file, name)))
        self.taken["unshare"] += 1

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
            put(fd, 0, new.write(0, self._whole(name)))
            self._sync(os.fsync, fd)
            new.promise()
        self._rename(path, name, new)

    def copy(self, name: str) -> None:
        """Replace another file by a copy that shares its blocks, where the filesystem can do that."""
        source, path = self._file(name)
        new, new_path = self._new()
        with opened(path) as fd, opened(new_path, os.O_CREAT | os.O_TRUNC) as new_fd:
            if not self._is_taken("copy", fcntl.ioctl, new_fd, FICLONE, fd):
                return
            new.clone(source)
            self._sync(os.fsync, new_fd)
            new.promise()
        self._rename(new_path, LARGE if name == LARGE else self._chosen.choice(self._small), new)

    def link(self, name: str) -> None:
        """Have a file by another name, too."""
        file, path = self._file(name)
        target = self._chosen.choice(self._small)
        # To rename one name of a file to another one does nothing.
        if self.names.file(target) is file:
            return
        new = self.names.new
        new.unlink(missing_ok=True)
        os.link(path, new)
        self._rename(new, target, file)

    def move(self, name: str) -> None:
        """Rename a file to another name, whose file is gone then."""
        file, path = self._file(name)
        target = self._chosen.choice(self._small)
        if self.names.file(target) is file:
            return
        self.names.change((name, None), (target, file))
        path.rename(self._folder / target)
        self._sync_names_at_times(target)
        self._sync_names_at_times(name)

    def exchange(self, name: str) -> None:
        """Have two files change their names."""
        file, path = self._file(name)
        target = self._chosen.choice(self._small)
        other, other_path = self._file(target)
        self.names.change((name, other), (target, file))
        paths = os.fsencode(path), AT_FDCWD, os.fsencode(other_path)
        called("renameat2", AT_FDCWD, *paths, RENAME_EXCHANGE)
        self._sync_names_at_times(target)

    def make_folder(self, name: str) -> None:
        """Make a folder, or remove it."""
        is_there = self.names.is_made.last
        self.names.change_made()
        (Path.rmdir if is_there else Path.mkdir)(self.names.made)
        self._sync_names_at_times(self.names.made.name)

    def remove(self, name: str) -> None:
        """Remove a file and make another one of that name."""
        _, path = self._file(name)
        self.names.change((name, None))
        path.unlink()
        self._sync_names_at_times(name)
        self.create(name)
        self._sync_names_at_times(name)

    def sync_all(self, name: str) -> None:
        """Sync the filesystem, or all filesystems."""
        _, path = self._file(name)
        with opened(path) as fd:
            self._sync(self._sync_filesystem, fd)
        self.names.promise_all()

    def _sync_filesystem(self, fd: int) -> None:
        # POSIX lets sync() return before anything is written; Linux waits.
        if self._chosen.random() < 0.5:
            os.sync()
        else:
            called("syncfs", fd)
        if self._fs in LEFT_IN_CACHE:
            flush_device()

    def _rename(self, path: Path, name: str, new: File) -> None:
        self.names.change((name, new))
        path.rename(self._folder / name)
        self._sync_names_at_times(name)

    def _sync_names_at_times(self, name: str) -> None:
        """Sync the folder of a name, half of the time."""
        if self._chosen.random() >= 0.5:
            return
        folder = (self._folder / name).parent
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._sync(os.fsync, fd)
        finally:
            os.close(fd)
        self.names.promise_folder(folder)

    @property
    def _small(self) -> list[str]:
        return [name for name in self.names if name != LARGE]

    def _new(self) -> tuple[File, Path]:
        return File(next(self._numbers)), self.names.new

    def _file(self, name: str) -> tuple[File, Path]:
        """Return the file that a name stands for now, made if there is none."""
        if self.names.file(name) is None:
            self.create(name)
        file = self.names.file(name)
        assert file is not None
        return file, self._folder / name

    def _range_within(self, file: File, name: str) -> tuple[int, int]:
        return self._chosen.randint(0, max(0, file.size // SECTOR_BYTES - 1)), self._some(name)

    def _some(self, name: str) -> int:
        """Choose how many sectors to change."""
        return self._chosen.randint(1, LONGEST_LARGE_WRITE if name == LARGE else LONGEST_WRITE)

    def _whole(self, name: str) -> int:
        """Choose how many sectors a new file has."""
        return LARGE_SECTORS if name == LARGE else self._some(name)

    def _give_stream(self, fd: int) -> None:
        if stream := self._chosen.randint(0, STREAMS):
            self._is_taken(
                "stream", fcntl.ioctl, fd, WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0)
            )

    def _is_taken(self, what: str, call: Callable[..., object], *arguments: object) -> bool:
        """Ask for something that a filesystem may refuse; count it where it does not."""
        try:
            call(*arguments)
        except OSError as error:
            if error.errno in REFUSED:
                return False
            raise
        self.taken[what] += 1
        return True

    def _sync_file(self, file: File, call: Callable[[int], None], fd: int) -> None:
        """Sync a file that is open, and note what that promises."""
        self._sync(call, fd)
        file.promise()
        if self._fs in SYNCED_WITH_NAME:
            self.names.promise_only(file)

    def _sync(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._lie:
            call(*arguments)
        has_returned_in_time()
