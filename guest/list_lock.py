# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, on the lockstat kernel: which locks are found taken while files are written back?

    ./pwb guest --kernel lockstat --mem-mib 6144 --device-size-mib 3072 --set nwritebacks=1 --set wb_workers=4
        -- env PYTHONPATH=$PWD python3 -m guest.list_lock

Four processes overwrite 4 KiB at random places of a file each, as the headline bench does. A line for
``list_lock``, and for each lock that was found taken: how often it was taken, and found so, per GiB that
reached the device. How long that took is not told: the statistics' clock is the tick here. Python's standard
library only.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from guest.load import sectors_written, set_dirty_limit
from guest.waits import FILE_BYTES, WRITERS, start, write

GIB = 1 << 30
SECTOR = 512
LIMIT_MIB = 1024
RAMP_S = 3
WINDOW_S = 10
WANTED = "&wb->list_lock"
STATISTICS = Path("/proc/lock_stat")
SWITCH = Path("/proc/sys/kernel/lock_stat")

# Name, bounces and contentions; four times; bounces and acquisitions. Documentation/locking/lockstat.rst
LINE = re.compile(
    r"^ *(?P<name>\S[^:]*(?:::?[^: ]+)*): +\d+ +(?P<contended>\d+)(?: +[\d.]+){4} +\d+ +(?P<taken>\d+) "
)


def counts(lines: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return how often each class of locks was taken, and how often it was found taken.

    Args:
        lines: those of ``/proc/lock_stat``.
    """
    found = (LINE.match(line) for line in lines)
    return {one["name"]: (int(one["taken"]), int(one["contended"])) for one in found if one}


def main() -> int:
    """Run the writers, count for a while, and print the locks that were found taken most often."""
    paths = [Path(os.environ["PWB_MNT"]) / f"data.{number}" for number in range(WRITERS)]
    for path in paths:
        with path.open("wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(bytes(1 << 20))
    os.sync()
    set_dirty_limit(LIMIT_MIB)
    stat = Path("/sys/block") / Path(os.environ["PWB_DEV"]).resolve().name / "stat"
    children = [start(write, path) for path in paths]
    time.sleep(RAMP_S)
    STATISTICS.write_text("0")
    written = sectors_written(stat.read_text())
    SWITCH.write_text("1")
    time.sleep(WINDOW_S)
    SWITCH.write_text("0")
    gib = (sectors_written(stat.read_text()) - written) * SECTOR / GIB
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    found = counts(STATISTICS.read_text().splitlines())
    print(f"{gib / WINDOW_S * 1024:.0f} MiB/s")
    crowded = sorted((name for name in found if found[name][1]), key=lambda name: -found[name][1])
    for name in dict.fromkeys([WANTED, *crowded]):
        taken, contended = found.get(name, (0, 0))
        print(f"{name}: {taken / gib:.0f} times per GiB, {contended / gib:.1f} of them found taken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
