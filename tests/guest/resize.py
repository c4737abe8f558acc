# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: change the number of writeback contexts under load, and compare every byte at the end.

``resize.py FS SECONDS [--quick] [--any-kernel]``, on the raw device $PWB_DEV. Standard library only.

Writers overwrite pages of one large file each, by write() and mapped, sync it now and then, and make and
remove small files; another process syncs all the time, and one makes cgroups that write, and removes them.
All that stops for an unmount several times; the contexts change during it, too. Now and then the kernel is
left to choose their number, with a dirty limit that throttles the writers, for only then does it try others.
What a page must hold follows from its file, its number and its version, and the versions are in shared
memory. SECONDS is how long the load lasts, all rounds together, and longer if the kernel has tried nothing
by then; ``--quick`` takes files of a sixteenth of the size. With ``--any-kernel`` only the number of
contexts changes, and that where there is such a number.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import mmap
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Process
from pathlib import Path
from typing import NoReturn

# By its path, only this folder is searched.
sys.path.append(str(Path(__file__).parents[2]))
from tests.guest.fsck import check

WRITERS = 4
PAGE_BYTES = 4096
FILE_PAGES = 8192
QUICK_FILE_PAGES = FILE_PAGES // 16
SMALL_FILES = 64
SMALL_PAGES = 4
GROUP_FILES = 16
GROUP_PAGES = 16
ROUNDS = 4

FEW_CONTEXTS, MANY_CONTEXTS = 1, 8
WORKERS = (1, 4, 8)
POLICIES = ("fs", "ino", "rotor", "least-loaded")
RESIZE_S = 0.05
# The kernel tries numbers while writers are throttled: the second after 0.3 s, if 4 MiB were written.
AUTO_S = 1.0
DIRTY_BYTES = Path("/proc/sys/vm/dirty_bytes")
THROTTLED_BYTES, UNTHROTTLED_BYTES = 1 << 18, 512 << 20
# Who reads statistics leaves the CPU to others for so long.
READ_S = 0.005
# Times of the last so many calls are kept.
TIMES = 1 << 17

MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
COMPRESSED = "f2fs-compressed"
MAKE_OF = MAKE | {COMPRESSED: [*MAKE["f2fs"], "-O", "extra_attr,compression"]}
MOUNT = Path("/tmp/resized")
CGROUPS = Path("/sys/fs/cgroup")
# The flushers are busy all the time: inodes change their context when one is done with them.
FLUSHING = {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 10, "dirty_background_bytes": 4 << 20}

HEADER = struct.Struct("<3Q")
# Half of it is zeros, so that it can be compressed.
NOISE = b"".join(random.Random(seed).randbytes(32) + bytes(32) for seed in range(2 * PAGE_BYTES // 64))

LIBC = ctypes.CDLL(None, use_errno=True)


def shared_words(count: int) -> memoryview[int]:
    """Return ``count`` zeros of 64 bits that this process shares with its children."""
    return memoryview(mmap.mmap(-1, 8 * count)).cast("Q")


def content(file: int, page: int, version: int) -> bytes:
    """Return what a page of a file holds: who it is, and noise that depends on it."""
    start = (file * 1009 + page * 31 + version * 17) % PAGE_BYTES
    return HEADER.pack(file, page, version) + NOISE[start : start + PAGE_BYTES - HEADER.size]


def contents(file: int, pages: int, version: int) -> bytes:
    """Return what a file holds whose pages are all of one version."""
    return b"".join(content(file, page, version) for page in range(pages))


def store(mapped: mmap.mmap, offset: int, data: bytes) -> None:
    """Write to a mapped file.

    User-mode Linux does not tell a process on another CPU that its page has become read-only because a
    flusher is about to write it: the process may go on and write to a page that is clean, and stays so. It
    learns of that with its next system call. So write again after one: either the page is still dirty, or
    the second time marks it dirty.
    """
    mapped[offset : offset + len(data)] = data
    os.getppid()
    mapped[offset : offset + len(data)] = data


def fail(why: str) -> NoReturn:
    """End the program, with a sentence."""
    sys.exit(f"resize: {why}")


def finish(processes: list[Process]) -> None:
    """Wait for processes that end by themselves; one that failed has said why."""
    for process in processes:
        process.join()
    if any(process.exitcode != 0 for process in processes):
        fail("a process failed, see above")


def start(work: Callable[..., None], *arguments: object) -> Process:
    """Start a process that does not outlive this one."""
    process = Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def read_statistics() -> None:
    """Read all that debugfs tells of writeback, a filesystem or device that goes meanwhile excepted."""
    debugfs = Path("/sys/kernel/debug")
    for pattern in ("bdi/*/stats", "bdi/*/wb_stats", "xfs/*/writeback"):
        with contextlib.suppress(OSError):
            for path in debugfs.glob(pattern):
                path.read_bytes()
    time.sleep(READ_S)


def read_statistics_for_ever() -> None:
    """Read them over and over: they walk lists of what comes and goes."""
    while True:
        read_statistics()


class Times:
    """How long calls took, in shared memory, in nanoseconds."""

    def __init__(self) -> None:
        """Start without any."""
        self._words = shared_words(TIMES + 1)

    def add(self, since_ns: int) -> None:
        """Add one that began at ``since_ns`` of the performance counter; one process only adds."""
        count = self._words[TIMES]
        self._words[count % TIMES] = time.perf_counter_ns() - since_ns
        self._words[TIMES] = count + 1

    @property
    def count(self) -> int:
        """Return how many there were."""
        return self._words[TIMES]

    def values(self) -> list[int]:
        """Return the last of them."""
        return list(self._words[: min(self.count, TIMES)])


def summary(times: list[int]) -> str:
    """Return number, maximum and 99.9th percentile of times in nanoseconds, as text."""
    times = sorted(times)
    return f"{len(times)}, max {times[-1] / 1e6:.2f} ms, p99.9 {times[len(times) * 999 // 1000] / 1e6:.2f} ms"


class Load:
    """What writes, and what the files hold because of it."""

    def __init__(self, filesystem: str, file_pages: int = FILE_PAGES) -> None:
        """Share the versions with the processes to come."""
        self.filesystem = filesystem
        self.file_pages = file_pages
        self.stopped = shared_words(1)
        self.pages = [shared_words(file_pages) for _ in range(WRITERS)]
        # 0: there is no such file.
        self.small = [shared_words(SMALL_FILES) for _ in range(WRITERS)]
        # How often cgroups have written their files.
        self.groups = shared_words(1)
        # How often the kernel was seen to try another number of contexts than one.
        self.tried = shared_words(1)
        # Whether the dirty limit is low: how long a write() takes then is no matter of contexts.
        self.throttled = shared_words(1)
        self.resize_times = Times()
        self.write_times = [Times() for _ in range(WRITERS)]

    def make(self) -> None:
        """Make the filesystem and the large files."""
        subprocess.run([*MAKE_OF[self.filesystem], os.environ["PWB_DEV"]], check=True)
        MOUNT.mkdir(exist_ok=True)
        self.mount()
        for writer in range(WRITERS):
            (MOUNT / f"dir{writer}").mkdir()
        finish([start(self.fill, writer) for writer in range(WRITERS)])

    def fill(self, writer: int) -> None:
        """Write version 0 of a large file."""
        self.large(writer).write_bytes(contents(writer, self.file_pages, 0))

    def mount(self) -> None:
        """Mount the device."""
        compressed = self.filesystem == COMPRESSED
        how = ["-t", "f2fs", "-o", "compress_extension=*"] if compressed else ["-t", self.filesystem]
        subprocess.run(["mount", *how, os.environ["PWB_DEV"], str(MOUNT)], check=True)

    def large(self, writer: int) -> Path:
        """Return the path of a writer's large file."""
        return MOUNT / f"dir{writer}" / "large"

    def small_file(self, writer: int, number: int) -> Path:
        """Return the path of a small file."""
        return MOUNT / f"dir{writer}" / f"small{number}"

    def write(self, writer: int, round_number: int) -> None:
        """Overwrite pages, and make and remove small files, until told to stop."""
        choose = random.Random(f"{round_number} {writer}")
        versions, times = self.pages[writer], self.write_times[writer]
        with (
            self.large(writer).open("r+b", buffering=0) as file,
            mmap.mmap(file.fileno(), self.file_pages * PAGE_BYTES) as mapped,
        ):
            while not self.stopped[0]:
                for _ in range(32):
                    page = choose.randrange(self.file_pages)
                    data = content(writer, page, versions[page] + 1)
                    offset = page * PAGE_BYTES
                    if choose.random() < 0.25:
                        store(mapped, offset, data)
                    else:
                        begin = time.perf_counter_ns()
                        os.pwrite(file.fileno(), data, offset)
                        if not self.throttled[0]:
                            times.add(begin)
                    versions[page] += 1
                self.change_small_file(writer, choose.randrange(SMALL_FILES), choose.getrandbits(32) + 1)
                if choose.random() < 0.02:
                    os.fsync(file.fileno())

    def change_small_file(self, writer: int, number: int, version: int) -> None:
        """Remove a small file that is there, make one that is not."""
        path, versions = self.small_file(writer, number), self.small[writer]
        if versions[number]:
            path.unlink()
            versions[number] = 0
        else:
            path.write_bytes(contents(WRITERS + number, SMALL_PAGES, version))
            versions[number] = version

    def sync(self) -> None:
        """Sync the filesystem, and everything, in turn until told to stop."""
        root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
        while not self.stopped[0]:
            if LIBC.syncfs(root) != 0:
                fail(f"syncfs: {os.strerror(ctypes.get_errno())}")
            os.sync()

    def use_cgroups(self) -> None:
        """Make a cgroup, let a process in it write, and remove it, once at least and until told to stop."""
        group = CGROUPS / "writes"
        while True:
            group.mkdir()
            finish([start(self.write_in_cgroup, group)])
            self.groups[0] += 1
            # The files are dirty, and their writebacks outlive the group.
            group.rmdir()
            if self.stopped[0]:
                return

    def write_in_cgroup(self, group: Path) -> None:
        """Join a cgroup and write its files, half of them over, half of them new."""
        (group / "cgroup.procs").write_text("0")
        for number in range(GROUP_FILES):
            path = MOUNT / f"group{number}"
            if number % 2:
                path.unlink(missing_ok=True)
            path.write_bytes(contents(number, GROUP_PAGES, self.groups[0] + 1))

    def resize(self) -> None:
        """Change contexts between few and many, their affinity and their workers, and let go, for ever."""
        fd = os.open(Path(os.environ["PWB_BDI"], "nwritebacks"), os.O_RDWR)
        affinity = Path(os.environ["PWB_BDI"], "wb_affinity")
        workers = Path(os.environ["PWB_BDI"], "wb_workers")
        auto_s = AUTO_S
        while True:
            for policy, number in itertools.product(POLICIES, WORKERS):
                affinity.write_text(policy)
                workers.write_text(str(number))
                for contexts in (FEW_CONTEXTS, MANY_CONTEXTS):
                    begin = time.perf_counter_ns()
                    os.pwrite(fd, b"%d" % contexts, 0)
                    self.resize_times.add(begin)
                    time.sleep(RESIZE_S)
            has_tried = self.kernel_tries(fd, auto_s)
            # On a busy host it takes longer until the kernel has seen enough pages written.
            auto_s = AUTO_S if has_tried else 2 * auto_s

    def resize_where_possible(self) -> None:
        """Change contexts between few and many, if the kernel has them, and nothing else, for ever."""
        nwritebacks = Path(os.environ["PWB_BDI"], "nwritebacks")
        while True:
            for contexts in (FEW_CONTEXTS, MANY_CONTEXTS):
                if nwritebacks.exists():
                    nwritebacks.write_text(str(contexts))
                time.sleep(RESIZE_S)

    def kernel_tries(self, nwritebacks: int, seconds: float) -> bool:
        """Let the kernel choose the number of contexts, with writers throttled; tell if it is not one then.

        Args:
            nwritebacks: descriptor of the setting.
            seconds: for how long.
        """
        self.throttled[0] = 1
        DIRTY_BYTES.write_text(str(THROTTLED_BYTES))
        os.pwrite(nwritebacks, b"auto", 0)
        time.sleep(seconds)
        has_tried = os.pread(nwritebacks, 32, 0) != b"auto (1)\n"
        DIRTY_BYTES.write_text(str(UNTHROTTLED_BYTES))
        self.throttled[0] = 0
        self.tried[0] += has_tried
        return has_tried

    def run(self, round_number: int, seconds: float, *, until_tried: bool = False) -> None:
        """Put on all load for some seconds.

        Args:
            round_number: a further round has further operations.
            seconds: how long it lasts at least.
            until_tried: whether it lasts until the kernel was seen to try a number of contexts.
        """
        self.stopped[0] = 0
        processes = [start(self.write, writer, round_number) for writer in range(WRITERS)]
        processes.append(start(self.sync))
        # It has children, so it is none of those that end with this process.
        grouper = Process(target=self.use_cgroups)
        grouper.start()
        processes.append(grouper)
        end = time.monotonic() + seconds
        while time.monotonic() < end or (until_tried and not self.tried[0]):
            if any(process.exitcode is not None for process in processes):
                break
            time.sleep(0.01)
        self.stopped[0] = 1
        finish(processes)

    def remount(self) -> None:
        """Unmount and mount again, so that what is read comes from the device."""
        subprocess.run(["umount", str(MOUNT)], check=True)
        self.mount()

    def conclude(self) -> None:
        """Unmount, and see that the filesystem is sound."""
        subprocess.run(["umount", str(MOUNT)], check=True)
        check("f2fs" if self.filesystem == COMPRESSED else self.filesystem, os.environ["PWB_DEV"])

    def compare(self) -> None:
        """Compare every byte with what was written last."""
        finish([start(self.compare_writer, writer) for writer in range(WRITERS)])
        for number in range(GROUP_FILES):
            path = MOUNT / f"group{number}"
            if path.read_bytes() != contents(number, GROUP_PAGES, self.groups[0]):
                fail(f"{path} is not as the last of {self.groups[0]} cgroups wrote it")

    def compare_writer(self, writer: int) -> None:
        """Compare the files of a writer."""
        with self.large(writer).open("rb") as file:
            for page, version in enumerate(self.pages[writer]):
                data = file.read(PAGE_BYTES)
                if data != content(writer, page, version):
                    found = HEADER.unpack_from(data.ljust(HEADER.size, b"\0"))
                    expected = (writer, page, version)
                    fail(f"page {page} of {file.name}: (file, page, version) is {found}, not {expected}")
            if file.read(1):
                fail(f"{file.name} is longer than {self.file_pages} pages")
        for number, version in enumerate(self.small[writer]):
            path = self.small_file(writer, number)
            data = path.read_bytes() if path.exists() else b""
            if data != (contents(WRITERS + number, SMALL_PAGES, version) if version else b""):
                fail(f"{path} of {len(data)} bytes is not version {version} as it was written (0: removed)")


def main() -> None:
    """Load, resize and remount, and compare at the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("filesystem", choices=MAKE_OF)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--any-kernel", action="store_true")
    options = parser.parse_args()
    for name, value in FLUSHING.items():
        Path("/proc/sys/vm", name).write_text(str(value))
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    load = Load(options.filesystem, QUICK_FILE_PAGES if options.quick else FILE_PAGES)
    load.make()
    resizer = start(load.resize_where_possible if options.any_kernel else load.resize)
    reader = start(read_statistics_for_ever)
    for round_number in range(ROUNDS):
        is_last = round_number == ROUNDS - 1
        load.run(round_number, options.seconds / ROUNDS, until_tried=is_last and not options.any_kernel)
        load.remount()
    load.compare()
    if not resizer.is_alive():
        fail("the number of contexts could not be changed, see above")
    if not reader.is_alive():
        fail("the statistics could not be read, see above")
    for process in (resizer, reader):
        process.kill()
        process.join()
    load.conclude()
    writes = [value for times in load.write_times for value in times.values()]
    if not options.any_kernel:
        print(f"resizes: {summary(load.resize_times.values())}")
        print(f"auto: {load.tried[0]} times at another number than one")
    print(f"write(): {summary(writes)}")
    print("resize: every byte is as written")


if __name__ == "__main__":
    main()
