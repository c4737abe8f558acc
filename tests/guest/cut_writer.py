# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: who writes while the power is cut, see cuts.py.

A writer changes files of its own in every way that makes or breaks a promise, notes what was promised, and
compares them after the cut. With ``lie`` nothing is synced and yet promised. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from guest.layout import SET_STREAM, WRITE_STREAM
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File, History
from tests.guest.resize import shared_words

WRITERS = 4
# Names of small files, in two folders.
SMALL = ("file0", "file1", "file2", "file3", "other/file4", "other/file5")
MOST_SECTORS = 512
LONGEST_WRITE = 64
# One writer has a file that AG-aware writeback takes for large: of more than 4 MiB in the page cache.
LARGE = "large"
LARGE_SECTORS = 12_000
LEAST_LARGE_SECTORS, MOST_LARGE_SECTORS = 9_000, 14_000
LONGEST_LARGE_WRITE = 512
# So often that writer writes it, and so often what was appended to a file is synced.
LARGE_SHARE = 0.5
SYNCED_SHARE, SYNCED_LARGE_SHARE = 0.3, 0.1
# The device has so many, and where it is not to hear of them XFS has more of its own.
STREAMS = 4
# Operations that are told where something is lost.
MOST_TOLD = 60

NODE = Path("/dev/cuts")
MOUNT = Path("/tmp/cuts")
POWER = Path("/sys/kernel/config/labblk/cuts/power")

# Stock's syncfs() leaves overwritten data in the device's cache there, see syncfs_cut.py.
LEFT_IN_CACHE = ("xfs", "f2fs")
# These write over the blocks that a file has, so that what was written needs no metadata to be found. And
# their journal keeps the order in which names change; F2FS brings back a synced file by itself.
JOURNALED = ("xfs", "ext4")
FICLONE = 0x40049409
# Modes of fallocate(), by what is done with them.
MODES = {"punch": 0x03, "zero": 0x10, "collapse": 0x08, "insert": 0x20, "reserve": 0x01, "unshare": 0x41}
LONGEST_SHIFT_PAGES = 16
# Of renameat2().
RENAME_EXCHANGE, AT_FDCWD = 2, -100
SYNC_FILE_RANGE_WRITE_AND_WAIT = 7
RWF_DONTCACHE = 0x80
# What a filesystem without power answers.
CUT_OFF = {errno.EIO, errno.EROFS, errno.ESHUTDOWN}
# What a filesystem answers that does not have something, or not for this file or with these settings.
REFUSED = {errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL}

LIBC = ctypes.CDLL(None, use_errno=True)


def called(name: str, *arguments: object) -> None:
    """Call a function of the C library that Python does not have, or fall over its error."""
    if getattr(LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)


def bytes_of(first: int, count: int) -> tuple[ctypes.c_long, ctypes.c_long]:
    """Return the offset and the length of sectors in bytes, for a function of the C library."""
    return ctypes.c_long(first * SECTOR_BYTES), ctypes.c_long(count * SECTOR_BYTES)


@dataclass(frozen=True)
class Found:
    """What a check has found.

    Attributes:
        promised: sectors and names that had to be there.
        longer: files that hold what was promised, and more behind it.
        lost: what is lost, a text each.
        taken: how often the filesystem took each thing that it may refuse.
        mended: filesystems that could be mounted only after their superblock had been mended.
    """

    promised: int
    longer: int
    lost: list[str]
    taken: Counter[str] = field(default_factory=Counter)
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
        # Whether there is a folder that is made and removed.
        self._made = History(False)
        self._refused: set[str] = set()
        # What was begun since the last check, for who wants to know how something was lost.
        self._begun: list[str] = []
        self._longer = 0
        self._taken: Counter[str] = Counter()
        # Operations since the start, for who waits for them.
        self.done = shared_words(1)
        # By fallocate().
        allocated = [self.punch, self.zero, self.collapse, self.insert, self.reserve, self.unshare]
        self._ways: list[Callable[[str], None]] = [
            *[self.overwrite] * 4,
            *[self.append] * 4,
            *[self.write_and_sync] * 3,
            *[self.write_synchronously] * 2,
            *[self.write_mapped] * 2,
            self.write_beyond,
            *[self.write_directly] * 2,
            *[self.write_range] * 2,
            self.write_flagged,
            self.truncate,
            *allocated,
            self.allocate,
            self.replace,
            self.replace,
            self.copy,
            self.link,
            self.move,
            self.exchange,
            self.remove,
            self.make_folder,
            self.sync_all,
        ]
        self._large_ways: list[Callable[[str], None]] = [
            *[self.overwrite] * 6,
            *[self.append] * 6,
            *[self.write_synchronously] * 2,
            *[self.write_mapped] * 2,
            *[self.truncate] * 2,
            self.write_and_sync,
            *[self.write_directly] * 2,
            *[self.write_range] * 2,
            self.write_flagged,
            *allocated,
            self.replace,
            self.copy,
        ]

    def begin(self) -> None:
        """Make the files of a fresh filesystem."""
        (self.folder / "other").mkdir(parents=True)
        self._names, self._begun, self._made = {}, [], History(False)
        self._change = 0
        self._refused = {what for what, mode in MODES.items() if not self._has(mode)}
        for name in SMALL:
            self._create(name)
        if self._has_large:
            self._create(LARGE)
        os.sync()
        for name in self._names:
            self._promise_name(name)

    def _has(self, mode: int) -> bool:
        """Try a mode of fallocate() with a file of its own."""
        path = self.folder / "new"
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

    def go_on(self) -> None:
        """Change files until the power is gone."""
        try:
            while True:
                is_large = self._has_large and self._chosen.random() < LARGE_SHARE
                way = self._chosen.choice(self._large_ways if is_large else self._ways)
                name = LARGE if is_large else self._chosen.choice(self._small)
                if way.__name__ in self._refused:
                    continue
                self._begun.append(f"{way.__name__} {name}")
                way(name)
                self.done[0] += 1
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
        histories = dict(self._names)
        fitting = {name: self._fitting(name) for name in self._names} if self._fs in JOURNALED else {}
        for name, history in self._names.items():
            candidates = history.possible
            if len(candidates) == 1 and candidates[0]:
                promised += 1 + candidates[0].promised()
            found, broken = self._found(name, candidates)
            lost += [f"{self.folder.name}/{name}: {one}; {self._begun[-MOST_TOLD:]}" for one in broken]
            self._names[name] = History(found)
            if found:
                round_up(self.folder / name, found)
        if fitting and not lost and not were_together(histories, fitting):
            lost.append(f"{self.folder.name}: the names were never so at once; {self._begun[-MOST_TOLD:]}")
        if (self.folder / "made").is_dir() not in self._made.possible:
            lost.append(f"{self.folder.name}/made is not what it was; {self._begun[-MOST_TOLD:]}")
        self._made = History((self.folder / "made").is_dir())
        self._drop_second_names()
        self._forget_sharing()
        with contextlib.suppress(FileNotFoundError):
            (self.folder / "new").unlink()
        self._change = 0
        self._begun = []
        taken, self._taken = self._taken, Counter()
        return Found(promised, self._longer, lost, taken)

    def _fitting(self, name: str) -> list[int]:
        """Return which of its possible values a name may stand for by what is found, by their places."""
        possible = self._names[name].possible
        path = self.folder / name
        if len(possible) == 1:
            return [0]
        if not path.exists():
            return [place for place, one in enumerate(possible) if one is None]
        data = path.read_bytes()
        return [place for place, one in enumerate(possible) if one and self._broken(one, data) is None]

    def _drop_second_names(self) -> None:
        """Remove names of files that have another one, so that each file is told by its name."""
        known: list[File] = []
        for name, history in self._names.items():
            if history.last in known:
                (self.folder / name).unlink()
                self._names[name] = History(None)
            elif history.last:
                known.append(history.last)

    def _forget_sharing(self) -> None:
        """Note that a file does not share its blocks any more when the others are gone."""
        if (self.folder / "new").exists():
            return
        sharing = [one.last for one in self._names.values() if one.last and one.last.shares]
        if len(sharing) == 1:
            sharing[0].shares = False

    def _found(self, name: str, candidates: list[File | None]) -> tuple[File | None, list[str]]:
        """Return which of the files a name stands for, and what is lost if it can be none."""
        try:
            data = (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None, [] if None in candidates else ["there is no such file"]
        broken = [] if any(candidates) else ["there is a file, which was removed"]
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
                self._sync(os.fsync, fd)
                file.promise()
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
            self._sync(self._chosen.choice((os.fsync, os.fdatasync)), fd)
        file.promise()

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
        data = file.write(page * PAGE_SECTORS, PAGE_SECTORS)
        is_promised = self._chosen.random() < 0.5
        flags = os.O_DIRECT | (os.O_DSYNC if is_promised and not self._lie else 0)
        with mmap.mmap(-1, len(data)) as memory, opened(path, flags) as fd:
            memory.write(data)
            os.pwritev(fd, [memory], page * PAGE_SECTORS * SECTOR_BYTES)
        if is_promised:
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
                memory[first * SECTOR_BYTES : (first + count) * SECTOR_BYTES] = data
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
        is_promised = self._fs in JOURNALED and file.is_in_place(first, count)
        with opened(path) as fd:
            put(fd, first, file.write(first, count))
            self._sync(called, "sync_file_range", fd, *bytes_of(first, count), SYNC_FILE_RANGE_WRITE_AND_WAIT)
        if is_promised:
            self._sync(flush_device)
            file.promise_range(first, count)
            self._taken["sync_file_range"] += 1

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
                self._sync(os.fsync, fd)
                file.promise()
        self._taken[what] += 1

    def reserve(self, name: str) -> None:
        """Have blocks behind the end of the file."""
        file, path = self._file(name)
        with opened(path) as fd:
            called("fallocate", fd, MODES["reserve"], *bytes_of(file.size // SECTOR_BYTES, self._some(name)))
        self._taken["reserve"] += 1

    def unshare(self, name: str) -> None:
        """Have blocks of its own for a range that may be shared; it holds what it held."""
        file, path = self._file(name)
        with opened(path) as fd:
            called("fallocate", fd, MODES["unshare"], *bytes_of(*self._range_within(file, name)))
        self._taken["unshare"] += 1

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
        if self._names[target].last is file:
            return
        new = self.folder / "new"
        new.unlink(missing_ok=True)
        os.link(path, new)
        self._rename(new, target, file)

    def move(self, name: str) -> None:
        """Rename a file to another name, whose file is gone then."""
        file, path = self._file(name)
        target = self._chosen.choice(self._small)
        if self._names[target].last is file:
            return
        self._change += 1
        self._names[name].add(self._change, None)
        self._names[target].add(self._change, file)
        path.rename(self.folder / target)
        self._sync_names_at_times(target)
        self._sync_names_at_times(name)

    def exchange(self, name: str) -> None:
        """Have two files change their names."""
        file, path = self._file(name)
        target = self._chosen.choice(self._small)
        other, other_path = self._file(target)
        self._change += 1
        self._names[name].add(self._change, other)
        self._names[target].add(self._change, file)
        paths = os.fsencode(path), AT_FDCWD, os.fsencode(other_path)
        called("renameat2", AT_FDCWD, *paths, RENAME_EXCHANGE)
        self._sync_names_at_times(target)

    def make_folder(self, name: str) -> None:
        """Make a folder, or remove it."""
        is_there = self._made.last
        self._change += 1
        self._made.add(self._change, not is_there)
        (Path.rmdir if is_there else Path.mkdir)(self.folder / "made")
        self._sync_names_at_times("made")

    def remove(self, name: str) -> None:
        """Remove a file and make another one of that name."""
        _, path = self._file(name)
        self._change += 1
        self._names[name].add(self._change, None)
        path.unlink()
        self._sync_names_at_times(name)
        self._create(name)
        self._sync_names_at_times(name)

    def sync_all(self, name: str) -> None:
        """Sync the filesystem, or all filesystems."""
        _, path = self._file(name)
        with opened(path) as fd:
            self._sync(self._sync_filesystem, fd)
        for one in self._names:
            self._promise_name(one)
        self._made.promise(self._change)

    def _sync_filesystem(self, fd: int) -> None:
        # POSIX lets sync() return before anything is written; Linux waits.
        if self._chosen.random() < 0.5:
            os.sync()
        else:
            called("syncfs", fd)
        if self._fs in LEFT_IN_CACHE:
            flush_device()

    def _rename(self, path: Path, name: str, new: File) -> None:
        self._change += 1
        self._names[name].add(self._change, new)
        path.rename(self.folder / name)
        self._sync_names_at_times(name)

    def _sync_names_at_times(self, name: str) -> None:
        """Sync the folder of a name, half of the time."""
        if self._chosen.random() >= 0.5:
            return
        folder = (self.folder / name).parent
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._sync(os.fsync, fd)
        finally:
            os.close(fd)
        for one, history in self._names.items():
            if (self.folder / one).parent == folder:
                history.promise(self._change)
        if folder == self.folder:
            self._made.promise(self._change)

    def _promise_name(self, name: str) -> None:
        history = self._names[name]
        history.promise(self._change)
        for file in filter(None, history.possible):
            file.promise()

    def _create(self, name: str) -> None:
        self._change += 1
        self._next_file += WRITERS
        file = File(self._next_file)
        if name in self._names:
            self._names[name].add(self._change, file)
        else:
            self._names[name] = History(file)
        with opened(self.folder / name, os.O_CREAT | os.O_EXCL) as fd:
            self._give_stream(fd)
            put(fd, 0, file.write(0, self._whole(name)))

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
        self._taken[what] += 1
        return True

    def _sync(self, call: Callable[..., object], *arguments: object) -> None:
        if not self._lie:
            call(*arguments)
        has_returned_in_time()


def were_together(names: dict[str, History[File | None]], fitting: dict[str, list[int]]) -> bool:
    """Tell whether there was a moment when each name stood for one of those that fit it."""
    moments = {begin for history in names.values() for begin in history.begins}
    return any(
        all(history.was(moment, fitting[name]) for name, history in names.items()) for moment in moments
    )


@contextlib.contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file for reading and writing, as a descriptor."""
    fd = os.open(path, os.O_RDWR | flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


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


def flush_device() -> None:
    """Have the device write what its cache holds."""
    node = os.open(NODE, os.O_RDONLY)
    try:
        os.fsync(node)
    finally:
        os.close(node)


def has_returned_in_time() -> None:
    """Fail as the call before should have if the power was gone when it returned: then nobody heard of it.

    Filesystems may call a sync done that comes after they have given up, stock ones too: XFS that of a
    directory, F2FS syncfs().
    """
    if POWER.read_text() != "1\n":
        raise OSError(errno.EIO, "the power is gone")


def put(fd: int, first: int, data: bytes, flags: int = 0) -> None:
    """Write sectors, with flags of pwritev2()."""
    if os.pwritev(fd, [data], first * SECTOR_BYTES, flags) != len(data):
        raise OSError(errno.EIO, "a short write")
