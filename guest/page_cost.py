# SPDX-License-Identifier: GPL-2.0
"""Run in the guest: what a page costs to dirty and to write back, where CPU time is all that it takes.

    ./pwb guest --kernel stock --mem-mib 4096 -- python3 $PWD/guest/page_cost.py
    ./pwb guest --kernel parallel --mem-mib 4096 --set nwritebacks=1 -- python3 $PWD/guest/page_cost.py

Nothing is throttled, and nothing is written back but by ``sync``. With a number, as many other files are
dirty too: with ``--set wb_affinity=ino`` each of as many contexts has one. Python's standard library only.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

PAGE = 4096
MIB = 1 << 20
FILE_MIB = 256
PAGES = FILE_MIB * MIB // PAGE
ROUNDS = 24
# A whole round of writes fits below both limits.
LIMITS = {"dirty_writeback_centisecs": 0, "dirty_bytes": 3 << 30, "dirty_background_bytes": 2 << 30}


def show(what: str, seconds: list[float]) -> None:
    """Print the median and the least of some rounds."""
    median, least = statistics.median(seconds), min(seconds)
    print(f"{what}: {median / PAGES * 1e6:.2f} us a page (least {least / PAGES * 1e6:.2f})", flush=True)


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
    show("dirty", dirty)
    show("write back", sync)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
