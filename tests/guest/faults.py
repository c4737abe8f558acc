# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what may happen to a machine while several contexts write, and every byte after it.

``python -m tests.guest.faults FS``. Standard library only.

Each case has a fresh filesystem on a device-mapper device above a labblk device. Writers overwrite files by
write() and mapped, one process changes the number of contexts and workers all the time, on XFS also the modes
of AG-aware writeback, another syncs, and one reads all statistics. The number is chosen in turn by the
kernel, while writers are throttled, and by hand. After the case the filesystem is unmounted, mounted, and
every byte is compared. In the last cases the device itself goes away: before the filesystem is unmounted,
while it is mounted and unmounted over and over, and while its unmount writes; or the filesystem becomes read-
only in an emergency. At the end nothing may be leaked, if kmemleak is on.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import itertools
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.machine.console import LEAK
from tests.guest.agwb import CLASSES, MODES, PAGES, passes
from tests.guest.fsck import check
from tests.guest.kernel_log import Log
from tests.guest.lab_device import (
    DEVICE,
    FIFREEZE,
    FITHAW,
    MOUNT,
    NAME,
    NODE,
    SETTLE_S,
    device,
    fail,
    flush,
    sectors_written,
)
from tests.guest.resize import (
    CGROUPS,
    DIRTY_BYTES,
    MAKE,
    THROTTLED_BYTES,
    UNTHROTTLED_BYTES,
    read_statistics,
    shared_words,
    start,
)
from tests.guest.versioned import File, overwrite_some, together

# Submission sleeps, so that flushers are under way when something happens.
ATTRIBUTES = {"size_mib": 384, "queues": 2, "channels": 8, "submit_ns": 200_000}
FLUSHING = {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 10, "dirty_background_bytes": 1 << 20}
WRITERS = 4
MANY, SLOW_SUBMIT_NS = 128, 10_000_000
GROUP_BYTES, NEW_PAGES = 64 << 10, 256
CONTEXTS, WORKERS = 8, 4
JUDGES_S = 300
STEP_S = 0.2
UPPER = "above"
UPPER_NODE = f"/dev/mapper/{UPPER}"
SECTORS_PER_MIB = 2048
GROWN_MIB, SMALL_MIB = 384, 320
# What becomes of a mount, and back.
REMOUNTS = {
    "xfs": ("inode32", "inode64"),
    "ext4": ("commit=1", "commit=5"),
    "f2fs": ("noflush_merge", "flush_merge"),
}
SYSRQ = Path("/proc/sysrq-trigger")
TRACE = Path("/sys/kernel/tracing")
LEAKS = Path("/sys/kernel/debug/kmemleak")
# What is younger than this is no leak yet, for kmemleak.
YOUNG_S = 6
OOM_BYTES = 24 << 20
RESCUER = "kworker/R-write"
# A suspend that ends when tasks have been frozen for so long.
TRIED = Path("/sys/power/pm_test")
FROZEN_S = Path("/sys/module/suspend/parameters/pm_test_delay")
SUSPEND = Path("/sys/power/state")
KTHREADD = Path("/proc/2/make-it-fail")
FAILSLAB = Path("/sys/kernel/debug/failslab")
# When its device goes away, F2FS drops files that are dirty and that nobody has open, and warns of them.
FAULT_OF_REMOVAL = re.compile(r"WARNING: fs/f2fs/inode\.c:\d+ at f2fs_evict_inode\+")
# After an emergency remount F2FS refuses a write, which leaves the file dirty, and it warns, too. ext4 is
# synced, then read-only, and warns when what was dirtied in between is written; the lines are those of Linux
# 7.2 and 7.3, for the next warning there is of a frozen filesystem. XFS warns so where it is frozen then, for
# freeze_super() waits for nothing that a read-only filesystem still writes, and the end of that is a
# transaction.
FAULT_OF_EMERGENCY = re.compile(
    rf"{FAULT_OF_REMOVAL.pattern}|WARNING: fs/ext4/ext4_jbd2\.c:(75|83) at ext4_journal_check_start\+"
    r"|WARNING: fs/xfs/xfs_trans\.c:255 at xfs_trans_alloc\+"
)
# How a filesystem is made smaller than its device, where it can grow while it is mounted.
SMALLER = {
    "xfs": ["-d", f"size={SMALL_MIB}m"],
    "ext4": [f"{SMALL_MIB}m"],
}
# EXT4_IOC_RESIZE_FS
EXT4_RESIZE = 1 << 30 | 8 << 16 | ord("f") << 8 | 16


def run(*command: str) -> None:
    """Run a program that has to succeed, and has nothing to say."""
    try:
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except subprocess.CalledProcessError as error:
        # Who tries what may fail goes on.
        print(f"{error}: {error.stdout}", flush=True)
        raise


def number_of(node: str) -> str:
    """Return the number of a device, as sysfs writes it."""
    number = os.stat(node).st_rdev
    return f"{os.major(number)}:{os.minor(number)}"


def judged() -> int:
    """Return how many numbers of contexts the kernel has judged."""
    return (TRACE / "trace").read_text().count("wb_ctx_auto:")


def see_kernel_judge(before: int) -> None:
    """Wait until the kernel has judged another number of contexts."""
    end = time.monotonic() + JUDGES_S
    while judged() == before:
        if time.monotonic() > end:
            fail("the kernel has judged no number of contexts, though it is left to it")
        time.sleep(0.01)


def leave_to_kernel(settings: Path) -> None:
    """Let the kernel choose the number of contexts, with writers that are throttled."""
    DIRTY_BYTES.write_text(str(THROTTLED_BYTES))
    (settings / "nwritebacks").write_text("auto")


class Load:
    """A mounted filesystem that is written, synced and resized all the time."""

    def __init__(self, fs: str, node: str, *more: str) -> None:
        """Make the filesystem and its files."""
        make = MAKE[fs]
        sized = [*make, node, *more] if fs == "ext4" else [*make, *more, node]
        subprocess.run(sized, check=True)
        self.fs = fs
        self.settings = Path("/sys/class/bdi", number_of(node))
        name = Path("/sys/dev/block", number_of(node)).resolve().name
        self._modes = Path("/sys/fs/xfs", name, "writeback")
        self._counters = Path("/sys/kernel/debug/xfs", name, "writeback")
        # Of workers of AG-aware writeback, while the load was on.
        self.passes = 0
        self._node = node
        self._stopped = shared_words(1)
        DIRTY_BYTES.write_text(str(UNTHROTTLED_BYTES))
        (self.settings / "wb_affinity").write_text("rotor")
        (self.settings / "nwritebacks").write_text(str(CONTEXTS))
        self.mount()
        self.files = [File(number, PAGES) for number in range(WRITERS)]
        together(File.write_all, self.files)

    def mount(self) -> None:
        """Mount the filesystem, on XFS with workers for large files."""
        subprocess.run(["mount", "-t", self.fs, self._node, str(MOUNT)], check=True)
        if self.fs == "xfs":
            self._write_by("rotor")

    def _write_by(self, mode: str) -> None:
        for name in CLASSES:
            (self._modes / name).write_text(mode)

    def _write(self, file: File) -> None:
        while not self._stopped[0]:
            overwrite_some(file, 50)

    def _resize(self, auto: bool) -> None:
        by_hand = [*itertools.product((1, CONTEXTS), (1, WORKERS))] * 5
        while not self._stopped[0]:
            if auto:
                leave_to_kernel(self.settings)
                time.sleep(2 * STEP_S)
                DIRTY_BYTES.write_text(str(UNTHROTTLED_BYTES))
            for contexts, workers in by_hand:
                (self.settings / "nwritebacks").write_text(str(contexts))
                (self.settings / "wb_workers").write_text(str(workers))
                time.sleep(STEP_S / 10)

    def change_modes(self) -> None:
        """Go through the modes of AG-aware writeback."""
        for mode in MODES:
            self._write_by(mode)
            time.sleep(STEP_S / 10)

    def _change_modes(self) -> None:
        while not self._stopped[0]:
            self.change_modes()

    def _sync(self) -> None:
        while not self._stopped[0]:
            os.sync()

    def _read_statistics(self) -> None:
        while not self._stopped[0]:
            read_statistics()

    @contextlib.contextmanager
    def put_on(self, *, auto: bool = True) -> Iterator[None]:
        """Have the load on, and see that none of its processes has failed.

        Args:
            auto: whether the kernel chooses the number of contexts in turn, and has just judged one at first.
        """
        self._stopped[0] = 0
        before = judged()
        if auto:
            leave_to_kernel(self.settings)
        processes = [start(self._write, file) for file in self.files]
        if auto:
            # Before somebody syncs all the time, so that writers are throttled by the dirty limit.
            see_kernel_judge(before)
        processes += [start(self._sync), start(self._read_statistics), start(self._resize, auto)]
        if self.fs == "xfs":
            processes.append(start(self._change_modes))
        time.sleep(STEP_S)
        yield
        self._stopped[0] = 1
        for process in processes:
            process.join()
        if any(process.exitcode for process in processes):
            fail("a process of the load failed, see above")
        if self.fs == "xfs":
            self.passes += passes(self._counters)

    def conclude(self) -> None:
        """Compare every byte after a new mount, and see that the filesystem is sound."""
        run("umount", str(MOUNT))
        self.mount()
        for file in self.files:
            file.compare()
        self.umount_and_check()

    def umount_and_check(self) -> None:
        """Unmount the filesystem, and see that it is sound."""
        run("umount", str(MOUNT))
        check(self.fs, self._node)


def nothing_is_written(to_what: str) -> None:
    """See that the device is left alone for a while."""
    before = sectors_written()
    time.sleep(STEP_S)
    if sectors_written() != before:
        fail(f"{sectors_written() - before} sectors were written to {to_what}")


def frozen_filesystem(load: Load) -> None:
    """Freeze and thaw."""
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    with load.put_on():
        for _ in range(3):
            fcntl.ioctl(root, FIFREEZE, 0)
            nothing_is_written("a frozen filesystem")
            fcntl.ioctl(root, FITHAW, 0)
            time.sleep(STEP_S)
    os.close(root)


def suspended_device(load: Load) -> None:
    """Suspend the device below the filesystem, which is not told: what is submitted has to wait."""
    with load.put_on():
        for _ in range(3):
            run("dmsetup", "suspend", "--nolockfs", "--noflush", UPPER)
            nothing_is_written("a suspended device")
            run("dmsetup", "resume", UPPER)
            time.sleep(STEP_S)


def read_only(load: Load) -> None:
    """Remount read-only with files dirty, and back."""
    for _ in range(3):
        together(overwrite_some, load.files)
        run("mount", "-o", "remount,ro", str(MOUNT))
        nothing_is_written("a read-only filesystem")
        run("mount", "-o", "remount,rw", str(MOUNT))


def remounted(load: Load) -> None:
    """Remount with other options, and make files with each."""
    with load.put_on():
        for number, option in enumerate(REMOUNTS[load.fs] * 3, WRITERS):
            run("mount", "-o", f"remount,{option}", str(MOUNT))
            load.files.append(File(number, NEW_PAGES))
            load.files[-1].write_all()
            time.sleep(STEP_S / 2)


def grown(load: Load) -> None:
    """Grow the filesystem to the whole of its device."""
    with load.put_on():
        if load.fs == "xfs":
            run("xfs_growfs", str(MOUNT))
        else:
            # resize2fs opens the device for writing, which this kernel allows for no mounted one.
            blocks = (GROWN_MIB << 20) // os.statvfs(MOUNT).f_bsize
            root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.ioctl(root, EXT4_RESIZE, struct.pack("=Q", blocks))
            os.close(root)
        time.sleep(STEP_S)


def frozen_tasks(load: Load) -> None:
    """Freeze every task that can be frozen, as before a suspend or a hibernation, and thaw them."""
    TRIED.write_text("freezer")
    FROZEN_S.write_text("1")
    with load.put_on():
        for _ in range(3):
            # Fails with EBUSY if a task cannot be frozen.
            SUSPEND.write_text("freeze")
            time.sleep(STEP_S)


def take_memory(group: Path, path: Path) -> None:
    """Join a cgroup, dirty half of the memory that it may have, and ask for more than there is."""
    (group / "cgroup.procs").write_text("0")
    path.write_bytes(bytes(OOM_BYTES // 2))
    memory = bytearray()
    while True:
        memory += bytes(1 << 20)


def out_of_memory(load: Load) -> None:
    """Have the kernel kill what writes, and remove its cgroup while its pages are dirty."""
    with load.put_on():
        for number in range(4):
            group = CGROUPS / f"killed{number}"
            group.mkdir()
            (group / "memory.max").write_text(str(OOM_BYTES))
            process = start(take_memory, group, MOUNT / group.name)
            process.join()
            if process.exitcode != -signal.SIGKILL:
                fail(f"who takes all memory ends with {process.exitcode}")
            group.rmdir()


def times_slept(name: str) -> int:
    """Return how often kernel threads whose names begin so have gone to sleep."""
    total = 0
    for task in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (task / "comm").read_text().startswith(name):
                status = (task / "status").read_text()
                total += int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


def no_new_worker(load: Load) -> None:
    """Let no thread be made, so that the workqueue's rescuer has to write."""
    settings = {"probability": 100, "times": -1, "task-filter": "Y", "ignore-gfp-wait": "N", "verbose": 0}
    for name, value in settings.items():
        (FAILSLAB / name).write_text(str(value))
    many = [File(WRITERS + number, 1) for number in range(MANY)]
    # A worker that submits sleeps, so each file would need one of its own.
    (DEVICE / "submit_ns").write_text(str(SLOW_SUBMIT_NS))
    before = times_slept(RESCUER)
    KTHREADD.write_text("1")
    try:
        # Writers that are throttled have too little for so many workers.
        with load.put_on(auto=False):
            end = time.monotonic() + 60
            while True:
                for file in many:
                    file.write_all()
                if times_slept(RESCUER) != before:
                    break
                if time.monotonic() > end:
                    fail("the rescuer had nothing to do")
    finally:
        KTHREADD.write_text("0")
        (FAILSLAB / "probability").write_text("0")
    load.files += many


CASES = (
    no_new_worker,
    frozen_filesystem,
    frozen_tasks,
    suspended_device,
    read_only,
    remounted,
    grown,
    out_of_memory,
)


def cases(fs: str, *, can_suspend: bool) -> list[Callable[[Load], None]]:
    """Return the cases that a filesystem and a machine have."""
    has = {grown: fs in SMALLER, frozen_tasks: can_suspend}
    return [case for case in CASES if has.get(case, True)]


@contextlib.contextmanager
def mapped_device() -> Iterator[None]:
    """Have a device-mapper device on the whole labblk device."""
    run("dmsetup", "create", UPPER, "--table", f"0 {GROWN_MIB * SECTORS_PER_MIB} linear {NODE} 0")
    run("dmsetup", "mknodes")
    yield
    run("dmsetup", "remove", "--retry", UPPER)


def freeze_and_thaw() -> None:
    """Freeze and thaw; a filesystem that was shut down refuses."""
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(root, FIFREEZE, 0)
        fcntl.ioctl(root, FITHAW, 0)
    finally:
        os.close(root)


def resize(settings: Path) -> None:
    """Change the number of contexts, to one and to many."""
    for contexts in (1, CONTEXTS):
        (settings / "nwritebacks").write_text(str(contexts))


def leave_to_kernel_for_long(settings: Path) -> None:
    """Let the kernel choose the number of contexts, from one again now and then."""
    leave_to_kernel(settings)
    time.sleep(10 * STEP_S)


def overwrite(file: File) -> None:
    """Overwrite a page and sync the file."""
    with file.open(os.O_RDWR) as fd:
        file.write(fd, 0)
        os.fsync(fd)


def write_in_cgroup(name: str) -> None:
    """Make a cgroup and new files in it, and remove it while they are dirty."""
    group = CGROUPS / name
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text("0")
        for number in range(CONTEXTS):
            # This folder is there only while the filesystem is mounted.
            path = MOUNT / "dir0" / f"{name}{number}"
            path.unlink(missing_ok=True)
            path.write_bytes(bytes(GROUP_BYTES))
    finally:
        (CGROUPS / "cgroup.procs").write_text("0")
        group.rmdir()


def dirty_apart(file: File) -> None:
    """Overwrite some pages that are far apart, so that each needs a command of its own."""
    with file.open() as fd:
        for page in range(0, file.most_pages, 8):
            file.write(fd, page)


def is_mounted() -> bool:
    """Tell whether a filesystem is mounted; one that was shut down lets nobody look at its root."""
    return f" {MOUNT} " in Path("/proc/self/mounts").read_text()


def umount_and_mount(load: Load) -> None:
    """Unmount lazily and mount again; if the last file was closed in between, the filesystem was gone."""
    run("umount", "--lazy", str(MOUNT))
    run("mount", "-t", load.fs, NODE, str(MOUNT))


@contextlib.contextmanager
def meanwhile(*work: Callable[[], object]) -> Iterator[None]:
    """Do things over and over, each in a process, whatever they come to: the device goes away."""
    over = shared_words(1)

    def repeat(each: Callable[[], object]) -> None:
        while not over[0]:
            with contextlib.suppress(OSError, subprocess.CalledProcessError):
                each()

    processes = [start(repeat, each) for each in work]
    time.sleep(STEP_S)
    yield
    over[0] = 1
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        fail("a process failed when the device was gone, see above")


def disturbances(load: Load, *, auto: bool) -> list[Callable[[], object]]:
    """Return what goes on while a device is removed, but for unmounts.

    Args:
        load: its files and settings.
        auto: whether the kernel chooses the number of contexts.
    """
    work: list[Callable[[], object]] = [functools.partial(overwrite, file) for file in load.files]
    work += [functools.partial(change_number(auto), load.settings), os.sync, freeze_and_thaw, read_statistics]
    if load.fs == "xfs":
        work.append(load.change_modes)
    return [*work, functools.partial(write_in_cgroup, "writes")]


def change_number(auto: bool) -> Callable[[Path], None]:
    """Return who chooses the number of contexts: the kernel, or we."""
    return leave_to_kernel_for_long if auto else resize


@contextlib.contextmanager
def disturbed(load: Load, *more: Callable[[], object], auto: bool) -> Iterator[None]:
    """Have all that going on, and more; with the kernel at its choice, if that is asked for."""
    with contextlib.ExitStack() as going_on:
        if auto:
            before = judged()
            leave_to_kernel(load.settings)
            going_on.enter_context(meanwhile(*(functools.partial(dirty_apart, file) for file in load.files)))
            # Before somebody syncs all the time, so that writers are throttled by the dirty limit.
            see_kernel_judge(before)
        going_on.enter_context(meanwhile(*disturbances(load, auto=auto), *more))
        yield


class RemovalLog(Log):
    """The kernel's log while devices go away, without what is a fault of stock."""

    excused = FAULT_OF_REMOVAL


class EmergencyLog(Log):
    """The same while a filesystem becomes read-only in an emergency."""

    excused = FAULT_OF_EMERGENCY


def nothing_stays(load: Load) -> None:
    """See that the filesystem and the settings of its device go when the device is gone."""
    filesystem = Path("/sys/fs", load.fs, NAME)
    end = time.monotonic() + SETTLE_S
    while filesystem.exists():
        if time.monotonic() > end:
            fail(f"{filesystem} is there still: the unmount of a device that is gone has not ended")
        time.sleep(0.01)
    if load.settings.exists():
        fail("the settings of a device that is gone are still there")


def device_gone(fs: str, *, auto: bool = False) -> None:
    """Remove the device while the filesystem is written, synced, resized and frozen, and unmount it then."""
    with contextlib.ExitStack() as present:
        present.enter_context(device(ATTRIBUTES))
        load = Load(fs, NODE)
        fd = os.open(load.files[0].path, os.O_RDWR)
        with disturbed(load, auto=auto):
            present.close()
            run("umount", "--lazy", str(MOUNT))
        try:
            os.fsync(fd)
            fail("who has a file open is not told that its device is gone")
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        os.close(fd)
    nothing_stays(load)


def device_gone_amid_unmounts(fs: str, *, auto: bool = False) -> None:
    """Remove the device while the filesystem is unmounted and mounted, too, all the time."""
    with contextlib.ExitStack() as present:
        present.enter_context(device(ATTRIBUTES))
        load = Load(fs, NODE)
        with disturbed(load, functools.partial(umount_and_mount, load), auto=auto):
            present.close()
    if is_mounted():
        run("umount", str(MOUNT))
    nothing_stays(load)


def device_gone_while_unmount_writes(fs: str, *, auto: bool = False) -> None:
    """Remove the device while an unmount writes what is dirty; again if the unmount was faster."""
    raced = False
    while not raced:
        with contextlib.ExitStack() as present:
            present.enter_context(device(ATTRIBUTES))
            load = Load(fs, NODE)
            (DEVICE / "submit_ns").write_text(str(SLOW_SUBMIT_NS))
            together(dirty_apart, load.files)
            with meanwhile(functools.partial(change_number(auto), load.settings), os.sync, read_statistics):
                unmount = start(run, "umount", str(MOUNT))
                while is_mounted() and unmount.is_alive():
                    time.sleep(0.001)
                raced = unmount.is_alive()
                present.close()
                unmount.join()
        if unmount.exitcode:
            fail("the unmount of a device that goes away meanwhile fails, see above")
        nothing_stays(load)


GONE = (device_gone, device_gone_amid_unmounts, device_gone_while_unmount_writes)


def read_only_in_an_emergency(fs: str, *, auto: bool = False) -> None:
    """Remount read-only by SysRq, with files dirty and open for writing; it can be mounted anew."""
    with device(ATTRIBUTES):
        load = Load(fs, NODE)
        with disturbed(load, auto=auto):
            while f" {MOUNT} {fs} ro," not in Path("/proc/self/mounts").read_text():
                # A filesystem that is frozen at the time is left as it is.
                SYSRQ.write_text("u")
                time.sleep(STEP_S / 10)
            time.sleep(STEP_S)
        run("umount", str(MOUNT))
        load.mount()
        if fs == "xfs":
            # What is removed and still open as it becomes read-only stays on XFS's lists of unlinked inodes:
            # it is unmounted with a clean log, and no recovery frees them.
            run("umount", str(MOUNT))
        else:
            load.umount_and_check()
    nothing_stays(load)


ENDS = (*GONE, read_only_in_an_emergency)
# By hand, by hand, and by the kernel.
ROUNDS = (False, False, True)


def leaks() -> str:
    """Return what kmemleak has found."""
    time.sleep(YOUNG_S)
    LEAKS.write_text("scan")
    # What is in a register at one time need not be at another.
    time.sleep(YOUNG_S)
    LEAKS.write_text("scan")
    return LEAKS.read_text()


def main(fs: str) -> None:
    """Run every case, and look for leaks."""
    log = Log()
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    (TRACE / "events/writeback_ctx/wb_ctx_auto/enable").write_text("1")
    are_seen = "kmemleak=on" in Path("/proc/cmdline").read_text()
    if are_seen:
        with log.only_reports(allowed=(LEAK,)):
            # On User-mode Linux it knows some pages of the boot less well.
            leaks()
        LEAKS.write_text("clear")
    written = 0
    for case in cases(fs, can_suspend=TRIED.exists()):
        with log.only_reports(allowed=()), device(ATTRIBUTES), mapped_device():
            load = Load(fs, UPPER_NODE, *(SMALLER[fs] if case is grown else []))
            case(load)
            load.conclude()
        written += load.passes
        print(f"{case.__name__}: as it should be", flush=True)
    if fs == "xfs" and not written:
        fail("no worker of AG-aware writeback has written anything")
    for end in ENDS:
        log = EmergencyLog() if end is read_only_in_an_emergency else RemovalLog()
        for auto in ROUNDS:
            with log.only_reports():
                end(fs, auto=auto)
        print(f"{end.__name__}: as it should be", flush=True)
    are_seen = "kmemleak=on" in Path("/proc/cmdline").read_text()
    if are_seen:
        with log.only_reports(allowed=(LEAK,)):
            found = leaks()
        if found:
            fail(found)
        print("leaks: none")


if __name__ == "__main__":
    main(sys.argv[1])
