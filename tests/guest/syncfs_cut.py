# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is what syncfs() has written still in the device's cache?

``python -m tests.guest.syncfs_cut FS [--flush]`` from the repository's folder. Prints how many pages were
lost.

A file is overwritten in place. Then another file is synced, which writes the log and with it what the
overwrite has changed of the first one's metadata, so that nothing of it is left for syncfs() to log. With
``--flush`` the device is told to flush its cache after that. Standard library only.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess

from tests.guest.powercut import MAKE, MOUNT, PAGE_BYTES, PAGES, Device

CUTS = 10
LIBC = ctypes.CDLL(None, use_errno=True)


def synced(path: str, data: bytes) -> int:
    """Write a file and sync it; return its descriptor."""
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    return fd


def cut(fs: str, device: Device, number: int, *, flush: bool) -> int:
    """Overwrite, sync all and cut the power; return how many pages are not what was written."""
    mount = ["mount", "-t", fs, device.node, str(MOUNT)]
    subprocess.run(mount, check=True)
    old, new = (bytes([2 * number + 1 + change]) * PAGE_BYTES for change in range(2))
    files = [synced(f"{MOUNT}/{name}", old * PAGES) for name in ("file", "other")]
    os.sync()
    os.pwrite(files[0], new * PAGES, 0)
    os.pwrite(files[1], new, 0)
    os.fsync(files[1])
    if LIBC.syncfs(files[0]):
        raise OSError(ctypes.get_errno(), "syncfs")
    if flush:
        node = os.open(device.node, os.O_RDONLY)
        os.fsync(node)
        os.close(node)
    device.cut_under(files)
    subprocess.run(mount, check=True)
    found = (MOUNT / "file").read_bytes()
    subprocess.run(["umount", str(MOUNT)], check=True)
    return sum(found[at : at + PAGE_BYTES] != new for at in range(0, PAGES * PAGE_BYTES, PAGE_BYTES))


def main() -> None:
    """Cut the power some times, and print what was lost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fs", choices=MAKE)
    parser.add_argument("--flush", action="store_true")
    asked = parser.parse_args()
    # What is not waited for is in flight when the power goes.
    device = Device("cut0", 7, cache_ns=20_000_000, channels=PAGES)
    MOUNT.mkdir(exist_ok=True)
    subprocess.run([*MAKE[asked.fs], device.node], check=True)
    lost = sum(cut(asked.fs, device, number, flush=asked.flush) for number in range(CUTS))
    print(f"{lost} of {CUTS * PAGES} pages lost")
    device.remove()


if __name__ == "__main__":
    main()
