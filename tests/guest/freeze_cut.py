# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is all that was written there after a power cut of a filesystem that was made still?

``python -m tests.guest.freeze_cut FS [--lie]`` from the repository's folder. Prints how many pages were lost
for each way: the filesystem is frozen amid writes, as for a snapshot, is remounted read-only, or is
unmounted. As soon as that has returned the power is cut, and what was written before has to be there after
the next mount. With ``--lie`` the power goes before the filesystem is still. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import mmap
import os
import random
import signal
import subprocess
import time
from multiprocessing import Process
from pathlib import Path

from tests.guest.agwb import SHUTDOWN, WITHOUT_FLUSH
from tests.guest.fsck import check
from tests.guest.kernel_log import Log
from tests.guest.lab_device import DEVICE, FIFREEZE, FITHAW, MOUNT, NAME, NODE, device, fail, flush
from tests.guest.resize import MAKE, PAGE_BYTES, content, shared_words, store
from tests.guest.versioned import File, together

WAYS = FREEZE, READ_ONLY, UNMOUNT = "freeze", "remount,ro", "umount"
# What is not waited for is in flight when the power goes.
ATTRIBUTES = {"size_mib": 384, "queues": 2, "channels": 64, "cache": 1, "cache_ns": 5_000_000}
SETTINGS = {"nwritebacks": "8", "wb_affinity": "rotor", "wb_workers": "4"}
# In turn: flushers that always write, and none but for what is asked of them.
FLUSHING = (
    {"dirty_writeback_centisecs": 1, "dirty_expire_centisecs": 1, "dirty_background_bytes": 64 << 10},
    {"dirty_writeback_centisecs": 0, "dirty_expire_centisecs": 3000, "dirty_background_bytes": 256 << 20},
)
FILES, PAGES = 8, 128
# So many pages of each file are written before the filesystem is made still.
OPERATIONS = 100


class Writer:
    """A process that overwrites a file by write() and mapped, until it is told to stop."""

    def __init__(self, file: File) -> None:
        """Take the file, which is there, and begin."""
        self.file = file
        # The page that is being written, plus 1.
        self._busy = shared_words(1)
        self._written = shared_words(1)
        self._stopped = shared_words(1)
        self._process = Process(target=self._write, daemon=True)
        self._process.start()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            self._write_until_told()
        # There is no power by then.
        if not self._stopped[0]:
            fail("a writer gets an error")

    def _write_until_told(self) -> None:
        choose = random.Random(self.file.number)
        file = self.file
        with file.open() as fd, mmap.mmap(fd, PAGES * PAGE_BYTES) as mapped:
            while not self._stopped[0]:
                page = choose.randrange(PAGES)
                self._busy[0] = page + 1
                if choose.random() < 0.25:
                    store(mapped, page * PAGE_BYTES, content(file.number, page, file.versions[page] + 1))
                    file.versions[page] += 1
                else:
                    file.write(fd, page)
                self._written[0] += 1
            self._busy[0] = 0

    def wait(self) -> None:
        """Wait until it has written enough."""
        while self._written[0] < OPERATIONS:
            if not self._process.is_alive():
                fail("a writer has ended, see above")
            time.sleep(0.002)

    def promise(self) -> dict[int, int]:
        """Return the versions of the pages, but for that which is being written: it may be of two."""
        # A version is noted before the next page is busy, so this one is read first.
        busy = self._busy[0] - 1
        return {page: version for page, version in enumerate(list(self.file.versions)) if page != busy}

    def stop(self) -> None:
        """Have it stop."""
        self._stopped[0] = 1

    def join(self) -> None:
        """Wait for it; a store to a page that cannot be had any more ends it."""
        self._process.join()
        if self._process.exitcode not in (0, -signal.SIGBUS):
            fail("a writer failed, see above")


def lost(file: File, promise: dict[int, int]) -> int:
    """Return how many pages hold neither what was promised nor anything newer."""
    with file.open(os.O_RDONLY) as fd:
        data = os.pread(fd, PAGES * PAGE_BYTES, 0)
    count = 0
    for page, version in promise.items():
        found = data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
        # One write more may have begun than were noted.
        newer = range(version, file.versions[page] + 2)
        count += found not in (content(file.number, page, one) for one in newer)
    return count


class Case:
    """A filesystem whose power is cut in one way."""

    def __init__(self, fs: str, way: str, *, lie: bool) -> None:
        """Make the filesystem."""
        self._fs = fs
        self._way = way
        self._lie = lie
        self._log = Log()
        self._files = [File(number, PAGES) for number in range(FILES)]
        subprocess.run([*MAKE[fs], NODE], check=True)

    def cut(self) -> int:
        """Overwrite, make the filesystem still, cut the power; return how many promised pages are lost."""
        mount = ["mount", "-t", self._fs, NODE, str(MOUNT)]
        subprocess.run(mount, check=True)
        together(File.write_all, self._files)
        os.sync()
        writers = [Writer(file) for file in self._files]
        for writer in writers:
            writer.wait()
        if self._way != FREEZE:
            # What is open to be written can be neither unmounted nor made read-only.
            end(writers)
        with self._log.only_reports():
            if not self._lie:
                self._make_still()
            promises = [writer.promise() for writer in writers]
            for writer in writers:
                writer.stop()
            (DEVICE / "power").write_text("0")
            self._give_up(writers)
        (DEVICE / "power").write_text("1")
        subprocess.run(mount, check=True)
        count = sum(lost(file, promise) for file, promise in zip(self._files, promises, strict=True))
        subprocess.run(["umount", str(MOUNT)], check=True)
        check(self._fs, NODE)
        return count

    def _make_still(self) -> None:
        if self._way == FREEZE:
            command(FIFREEZE)
        elif self._way == READ_ONLY:
            subprocess.run(["mount", "-o", READ_ONLY, str(MOUNT)], check=True)
        else:
            subprocess.run(["umount", str(MOUNT)], check=True)

    def _give_up(self, writers: list[Writer]) -> None:
        """Unmount a filesystem that has no power, if it is mounted."""
        if self._way == UNMOUNT and not self._lie:
            return
        if self._way == FREEZE and not self._lie:
            command(FITHAW)
        # It may have noticed by itself, and says so.
        with contextlib.suppress(OSError):
            command(SHUTDOWN, WITHOUT_FLUSH)
        end(writers)
        subprocess.run(["umount", str(MOUNT)], check=True)


def end(writers: list[Writer]) -> None:
    """Have writers stop, and wait for them."""
    for writer in writers:
        writer.stop()
        writer.join()


def command(number: int, argument: int | bytes = 0) -> None:
    """Tell the filesystem something by an ioctl."""
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(root, number, argument)
    finally:
        os.close(root)


def settings() -> None:
    """Have several flushers at work, where the kernel has them."""
    bdi = Path("/sys/class/bdi") / Path("/sys/class/block", NAME, "dev").read_text().strip()
    for name, value in SETTINGS.items():
        if (bdi / name).exists():
            (bdi / name).write_text(value)


def main() -> None:
    """Cut the power after each way, and print what was lost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fs", choices=MAKE)
    parser.add_argument("--lie", action="store_true")
    asked = parser.parse_args()
    MOUNT.mkdir(exist_ok=True)
    with device(ATTRIBUTES):
        settings()
        for way in WAYS:
            case = Case(asked.fs, way, lie=asked.lie)
            count = 0
            for number, flushing in enumerate(FLUSHING):
                flush(flushing)
                # Each cut has its own of what is gone, kept and torn.
                (DEVICE / "seed").write_text(str(number))
                count += case.cut()
            print(f"{way}: {count} of {len(FLUSHING) * FILES * PAGES} pages lost", flush=True)


if __name__ == "__main__":
    main()
