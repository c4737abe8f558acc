# SPDX-License-Identifier: GPL-2.0
"""Run in the guest: how long ``sync`` takes on a clean system of 8 devices with 8 contexts each.

    ./pwb guest --kernel stock --fs none -- python3 $PWD/guest/sync_cost.py
    ./pwb guest --kernel parallel --fs none -- python3 $PWD/guest/sync_cost.py

Python's standard library only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

NULL_BLK = Path("/sys/kernel/config/nullb")
DEVICES = 8
CONTEXTS = 8
SYNCS = 300


def mounted(number: int) -> Path:
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
        (bdi / "nwritebacks").write_text(str(CONTEXTS))
        (bdi / "wb_affinity").write_text("rotor")
    mount = Path("/tmp") / node.name
    mount.mkdir()
    subprocess.run(["mount", str(node), str(mount)], check=True)
    return mount


def main() -> int:
    """Give every context an inode, then time syncs that find nothing to do."""
    for number in range(DEVICES):
        mount = mounted(number)
        for file in range(4 * CONTEXTS):
            (mount / str(file)).write_text("data")
    os.sync()
    times_us = []
    for _ in range(SYNCS):
        begin = time.monotonic()
        os.sync()
        times_us.append((time.monotonic() - begin) * 1e6)
    low, median, high = statistics.quantiles(times_us, n=4)
    print(f"sync of a clean system: {median:.0f} us (quartiles {low:.0f} to {high:.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
