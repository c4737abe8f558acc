# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what a labblk device with a volatile cache loses in a power cut.

``python -m tests.guest.powercut raw`` writes the bare device, ``... FS`` a filesystem. Standard library only.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import subprocess
import sys
from pathlib import Path

from tests.guest.fsck import check

SIZE_MIB = 400
PAGE_BYTES, SECTOR_BYTES = 4096, 512
PAGES = 64
SECOND_NS = 1_000_000_000
FILES = 40
CONFIGFS = Path("/sys/kernel/config/labblk")
MOUNT = Path("/tmp/cut")
MAKE = {
    "xfs": ["mkfs.xfs", "-q", "-f"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"],
    "f2fs": ["mkfs.f2fs", "-q", "-f"],
}
# FS_IOC_SHUTDOWN of include/uapi/linux/fs.h with "flush neither the log nor data". A filesystem that
# runs into the power cut reports errors, as it should, but a report in the console fails the run.
SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = struct.pack("=I", 2)


class Device:
    """A labblk device with a cache."""

    def __init__(self, name: str, seed: int, **attributes: int) -> None:
        """Make the device and switch its power on."""
        self.node = f"/dev/{name}"
        self._folder = CONFIGFS / name
        self._stat = Path("/sys/block", name, "inflight")
        self._folder.mkdir()
        for key, value in {"size_mib": SIZE_MIB, "cache": 1, "seed": seed, **attributes, "power": 1}.items():
            self._write(key, value)

    def writes_in_flight(self) -> int:
        """Return how many write commands have not ended."""
        return int(self._stat.read_text().split()[1])

    def _write(self, key: str, value: int) -> None:
        (self._folder / key).write_text(str(value))

    def power(self, on: bool) -> None:
        """Switch the power."""
        self._write("power", int(on))

    def cut_under(self, files: list[int]) -> None:
        """Cut the power of the filesystem of open files, close them, unmount it, and power on again."""
        self.power(False)
        fcntl.ioctl(files[0], SHUTDOWN, WITHOUT_FLUSH)
        for fd in files:
            os.close(fd)
        subprocess.run(["umount", str(MOUNT)], check=True)
        self.power(True)

    def remove(self) -> None:
        """Remove the device."""
        self._folder.rmdir()


def made_and_mounted(fs: str, device: Device) -> list[str]:
    """Make a filesystem on a device and mount it; return the command that mounts it again."""
    mount = ["mount", "-t", fs, device.node, str(MOUNT)]
    MOUNT.mkdir(exist_ok=True)
    subprocess.run([*MAKE[fs], device.node], check=True)
    subprocess.run(mount, check=True)
    return mount


class Raw:
    """A bare device, read and written without the page cache."""

    def __init__(self, node: str) -> None:
        """Open the device."""
        self._fd = os.open(node, os.O_RDWR | os.O_DIRECT)
        self._buffer = mmap.mmap(-1, PAGES * PAGE_BYTES)

    def write(self, byte: int) -> None:
        """Fill the first pages with a byte."""
        self._buffer[:] = bytes([byte]) * len(self._buffer)
        assert os.pwritev(self._fd, [self._buffer], 0) == len(self._buffer)

    def read(self) -> bytes:
        """Return what the first pages hold."""
        self._buffer[:] = bytes(len(self._buffer))
        assert os.preadv(self._fd, [self._buffer], 0) == len(self._buffer)
        return self._buffer[:]

    def flush(self) -> None:
        """Flush the device's cache."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Close the device."""
        os.close(self._fd)


def fails(call: object, *arguments: object) -> bool:
    """Return whether a call fails with EIO."""
    assert callable(call)
    try:
        call(*arguments)
    except OSError as error:
        return error.errno == errno.EIO
    return False


def left_by_a_cut(name: str, seed: int) -> bytes:
    """Flush one byte, write another over it, cut the power; return what the device then holds."""
    device = Device(name, seed)
    raw = Raw(device.node)
    raw.write(1)
    raw.flush()
    raw.write(2)
    assert set(raw.read()) == {2}, "a read sees the write before it"
    device.power(False)
    assert fails(raw.read), "reads fail after the cut"
    assert fails(raw.write, 3), "writes fail after the cut"
    assert fails(raw.flush), "a flush fails after the cut"
    assert Path(device.node).is_block_device()
    device.power(True)
    left = raw.read()
    raw.write(4)
    raw.flush()
    assert set(raw.read()) == {4}, "the device works again"
    raw.close()
    device.remove()
    return left


def left_in_flight(name: str) -> bytes:
    """Flush one byte, cut the power while another is on its way, which is too late for a flush."""
    device = Device(name, 7, cache_ns=SECOND_NS, channels=PAGES)
    raw = Raw(device.node)
    raw.write(1)
    raw.flush()
    child = os.fork()
    if not child:
        os._exit(not fails(raw.write, 2))
    while not device.writes_in_flight():
        pass
    raw.flush()
    device.power(False)
    assert os.waitpid(child, 0)[1] == 0, "the write fails that was in flight"
    device.power(True)
    left = raw.read()
    raw.close()
    device.remove()
    return left


def is_lost_kept_and_torn(left: bytes) -> bool:
    """Tell whether of two bytes pages have the one, the other and both, but sectors never both."""
    sectors = [left[at : at + SECTOR_BYTES] for at in range(0, len(left), SECTOR_BYTES)]
    pages = [set(left[at : at + PAGE_BYTES]) for at in range(0, len(left), PAGE_BYTES)]
    whole = all(len(set(sector)) == 1 for sector in sectors)
    return whole and set(left) == {1, 2} and all(kind in pages for kind in ({1}, {2}, {1, 2}))


def cut_raw() -> None:
    """Cut the power of bare devices and look at every sector."""
    first = left_by_a_cut("cut0", 7)
    assert is_lost_kept_and_torn(first), "what was flushed is there, what was not may be"
    assert left_by_a_cut("cut1", 7) == first, "the seed decides"
    assert left_by_a_cut("cut2", 8) != first, "another seed decides otherwise"
    assert is_lost_kept_and_torn(left_in_flight("cut3")), "no flush covers what is in flight"


def content(number: int) -> bytes:
    """Return what a file holds."""
    return f"file {number}\n".encode() * (1 + number * 997)


def cut_filesystem(fs: str) -> None:
    """Cut the power of a filesystem: what was fsynced is there afterwards, and nothing is broken."""
    device = Device("cut0", 7)
    mount = made_and_mounted(fs, device)
    for number in range(FILES):
        with (MOUNT / f"synced{number}").open("wb") as file:
            file.write(content(number))
            file.flush()
            os.fsync(file.fileno())
        # Promised to nobody.
        (MOUNT / f"dirty{number}").write_bytes(content(number))
    directory = os.open(MOUNT, os.O_RDONLY)
    fcntl.ioctl(directory, SHUTDOWN, WITHOUT_FLUSH)
    os.close(directory)
    device.power(False)
    subprocess.run(["umount", str(MOUNT)], check=True)
    device.power(True)
    subprocess.run(mount, check=True)
    wrong = [n for n in range(FILES) if (MOUNT / f"synced{n}").read_bytes() != content(n)]
    assert wrong == [], f"fsynced, and yet not there: {wrong}"
    subprocess.run(["umount", str(MOUNT)], check=True)
    check(fs, device.node)
    device.remove()


if __name__ == "__main__":
    if sys.argv[1] == "raw":
        cut_raw()
    else:
        cut_filesystem(sys.argv[1])
    print("as it should be")
