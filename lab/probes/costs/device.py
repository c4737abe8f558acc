# SPDX-License-Identifier: GPL-2.0
"""Run in the guest by ``pwb costs``: what memory an idle block device costs.

Devices are made by configfs (null_blk, without blocks), so most of what is counted is the device's own.
Python's standard library only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from guest.record import leave

NULL_BLK = Path("/sys/kernel/config/nullb")
DEVICES = 300


def kernel_bytes() -> int:
    """Return what is allocated but for caches and programs, less a constant, with the caches dropped."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free, cached, anonymous = (int(fields[key].split()[0]) for key in ("MemFree", "Cached", "AnonPages"))
    return -(free + cached + anonymous) * 1024


def main() -> int:
    """Make the devices and tell the cost of one."""
    before = kernel_bytes()
    for number in range(DEVICES):
        device = NULL_BLK / f"cost{number}"
        device.mkdir()
        (device / "size").write_text("1")
        (device / "power").write_text("1")
    leave({"an idle device": (kernel_bytes() - before) / DEVICES})
    return 0


if __name__ == "__main__":
    sys.exit(main())
