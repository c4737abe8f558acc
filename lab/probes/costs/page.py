# SPDX-License-Identifier: GPL-2.0
"""Run in the guest by ``pwb costs``: what a page costs to dirty and to write back.

CPU time is all that it takes. Nothing is throttled, and nothing is written back but by ``sync``. As many
other files as are given are dirty too, one in each context if there are as many. Python's standard library
only.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from guest.record import leave

PAGE = 4096
MIB = 1 << 20
FILE_MIB = 256
PAGES = FILE_MIB * MIB // PAGE
ROUNDS = 8
# A whole round of writes fits below both limits.
LIMITS = {"dirty_writeback_centisecs": 0, "dirty_bytes": 3 << 30, "dirty_background_bytes": 2 << 30}


def us_a_page(seconds: list[float]) -> float:
    """Return the median of some rounds."""
    return statistics.median(seconds) / PAGES * 1e6


def main(others: int) -> None:
    """Dirty every page of a cached file and sync, over and over; some other files are dirty meanwhile."""
    for name, value in LIMITS.items():
        Path("/proc/sys/vm", name).write_text(str(value))
    folder = Path(os.environ["PWB_MNT"])
    beside = [os.open(folder / f"other.{n}", os.O_RDWR | os.O_CREAT) for n in range(others)]
    file = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
    data = bytes(MIB)
    dirty, sync = [], []
    for number in range(ROUNDS + 1):
        for other in beside:
            os.pwrite(other, data[:PAGE], 0)
        start = time.perf_counter()
        for offset in range(0, FILE_MIB * MIB, MIB):
            os.pwrite(file, data, offset)
        written = time.perf_counter()
        os.sync()
        # The first round allocates pages and blocks.
        if number:
            dirty.append(written - start)
            sync.append(time.perf_counter() - written)
    around = f", {others} other files dirty" if others else ""
    costs = {"dirtying a cached page": dirty, "writing a page back": sync}
    leave({what + around: us_a_page(seconds) for what, seconds in costs.items()})


if __name__ == "__main__":
    main(int(sys.argv[1]))
