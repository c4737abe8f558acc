# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: does a power cut bring back blocks that another file has overwritten meanwhile?

``python -m tests.guest.shared_cut`` from the repository's folder. Prints how many pages are not the file's.

Two files of XFS share their blocks. One is cut short, and with that the other may be written in place. What
it writes can be on the device before the transaction that cuts the first one short. Standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess

from tests.guest.cut_calls import FICLONE, SYNC_FILE_RANGE_WRITE_AND_WAIT
from tests.guest.powercut import MOUNT, PAGE_BYTES, PAGES, Device, made_and_mounted
from tests.guest.syncfs_cut import LIBC, synced

OLD, NEW = (byte * PAGE_BYTES for byte in (b"o", b"n"))


def main() -> None:
    """Share, cut short, overwrite, cut the power, and count."""
    device = Device("cut0", 7)
    mount = made_and_mounted("xfs", device)
    file, copy = synced(f"{MOUNT}/file", OLD * PAGES), synced(f"{MOUNT}/copy", b"")
    fcntl.ioctl(copy, FICLONE, file)
    os.sync()
    os.ftruncate(copy, 0)
    os.pwrite(file, NEW * PAGES, 0)
    length = ctypes.c_long(PAGES * PAGE_BYTES)
    if LIBC.sync_file_range(file, ctypes.c_long(0), length, SYNC_FILE_RANGE_WRITE_AND_WAIT):
        raise OSError(ctypes.get_errno(), "sync_file_range")
    device.cut_under([file, copy])
    subprocess.run(mount, check=True)
    found = (MOUNT / "copy").read_bytes()
    subprocess.run(["umount", str(MOUNT)], check=True)
    device.remove()
    pages = [found[at : at + PAGE_BYTES] for at in range(0, len(found), PAGE_BYTES)]
    print(f"{sum(page != OLD for page in pages)} of {PAGES} pages")


if __name__ == "__main__":
    main()
