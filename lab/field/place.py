# SPDX-License-Identifier: GPL-2.0
"""What a directory of a server lies on: filesystem, device, drive, bdi, room; and the machine."""

from __future__ import annotations

import os
import re
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from lab.util.errors import LabError

MIB = 1 << 20
#: Those that have several flushers on the parallel kernel.
FILESYSTEMS = ("xfs", "ext4", "f2fs")
#: Of the filesystem, what a run leaves free.
RESERVE = 0.05


@dataclass(frozen=True)
class System:
    """Where the kernel shows itself; a test has folders of its own."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")

    @property
    def vm(self) -> Path:
        """Return the folder of the settings ``vm.*``."""
        return self.proc / "sys" / "vm"


@dataclass(frozen=True)
class Place:
    """A directory to measure in, and what it lies on.

    Attributes:
        folder: the directory.
        filesystem: name of its type.
        device: name of what the filesystem is on, a disk or a partition.
        disk: name of the disk, of which the backing_dev_info is.
        sysfs: folder of the device in sysfs.
        bdi: folder of the backing_dev_info in sysfs.
        drive: what the disk is, without serial numbers.
    """

    folder: Path
    filesystem: str
    device: str
    disk: str
    sysfs: Path
    bdi: Path
    drive: str

    @property
    def is_parallel(self) -> bool:
        """Say whether the kernel that runs has writeback contexts."""
        return (self.bdi / "nwritebacks").exists()

    @property
    def size_mib(self) -> float:
        """Return the size of the filesystem."""
        room = os.statvfs(self.folder)
        return room.f_blocks * room.f_frsize / MIB

    @property
    def free_mib(self) -> float:
        """Return what is free for users other than root."""
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize / MIB

    @property
    def usable_mib(self) -> float:
        """Return what the files of a run may take."""
        return self.free_mib - RESERVE * self.size_mib

    @property
    def is_full(self) -> bool:
        """Say whether a run has taken so much that it has to end."""
        return self.free_mib < RESERVE / 2 * self.size_mib


def find(folder: Path, system: System, *, to_write: bool = True) -> Place:
    """Find out what a directory lies on.

    Args:
        folder: the directory.
        system: where the kernel shows itself.
        to_write: whether it is to be measured in; else what a run has left there is to be put back, and the
            filesystem may be read-only since.

    Raises:
        LabError: it is none to measure in.
    """
    if not folder.is_dir():
        raise LabError(
            f"{folder} is no directory: expected one on the filesystem to measure; make one with: "
            f"mkdir {shlex.quote(str(folder))}"
        )
    folder = folder.resolve()
    if to_write and os.statvfs(folder).f_flag & os.ST_RDONLY:
        raise LabError(f"{folder} lies on a filesystem that is mounted read-only: remount it to be written")
    if to_write and not os.access(folder, os.W_OK | os.X_OK):
        raise LabError(
            f"{folder} cannot be written: expected a directory of yours; run this as root, or chown"
        )
    if os.geteuid() == 0:
        _check_owners(folder)
    filesystem = _filesystem(folder, system)
    number = folder.stat().st_dev
    node = system.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not node.exists() or filesystem not in FILESYSTEMS:
        raise LabError(
            f"{folder} lies on {filesystem}: expected {', '.join(FILESYSTEMS)}, directly on a local block "
            "device, for others have one flusher on any kernel; name a directory on such a filesystem"
        )
    sysfs = node.resolve()
    disk = _disk(sysfs)
    bdi = system.sys / "class" / "bdi" / _read(disk / "dev")
    if not bdi.is_dir():
        raise LabError(f"{bdi} is not there: expected the settings of {disk.name}; is sysfs mounted?")
    return Place(folder, filesystem, sysfs.name, disk.name, sysfs, bdi, _drive(disk))


def machine(system: System) -> dict[str, str | int]:
    """Describe the machine, without its name: CPUs, their model, memory in MiB."""
    model = re.search(r"^model name\s*:\s*(.*)$", _read(system.proc / "cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _read(system.proc / "meminfo"), re.MULTILINE)
    return {
        "cpus": os.cpu_count() or 1,
        "cpu_model": model[1].strip() if model else os.uname().machine,
        "memory_mib": int(memory[1]) // 1024 if memory else 0,
    }


def most_contexts(system: System) -> int:
    """Return how many contexts a device can have on a kernel that has them: four for each possible CPU."""
    listed = (system.sys / "devices" / "system" / "cpu" / "possible").read_text(encoding="ascii")
    ranges = [part.split("-") for part in listed.strip().split(",")]
    return 4 * sum(int(ends[-1]) - int(ends[0]) + 1 for ends in ranges)


def _check_owners(folder: Path) -> None:
    """Check that no other account can put something else in the place of what root makes in a directory.

    Raises:
        LabError: naming the directory whose owner or mode lets it.
    """
    for one in (folder, *folder.parents):
        found = one.stat()
        is_shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if found.st_uid != 0 or is_shared:
            raise LabError(
                f"{one} can be written by another account, which could have root remove files elsewhere: "
                f"expected {folder} and all above it to be root's alone; name such a directory, or use chown "
                "root and chmod go-w"
            )


def _filesystem(folder: Path, system: System) -> str:
    """Return the type of the filesystem that is mounted deepest above a directory; of two the later."""
    best, found = -1, "an unknown filesystem"
    # Names of mounts may have any character but those that stand in octal: a blank, a tab, a line end.
    for line in _read(system.proc / "self" / "mountinfo").split("\n"):
        before, _, after = line.partition(" - ")
        mount = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4]))
        if folder.is_relative_to(mount) and len(mount.parts) >= best:
            best, found = len(mount.parts), after.split()[0]
    return found


def _drive(disk: Path) -> str:
    """Say what a disk is: its model, or its driver; of several disks below it, theirs."""
    below = [_disk(one.resolve()) for one in sorted((disk / "slaves").glob("*"))]
    if below:
        models = sorted(_drive(one) for one in below)
        kind = _read(disk / "md" / "level") or "dm"
        counted = [f"{models.count(one)} x {one}" for one in dict.fromkeys(models)]
        return f"{kind} of {', '.join(counted)}"
    driver = disk / "device" / "driver"
    named = driver.resolve().name if driver.exists() else re.sub(r"[\d.]+$", "", disk.name)
    return " ".join(_read(disk / "device" / "model").split()) or named


def _disk(sysfs: Path) -> Path:
    """Return the folder of the disk that a partition is of; a disk is its own."""
    return sysfs.parent if (sysfs / "partition").exists() else sysfs


def _read(path: Path) -> str:
    """Return what a file says, without blanks around it; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
