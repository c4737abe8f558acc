# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is what was synced there after a power cut that tore ext4's superblock?

``python -m tests.guest.torn_superblock`` from the repository's folder. A cut seldom does that, so a byte
of it is changed here, after which its checksum is wrong. Standard library only.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.guest import powercut
from tests.guest.cuts import mend_superblock
from tests.guest.kernel_log import Log
from tests.guest.powercut import FILES, MAKE, MOUNT, content

# Of the superblock, a byte that a mount does not use.
BYTE = 1024 + 700


def change(node: str) -> None:
    """Change a byte of the superblock."""
    with Path(node).open("r+b") as device:
        device.seek(BYTE)
        old = device.read(1)
        device.seek(BYTE)
        device.write(bytes([old[0] ^ 0xFF]))


def main() -> None:
    """Sync files, cut the power, tear the superblock, mend it, and look for the files."""
    device = powercut.Device("cuts", 7)
    mount = ["mount", "-t", "ext4", device.node, str(MOUNT)]
    MOUNT.mkdir(exist_ok=True)
    subprocess.run([*MAKE["ext4"], device.node], check=True)
    subprocess.run(mount, check=True)
    for number in range(FILES):
        with (MOUNT / str(number)).open("wb") as file:
            file.write(content(number))
            file.flush()
            os.fsync(file.fileno())
    device.cut_under([os.open(MOUNT, os.O_RDONLY)])
    change(device.node)
    with Log().only_reports():
        assert subprocess.run(mount, check=False).returncode, "a wrong checksum is found"
    assert mend_superblock("ext4")
    subprocess.run(mount, check=True)
    assert all((MOUNT / str(n)).read_bytes() == content(n) for n in range(FILES)), "a synced file is lost"
    subprocess.run(["umount", str(MOUNT)], check=True)
    device.remove()
    print("as it should be")


if __name__ == "__main__":
    main()
