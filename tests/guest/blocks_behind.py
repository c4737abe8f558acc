# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: a file of XFS that has written blocks behind its end grows over them.

``python -m tests.guest.blocks_behind [--truncate]`` from the repository's folder.

A power cut can leave such a file: when what was written to shared blocks is on storage, one transaction
gives the file its blocks, and the next its size. It seldom does, so the size is changed here. The kernel
warns, unless the file was truncated to the size that it has. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.guest.powercut import MAKE, MOUNT, PAGE_BYTES, Device

# The end is in the third of four blocks.
SIZE, WHOLE, FAR = 2 * PAGE_BYTES + 512, 4 * PAGE_BYTES, 16 * PAGE_BYTES


def main() -> None:
    """Write a file, change its size on the device, and write behind its end."""
    device = Device("cut0", 7)
    mount = ["mount", "-t", "xfs", device.node, str(MOUNT)]
    umount = ["umount", str(MOUNT)]
    MOUNT.mkdir(exist_ok=True)
    path = MOUNT / "file"
    subprocess.run([*MAKE["xfs"], device.node], check=True)
    subprocess.run(mount, check=True)
    path.write_bytes(b"o" * WHOLE)
    inode = path.stat().st_ino
    subprocess.run(umount, check=True)
    change = ["-c", f"inode {inode}", "-c", f"write core.size {SIZE}"]
    subprocess.run(["xfs_db", "-x", *change, device.node], check=True)
    subprocess.run(mount, check=True)
    if "--truncate" in sys.argv:
        os.truncate(path, SIZE)
    with path.open("r+b") as file:
        file.seek(FAR)
        file.write(b"n")
    subprocess.run(umount, check=True)
    device.remove()
    print("written")


if __name__ == "__main__":
    main()
