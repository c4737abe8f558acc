# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is a file as long after a power cut as a direct write with O_DSYNC has made it?

``python -m tests.guest.direct_cut FS`` from the repository's folder. Prints how many files are shorter.

The last page of each file is written past the page cache, and with that the file ends where the page does:
no block is new. Standard library only.
"""

from __future__ import annotations

import mmap
import os
import subprocess
import sys

from tests.guest.powercut import MOUNT, PAGE_BYTES, PAGES, SECTOR_BYTES, Device, made_and_mounted
from tests.guest.syncfs_cut import synced

FILES = 40
WHOLE = PAGES * PAGE_BYTES


def write_last_page(path: str) -> None:
    """Write the last page of a file, and have that promised."""
    fd = os.open(path, os.O_WRONLY | os.O_DIRECT | os.O_DSYNC)
    with mmap.mmap(-1, PAGE_BYTES) as memory:
        memory.write(b"n" * PAGE_BYTES)
        assert os.pwritev(fd, [memory], WHOLE - PAGE_BYTES) == PAGE_BYTES
    os.close(fd)


def main(fs: str) -> None:
    """Write, cut the power, and count."""
    device = Device("cut0", 7)
    mount = made_and_mounted(fs, device)
    paths = [f"{MOUNT}/file{number}" for number in range(FILES)]
    files = [synced(path, b"o" * (WHOLE - PAGE_BYTES + SECTOR_BYTES)) for path in paths]
    os.sync()
    for path in paths:
        write_last_page(path)
    device.cut_under(files)
    subprocess.run(mount, check=True)
    print(f"{sum(os.stat(path).st_size != WHOLE for path in paths)} of {FILES} files")
    subprocess.run(["umount", str(MOUNT)], check=True)
    device.remove()


if __name__ == "__main__":
    main(sys.argv[1])
