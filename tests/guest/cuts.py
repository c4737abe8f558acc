# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is what was promised there after a power cut?

``python -m tests.guest.cuts FS SEED CUTS [--lie]``. Prints what each cut found, a line of JSON.

Writers change files of their own in every way that makes or breaks a promise, see promises.py, while the
number of contexts and workers, the affinity and the mode of AG-aware writeback are others for each cut; in
half of them one of these is another from the middle of the load on. Half of the writers are in
cgroups of their own, which in some cuts they leave then, and which in others are removed. Then the device
loses its power: what its cache holds, and what is in flight, is gone, kept or torn. The filesystem is
mounted, unmounted, checked by its own tools and mounted again, and every file is compared. With ``--lie``
nothing is synced and yet promised: a check that finds nothing then sees nothing. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections import Counter
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.guest.agwb import passes
from tests.guest.cut_calls import MOUNT, NODE, POWER
from tests.guest.cut_check import Found
from tests.guest.cut_groups import Groups
from tests.guest.cut_operations import STREAMS
from tests.guest.cut_settings import Settings
from tests.guest.cut_writer import WRITERS, Writer
from tests.guest.fsck import CHECK
from tests.guest.kernel_log import Log

# A filesystem is used so often; what recovery makes of it is what the next cut meets.
CUTS_PER_MKFS = 8
# What dumpe2fs says of a torn superblock, and what writes it anew, whatever its checksum.
TORN = "uperblock checksum does not match superblock"
WRITE_ANEW = ["debugfs", "-n", "-w", "-R", "set_super_value mnt_count 1"]
# Lines of the kernel's log that are told where a filesystem cannot be mounted.
MOST_SAID = 4
# Characters of what is told of a thing that is lost.
LONGEST_TEXT = 4000
# A load lasts for so many operations of all writers, and no longer than so.
MOST_OPERATIONS = 200
LONGEST_LOAD_S = 0.6
# Who waits for operations looks so often.
LOOK_S = 0.005

DEVICE = POWER.parent
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
    "max_write_streams": STREAMS,
}
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f", "-d", "agcount=4"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", "-J", "size=8"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
# With which of these more options each filesystem is made. A cluster is as large as a block elsewhere, for
# ranges are collapsed and inserted by it.
COMPRESSED = "-O extra_attr,compression"
GEOMETRIES = {
    "xfs": ("", "-b size=1024", "-m rmapbt=1"),
    "ext4": ("-b 1024", "-b 4096", "-b 1024 -O bigalloc -C 4096"),
    "f2fs": ("", COMPRESSED),
}
# All files are compressed then, if the kernel can do that.
MOUNT_OPTIONS = {COMPRESSED: ["-o", "compress_extension=*"]}
COMPRESSION = Path("/sys/fs/f2fs/features/compression")
# FS_IOC_SHUTDOWN of include/uapi/linux/fs.h with "flush neither the log nor data".
SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = struct.pack("=I", 2)


def mend_superblock(fs: str) -> bool:
    """Have a filesystem mended that cannot be mounted, where that is stock's; return whether it is.

    A superblock of ext4 has two sectors. One that was torn is wrong by its checksum, and by nothing else: it
    gets its checksum, and the filesystem is mounted and checked as after any cut. It is not for e2fsck to
    mend: that would also mend what is a loss, and takes a copy of the superblock that is as old as the
    filesystem, so that it has bitmaps and orphans to mend where nothing is lost. With clusters it finds none.
    """
    if fs != "ext4":
        return False
    look = subprocess.run(["dumpe2fs", "-h", str(NODE)], capture_output=True, text=True, check=False)
    if TORN not in look.stderr:
        return False
    subprocess.run([*WRITE_ANEW, str(NODE)], capture_output=True, check=True)
    return True


def writer_process(writer: Writer, orders: Connection, answers: Connection) -> None:
    """Do as told: choose_anew, begin, go_on, check."""
    while True:
        what, arguments = orders.recv()
        answers.send(getattr(writer, what)(*arguments))


class Machine:
    """A device, its filesystem and the processes that write there.

    Attributes:
        passes: passes of AG-aware writeback's workers in the last cut.
        settings: how to write back.
    """

    def __init__(self, fs: str, seed: int, *, lie: bool) -> None:
        """Make the device and start the writers."""
        self._fs = fs
        self._seed = seed
        self._chosen = random.Random(seed)
        self._log = Log()
        self.passes = 0
        self._group_writebacks = 0
        # How writers saw the filesystem give up before the power was cut.
        self._failed: list[str] = []
        DEVICE.mkdir()
        for name, value in {**ATTRIBUTES, "seed": seed, "power": 1}.items():
            (DEVICE / name).write_text(str(value))
        bdi = Path("/sys/class/bdi", Path("/sys/class/block", NODE.name, "dev").read_text().strip())
        self.settings = Settings(bdi, NODE.name, self._chosen)
        MOUNT.mkdir(exist_ok=True)
        # Where orders go and where answers come from; pipes, for the guest has no sockets.
        self._writers: list[tuple[Connection, Connection]] = []
        processes = []
        self._operations: list[memoryview[int]] = []
        for number in range(WRITERS):
            orders, order = Pipe(duplex=False)
            answer, answers = Pipe(duplex=False)
            writer = Writer(fs, number, seed, lie=lie)
            self._operations.append(writer.done)
            process = Process(target=writer_process, args=(writer, orders, answers), daemon=True)
            process.start()
            processes.append(process.pid or 0)
            answers.close()
            self._writers.append((order, answer))
        self._groups = Groups(processes[1::2], bdi.name, self._chosen)
        self._groups.join()

    def choose_anew(self, number: int) -> None:
        """Have the seed and the number of a cut choose what it does, whatever the cuts before it chose."""
        self._chosen.seed(f"{self._seed} {number}")
        self._all("choose_anew", number)

    def fresh(self) -> None:
        """Make a filesystem and files."""
        self._geometry = self._chosen.choice(GEOMETRIES[self._fs])
        if self._geometry == COMPRESSED and not COMPRESSION.exists():
            self._geometry = ""
        subprocess.run([*MAKE[self._fs], *self._geometry.split(), str(NODE)], check=True)
        self._mount()
        self._all("begin")
        subprocess.run(["sync", "-f", str(MOUNT)], check=True)

    def cut(self) -> dict[str, str]:
        """Write for a while and cut the power; return the settings that were in force."""
        way = {"mkfs": self._geometry or "without options", **self.settings.choose()}
        way["cgroup"] = self._groups.choose()
        root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
        for order, _ in self._writers:
            order.send(("go_on", ()))
        way["changed"] = self._wait_while_they_write()
        # Each cut has its own of what is gone, kept and torn.
        (DEVICE / "seed").write_text(str(self._chosen.getrandbits(64)))
        with self._log.only_reports():
            POWER.write_text("0")
            # It may have noticed by itself, and says so.
            with contextlib.suppress(OSError):
                fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
            self._failed = [failed for _, answer in self._writers for failed in answer.recv()]
            self.passes = passes(XFS_COUNTERS) if XFS_COUNTERS.exists() else 0
            self._group_writebacks = self._groups.writebacks()
            os.close(root)
            subprocess.run(["umount", str(MOUNT)], check=True)
        POWER.write_text("1")
        # What is mounted next is written by groups from its first page on.
        self._groups.join()
        return way

    def _wait_while_they_write(self) -> str:
        half = self._chosen.randint(1, MOST_OPERATIONS // 2)
        self._wait_for(half)
        changed = self.settings.change()
        self._groups.change()
        self._wait_for(half)
        return changed

    def _wait_for(self, operations: int) -> None:
        end, latest = self._done() + operations, time.monotonic() + LONGEST_LOAD_S / 2
        while self._done() < end and time.monotonic() < latest:
            time.sleep(LOOK_S)

    def _done(self) -> int:
        return sum(words[0] for words in self._operations)

    def recover(self) -> Found:
        """Mount, check and compare."""
        lost, mended = list(self._failed), 0
        taken = Counter({"writeback of a cgroup": self._group_writebacks})
        try:
            mended = self._mount_mended()
            subprocess.run(["umount", str(MOUNT)], check=True)
            check = subprocess.run([*CHECK[self._fs], str(NODE)], capture_output=True, text=True, check=False)
            if check.returncode:
                lost.append(f"{CHECK[self._fs][0]}: {check.stdout}{check.stderr}")
            self._mount()
        except subprocess.CalledProcessError as error:
            said = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()
            return Found(0, 0, [*lost, f"{error} {said[-MOST_SAID:]}"], taken, mended)
        found: list[Found] = self._all("check")
        subprocess.run(["sync", "-f", str(MOUNT)], check=True)
        for one in found:
            lost += one.lost
            taken += one.taken
        promised, longer = sum(one.promised for one in found), sum(one.longer for one in found)
        return Found(promised, longer, lost, taken, mended)

    def _mount_mended(self) -> int:
        """Mount what the cut has left, and return how many superblocks had to be mended for that."""
        try:
            self._mount()
        except subprocess.CalledProcessError:
            if not mend_superblock(self._fs):
                raise
            self._mount()
            return 1
        return 0

    def remove(self) -> None:
        """Unmount the filesystem, unless it could not be mounted."""
        if os.path.ismount(MOUNT):
            subprocess.run(["umount", str(MOUNT)], check=True)

    def _mount(self) -> None:
        options = MOUNT_OPTIONS.get(self._geometry, [])
        subprocess.run(["mount", "-t", self._fs, *options, str(NODE), str(MOUNT)], check=True)

    def _all(self, what: str, *arguments: object) -> list[Any]:
        for order, _ in self._writers:
            order.send((what, arguments))
        return [answer.recv() for _, answer in self._writers]


def main() -> int:
    """Cut the power so often, and print what each cut found at once, for the guest may end amid the next."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fs", choices=MAKE)
    parser.add_argument("seed", type=int)
    parser.add_argument("cuts", type=int)
    parser.add_argument("--lie", action="store_true")
    asked = parser.parse_args()
    machine = Machine(asked.fs, asked.seed, lie=asked.lie)
    streams = 0
    used = CUTS_PER_MKFS
    for number in range(asked.cuts):
        machine.choose_anew(number)
        if used == CUTS_PER_MKFS:
            if number:
                machine.remove()
            machine.fresh()
            used = 0
        used += 1
        way = machine.cut()
        found = machine.recover()
        if found.lost:
            # What is broken need not be found again and again.
            used = CUTS_PER_MKFS
        streams += found.taken["stream"]
        lost = [what[:LONGEST_TEXT] for what in found.lost]
        counts = {"promised": found.promised, "longer": found.longer, "mended": found.mended}
        told = {**counts, "passes": machine.passes, "lost": lost, "taken": found.taken}
        print(json.dumps({"cut": number, "way": way, **told}), flush=True)
    if machine.settings.has_streams and not streams:
        sys.exit("no file could be given a write stream")
    machine.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
