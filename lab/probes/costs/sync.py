# SPDX-License-Identifier: GPL-2.0
"""Run in the guest by ``pwb costs``: how long ``sync`` takes on a clean system of 8 devices.

Each has as many contexts as are given, and inodes in all of them. Python's standard library only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from guest.record import leave

NULL_BLK = Path("/sys/kernel/config/nullb")
DEVICES = 8
FILES = 32
SYNCS = 300


def mounted(number: int, contexts: str) -> Path:
    """Make a device with an ext4 on it, and return where it is mounted."""
    device = NULL_BLK / f"sync{number}"
    device.mkdir()
    for name, value in ("size", 64), ("memory_backed", 1), ("power", 1):
        (device / name).write_text(str(value))
    node = Path(f"/dev/sync{number}")
    subprocess.run(["mkfs.ext4", "-q", str(node)], check=True)
    major_minor = (Path("/sys/block") / node.name / "dev").read_text().strip()
    bdi = Path("/sys/class/bdi") / major_minor
    if (bdi / "nwritebacks").exists():
        (bdi / "nwritebacks").write_text(contexts)
        (bdi / "wb_affinity").write_text("rotor")
    mount = Path("/tmp") / node.name
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", str(node), str(mount)], check=True)
    return mount


def main(contexts: str) -> int:
    """Give every context an inode, then time syncs that find nothing to do."""
    for number in range(DEVICES):
        mount = mounted(number, contexts)
        for file in range(FILES):
            (mount / str(file)).write_text("data")
    os.sync()
    times_us = []
    for _ in range(SYNCS):
        begin = time.monotonic()
        os.sync()
        times_us.append((time.monotonic() - begin) * 1e6)
    leave({f"sync of a clean system, {DEVICES} devices": statistics.median(times_us)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
