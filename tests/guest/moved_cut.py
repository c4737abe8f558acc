# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: where does a power cut leave what was written to a block that was moved within a file?

``python -m tests.guest.moved_cut FS`` from the repository's folder. Prints how many pages are found where the
block was.

The first pages are taken out of a file, and what is then its first half is overwritten, in place. That can be
on the device before the transactions that take the pages out. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

from tests.guest.cut_calls import MODES, SYNC_FILE_RANGE_WRITE_AND_WAIT, called
from tests.guest.powercut import MOUNT, PAGE_BYTES, PAGES, Device, made_and_mounted
from tests.guest.syncfs_cut import synced

OLD, NEW = (byte * PAGE_BYTES for byte in (b"o", b"n"))
HALF = PAGES // 2


def main(fs: str) -> None:
    """Take out, overwrite, cut the power, and count."""
    device = Device("cut0", 7)
    mount = made_and_mounted(fs, device)
    file = synced(f"{MOUNT}/file", OLD * PAGES)
    os.sync()
    half = ctypes.c_long(0), ctypes.c_long(HALF * PAGE_BYTES)
    called("fallocate", file, MODES["collapse"], *half)
    os.pwrite(file, NEW * HALF, 0)
    called("sync_file_range", file, *half, SYNC_FILE_RANGE_WRITE_AND_WAIT)
    device.cut_under([file])
    subprocess.run(mount, check=True)
    found = (MOUNT / "file").read_bytes()
    subprocess.run(["umount", str(MOUNT)], check=True)
    device.remove()
    pages = [found[at : at + PAGE_BYTES] for at in range(HALF * PAGE_BYTES, len(found), PAGE_BYTES)]
    print(f"{sum(page != OLD for page in pages)} of {HALF} pages")


if __name__ == "__main__":
    main(sys.argv[1])
