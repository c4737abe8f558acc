# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: does what syncfs() promised survive when the filesystem is cut off right after it?

``syncproof.py FS ROUNDS [SECONDS_PER_ROUND] [--resize] [--quick]``, on the raw device $PWB_DEV. Standard
library only.

Writers, half of them in cgroups of their own, put numbered records into slots: some in small files, some in
the pages of larger ones, some in files that they make and remove again. What they have done they note in
shared memory, after the system call has returned. While they go on, the main process reads the notes (the
promise), calls syncfs(), shuts the filesystem down without a flush of its log as soon as that returns, mounts
it again, and looks for every record that was promised. With ``--resize`` the number of writeback contexts
changes all the time, and now and then it is left to the kernel, which tries others while writers are
throttled; ``--quick`` takes a tenth of the files and records.

A slot is two halves that are written in turn, so that a device which copies a page while a record is being
written to it, as any may, spoils at most the half that was not promised.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from multiprocessing import Process
from pathlib import Path
from typing import NamedTuple, NoReturn

# By its path, only this folder is searched.
sys.path.append(str(Path(__file__).parents[2]))
from tests.guest.fsck import check

WRITERS = 4
PAGE_BYTES = 4096
DIRECTORIES = 16

RECORD = struct.Struct("<8Q")
SLOT_BYTES = 2 * RECORD.size

# FS_IOC_SHUTDOWN of include/uapi/linux/fs.h, _IOR('X', 125, __u32): the same in XFS, ext4 and F2FS, as is
# the value 2 for "flush neither the log nor data" (F2FS: F2FS_GOING_DOWN_NOSYNC).
SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = struct.pack("=I", 2)
# What a filesystem that is shut down answers.
CUT_OFF = {errno.EIO, errno.EROFS, errno.ESHUTDOWN}
# How long after the shutdown a writer may take to notice.
NOTICE_S = 60

# A small journal wraps often; 64 MiB is the least that mkfs.xfs makes, and what it makes here.
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-J", "size=8"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
MOUNT = Path("/tmp/proved")
CGROUPS = Path("/sys/fs/cgroup")
# In turn, a round each: flushers that wake every 50 ms, flushers that always have background work, and no
# writeback but what syncfs() asks for.
FLUSHING = [
    {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 5, "dirty_background_bytes": 256 << 20},
    {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 20, "dirty_background_bytes": 1 << 20},
    {"dirty_writeback_centisecs": 0, "dirty_expire_centisecs": 3000, "dirty_background_bytes": 256 << 20},
]
RESIZE_S = 0.02
# So many numbers by hand, and then so long one that the kernel chooses.
RESIZES = 50
AUTO_S = 1.0
DIRTY_BYTES = Path("/proc/sys/vm/dirty_bytes")
THROTTLED_BYTES, UNTHROTTLED_BYTES = 1 << 20, 512 << 20
MOST_CONTEXTS = 8
MOST_WORKERS = 8
POLICIES = ("fs", "ino", "rotor", "least-loaded")

LIBC = ctypes.CDLL(None, use_errno=True)


class Place(NamedTuple):
    """Where a slot is: path of its file and offset in bytes."""

    path: str
    offset: int


class Size:
    """How much there is of everything.

    The slots come in this order: pages of the larger files, small files, files that come and go.

    Attributes:
        pages: slots in the larger file that each writer has.
        records: what each writer writes in a round before the promise is read; it does not stop then.
        first_small: the first slot of the small files.
        first_passing: the first slot of the files that come and go.
        slots: how many slots there are.
    """

    def __init__(self, *, pages: int, small: int, passing: int, records: int) -> None:
        """Take the pages of a larger file, the numbers of other files, and the records of a writer."""
        self.pages = pages
        self.records = records
        self.first_small = WRITERS * pages
        self.first_passing = self.first_small + small
        self.slots = self.first_passing + passing

    def place(self, slot: int) -> Place:
        """Return where a slot is."""
        if slot < self.first_small:
            return Place(f"{MOUNT}/large{slot // self.pages}", slot % self.pages * PAGE_BYTES)
        kind = "passing" if self.passes(slot) else "small"
        return Place(f"{MOUNT}/dir{slot % DIRECTORIES}/{kind}{slot}", 0)

    def passes(self, slot: int) -> bool:
        """Return whether a slot is in a file that comes and goes."""
        return slot >= self.first_passing

    def of_writer(self, writer: int) -> list[range]:
        """Return a writer's slots: in its larger file, in small files, in files that come and go."""
        return [
            range(writer * self.pages, (writer + 1) * self.pages),
            range(self.first_small + writer, self.first_passing, WRITERS),
            range(self.first_passing + writer, self.slots, WRITERS),
        ]


FULL = Size(pages=1024, small=4000, passing=1000, records=1500)
# A kernel with all checks is ten times slower.
QUICK = Size(pages=128, small=320, passing=120, records=150)


class State(NamedTuple):
    """What a slot holds on disk.

    Attributes:
        exists: whether its file is there.
        number: the number of the newest whole record, 0 without one.
        torn: whether a half holds something that is no record.
    """

    exists: bool
    number: int
    torn: bool


def shared_words(count: int) -> memoryview[int]:
    """Return ``count`` zeros of 64 bits that this process shares with its children."""
    return memoryview(mmap.mmap(-1, 8 * count)).cast("Q")


def record(slot: int, number: int) -> bytes:
    """Return the 64 bytes of a record: slot, number five times, so that any tear shows, and checksum."""
    body = struct.pack("<7Q", slot, *[number] * 6)
    return body + struct.pack("<Q", zlib.crc32(body))


def put(fd: int, slot: int, offset: int, number: int) -> None:
    """Write a record into its half of a slot."""
    os.pwrite(fd, record(slot, number), offset + number % 2 * RECORD.size)


def read_slot(slot: int, data: bytes) -> State:
    """Return what the bytes of a slot say, whose file is there."""
    newest, torn = 0, False
    for half in range(2):
        text = data[half * RECORD.size : (half + 1) * RECORD.size]
        if not any(text):
            continue
        number = RECORD.unpack(text)[1] if len(text) == RECORD.size else 0
        if text == record(slot, number) and number % 2 == half:
            newest = max(newest, number)
        else:
            torn = True
    return State(True, newest, torn)


def fault(passes: bool, promise: int, last: int, state: State) -> str | None:
    """Return what is wrong with a slot, None if it holds what it may.

    Args:
        passes: whether it is in a file that comes and goes.
        promise: the number of the operation that was done before syncfs() was called.
        last: the number of the last operation that may have begun.
        state: what was found.
    """
    if not state.exists:
        # Even operations remove a file that comes and goes.
        removed = passes and (promise % 2 == 0 or last > promise)
        return None if removed else "no file"
    if passes and state.number == 0:
        # A file that is being made holds no record yet.
        being_made = promise + 1 + promise % 2 <= last
        return None if being_made else "a file without a record"
    if state.torn and last == promise:
        return f"a torn record beside record {state.number}"
    if not promise <= state.number <= last:
        return f"record {state.number}"
    return None


def call(what: str, result: int) -> None:
    """Raise OSError for a C function that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def fail(why: str) -> NoReturn:
    """End the program, with a sentence."""
    sys.exit(f"syncproof: {why}")


def join_cgroup(name: str) -> None:
    """Make a cgroup, if need be, and move this process into it."""
    group = CGROUPS / name
    group.mkdir(exist_ok=True)
    (group / "cgroup.procs").write_text("0")


def resize_for_ever() -> None:
    """Change the number of writeback contexts, their affinity and their workers at random, and let go."""
    choose = random.Random(0)
    bdi = Path(os.environ["PWB_BDI"])
    while True:
        for _ in range(RESIZES):
            (bdi / "wb_affinity").write_text(choose.choice(POLICIES))
            (bdi / "nwritebacks").write_text(str(choose.randint(1, MOST_CONTEXTS)))
            (bdi / "wb_workers").write_text(str(choose.randint(1, MOST_WORKERS)))
            time.sleep(RESIZE_S)
        DIRTY_BYTES.write_text(str(THROTTLED_BYTES))
        (bdi / "nwritebacks").write_text("auto")
        time.sleep(AUTO_S)
        DIRTY_BYTES.write_text(str(UNTHROTTLED_BYTES))


class Proof:
    """The slots, what was written to them, and what the disk holds."""

    def __init__(self, filesystem: str, size: Size, seconds_per_round: float) -> None:
        """Share the notes with the processes to come."""
        self.filesystem = filesystem
        self.size = size
        self.seconds_per_round = seconds_per_round
        # Operations done on each slot: written by its writer after the system call has returned.
        self.done = shared_words(size.slots)
        self.progress = shared_words(WRITERS)
        # The slot that each writer works on, at first none: one operation more may have begun there.
        self.busy = shared_words(WRITERS)
        self.found = shared_words(size.slots)
        self.torn = 0

    def make(self) -> None:
        """Make the filesystem and all files that stay, every slot of them with a record."""
        subprocess.run([*MAKE[self.filesystem], os.environ["PWB_DEV"]], check=True)
        MOUNT.mkdir(exist_ok=True)
        self.mount()
        for directory in range(DIRECTORIES):
            (MOUNT / f"dir{directory}").mkdir()
        self.in_every_writer(self.fill)

    def fill(self, writer: int) -> None:
        """Write the first record of a writer's slots, each in a page of its own."""
        pages, small, _ = self.size.of_writer(writer)
        for slot in [*pages, *small]:
            with open(self.size.place(slot).path, "ab") as file:
                file.write((bytes(RECORD.size) + record(slot, 1)).ljust(PAGE_BYTES, b"\0"))
            self.done[slot] = 1

    def mount(self) -> None:
        """Mount the device."""
        subprocess.run(["mount", "-t", self.filesystem, os.environ["PWB_DEV"], str(MOUNT)], check=True)

    def in_every_writer(self, work: Callable[[int], None]) -> None:
        """Call ``work(writer)`` for every writer, in processes of their own, to the end."""
        processes = [Process(target=work, args=(writer,)) for writer in range(WRITERS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if any(process.exitcode != 0 for process in processes):
            fail("a process failed, see above")

    def write(self, writer: int, round_number: int) -> None:
        """Write records until the filesystem is cut off."""
        if writer % 2:
            join_cgroup(f"writer{writer}")
        choose = random.Random(f"{round_number} {writer}")
        kinds = self.size.of_writer(writer)
        large = os.open(self.size.place(kinds[0][0]).path, os.O_WRONLY)
        while True:
            for slots in kinds:
                slot = choose.choice(slots)
                number = self.done[slot] + 1
                self.busy[writer] = slot
                try:
                    self.operate(slot, number, large)
                except OSError as error:
                    if error.errno in CUT_OFF:
                        return
                    raise
                self.done[slot] = number
                self.progress[writer] += 1

    def operate(self, slot: int, number: int, large: int) -> None:
        """Do the next thing with a slot: write a record, in files that come and go each second time unlink.

        Args:
            slot: the slot.
            number: what is done has this number.
            large: descriptor of the writer's larger file.
        """
        path, offset = self.size.place(slot)
        if slot < self.size.first_small:
            put(large, slot, offset, number)
            return
        flags = os.O_WRONLY
        if self.size.passes(slot):
            if number % 2 == 0:
                os.unlink(path)
                return
            flags |= os.O_CREAT | os.O_EXCL
        fd = os.open(path, flags)
        try:
            put(fd, slot, offset, number)
        finally:
            os.close(fd)

    def round(self, round_number: int) -> int:
        """Write, sync, cut off, and compare with the promise.

        Returns:
            how many operations the promise holds that were done in this round.
        """
        for name, value in FLUSHING[round_number % len(FLUSHING)].items():
            Path("/proc/sys/vm", name).write_text(str(value))
        before = list(self.done)
        for writer in range(WRITERS):
            self.progress[writer] = 0
            self.busy[writer] = self.size.slots
        processes = [Process(target=self.write, args=(writer, round_number)) for writer in range(WRITERS)]
        root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
        for process in processes:
            process.start()
        try:
            self.wait_for_writers(processes)
            promise = list(self.done)
            call("syncfs", LIBC.syncfs(root))
            fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
            for process in processes:
                process.join(NOTICE_S)
                if process.exitcode is None:
                    fail(f"a writer still writes {NOTICE_S} s after the filesystem was shut down")
                if process.exitcode != 0:
                    fail("a writer failed, see above")
        finally:
            for process in processes:
                process.kill()
        os.close(root)
        subprocess.run(["umount", str(MOUNT)], check=True)
        self.mount()
        self.check(promise)
        return sum(promise) - sum(before)

    def wait_for_writers(self, processes: list[Process]) -> None:
        """Wait until every writer has written enough; the time only adds to that."""
        end = time.monotonic() + self.seconds_per_round
        while min(self.progress) < self.size.records or time.monotonic() < end:
            if any(process.exitcode is not None for process in processes):
                fail("a writer ended before the filesystem was shut down")
            time.sleep(0.002)

    def check(self, promise: list[int]) -> None:
        """Compare the disk with the promise, and note what it holds as the start of the next round."""
        self.in_every_writer(self.read)
        busy = set(self.busy)
        wrong = []
        for slot in range(self.size.slots):
            last = self.done[slot] + (slot in busy)
            state = State(bool(self.found[slot] & 1), self.found[slot] >> 2, bool(self.found[slot] & 2))
            self.torn += state.torn
            what = fault(self.size.passes(slot), promise[slot], last, state)
            if what is not None:
                path, offset = self.size.place(slot)
                wrong.append(
                    f"slot {slot} ({path} at {offset}): {promise[slot]} was promised (the last begun "
                    f"is {last}) and {what} was found"
                )
            # What was written after the sync may be lost: those numbers are used again, in the right half.
            self.done[slot] = state.number if state.number else last + last % 2
        if wrong:
            fail(wrong[0] + (f"; so it is with {len(wrong) - 1} more slots" if len(wrong) > 1 else ""))

    def read(self, writer: int) -> None:
        """Note what a writer's slots hold on disk, and remove files that have no record yet."""
        pages, small, passing = self.size.of_writer(writer)
        for slots in [pages, *([slot] for slot in [*small, *passing])]:
            path = self.size.place(slots[0]).path
            try:
                fd = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                for slot in slots:
                    self.found[slot] = 0
                continue
            states = [self.note(slot, fd) for slot in slots]
            os.close(fd)
            if self.size.passes(slots[0]) and not states[0].number:
                os.unlink(path)

    def note(self, slot: int, fd: int) -> State:
        """Store what a slot holds where the main process finds it, and clear a torn half."""
        offset = self.size.place(slot).offset
        state = read_slot(slot, os.pread(fd, SLOT_BYTES, offset))
        self.found[slot] = state.number << 2 | state.torn << 1 | state.exists
        if state.torn:
            os.pwrite(fd, bytes(SLOT_BYTES), offset)
            put(fd, slot, offset, state.number)
        return state


def main() -> None:
    """Prove as many rounds as the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("filesystem", choices=MAKE)
    parser.add_argument("rounds", type=int)
    parser.add_argument("seconds_per_round", type=float, nargs="?", default=0)
    parser.add_argument("--resize", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()

    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    proof = Proof(options.filesystem, QUICK if options.quick else FULL, options.seconds_per_round)
    resizer = Process(target=resize_for_ever, daemon=True)
    if options.resize:
        resizer.start()
    proof.make()
    promised = 0
    for round_number in range(options.rounds):
        promised += proof.round(round_number)
        if options.resize and not resizer.is_alive():
            fail("the number of contexts could not be changed, see above")
    subprocess.run(["umount", str(MOUNT)], check=True)
    check(options.filesystem, os.environ["PWB_DEV"])
    if proof.torn:
        print(f"syncproof: {proof.torn} records written after the sync are torn")
    print(f"syncproof: {options.rounds} rounds, {promised} records promised, all found")


if __name__ == "__main__":
    main()
