# SPDX-License-Identifier: GPL-2.0
"""Run in the guest: what AG-aware writeback of XFS costs where it has nothing to gain, to the percent.

    ./pwb guest --kernel parallel --device waiting --timeout 1800 -- python3 guest/ag_cost.py [LOAD...]

Two boots of one kernel lie up to 10% apart. So a load runs in one boot while its filesystem goes from mode to
mode, in a new order each round, and each turn is compared with the turn of mode ``off`` in the same round.
Pages dirtied count; throttled as the writers are, that is also what is written. Standard library only.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MODES = ("off", "ag-hint", "rotor", "generic")
ROUNDS = 60
TURN_S = 1.0
# A mode that is left may have hints to drop and workers to end.
SETTLE_S = 0.25
WARM_UP_S = 4.0
DIRTY_BYTES = 128 << 20
# Jobs of fio, which go on until they are stopped.
LOADS = {
    "sequential": "rw=write bs=1m size=1g unlink_each_loop=1",
    "small files": "rw=write bs=64k filesize=64k nrfiles=500 openfiles=1 file_service_type=sequential "
    "create_on_open=1 unlink_each_loop=1 numjobs=4",
    "fsync": "rw=write bs=4k fsync=1 size=64m numjobs=4",
    "mmap": "rw=randwrite bs=4k ioengine=mmap overwrite=1 size=256m norandommap=1 numjobs=2",
}
COMMON = "ioengine=psync fallocate=none invalidate=0 loops=1000000"


def counters() -> tuple[float, int, float]:
    """Return the time in seconds, the pages dirtied so far, and the CPU time so far in seconds."""
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    # User, nice, system, idle, waiting for I/O, interrupts...
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    busy = sum(ticks[:3]) + sum(ticks[5:])
    return time.monotonic(), int(counts["nr_dirtied"]), busy / os.sysconf("SC_CLK_TCK")


def turn(folder: Path, mode: str) -> tuple[float, float]:
    """Return pages per second and CPU seconds per page of one turn in a mode."""
    for kind in ("overwrite", "delalloc"):
        (folder / kind).write_text(mode)
    time.sleep(SETTLE_S)
    begin_s, begin_pages, begin_cpu_s = counters()
    time.sleep(TURN_S)
    end_s, end_pages, end_cpu_s = counters()
    pages = end_pages - begin_pages
    return pages / (end_s - begin_s), (end_cpu_s - begin_cpu_s) / pages


def compare(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """Return the multiple of the base, and how far it may be off.

    Args:
        values: a value for each round.
        base: what each is compared with.

    Returns:
        The geometric mean of the quotients, and half of its 95% interval (normal, of the mean logarithm).
    """
    logs = [math.log(value / of) for value, of in zip(values, base, strict=True)]
    mean = math.exp(statistics.fmean(logs))
    return mean, 1.96 * mean * statistics.stdev(logs) / math.sqrt(len(logs))


def measure(load: str, mount: Path, folder: Path) -> None:
    """Run a load through all modes, and print what each comes to."""
    words = ["--name=load", f"--directory={mount}"] + [
        f"--{word}" for word in (COMMON + " " + LOADS[load]).split()
    ]
    order = random.Random(load)
    turns: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    with subprocess.Popen(["fio", "--output=/dev/null", *words]) as fio:
        time.sleep(WARM_UP_S)
        for _ in range(ROUNDS):
            for mode in order.sample(MODES, len(MODES)):
                turns[mode].append(turn(folder, mode))
        if fio.poll() is not None:
            sys.exit(f"fio ended with status {fio.returncode} during '{load}'")
        fio.terminate()
    for mode in MODES[1:]:
        compared = [
            "{:.3f} ± {:.3f}".format(*compare(values, base))
            for values, base in zip(
                zip(*turns[mode], strict=True), zip(*turns["off"], strict=True), strict=True
            )
        ]
        print(f"| {load} | `{mode}` | {' | '.join(compared)} |", flush=True)


def main(loads: list[str]) -> int:
    """Measure each load on a filesystem that it finds empty."""
    unknown = sorted(set(loads) - set(LOADS))
    if unknown:
        sys.exit(f"unknown load {unknown[0]!r}: expected {', '.join(LOADS)}")
    mount = Path(os.environ["PWB_MNT"])
    folder = Path("/sys/fs/xfs", Path(os.environ["PWB_DEV"]).name, "writeback")
    Path("/proc/sys/vm/dirty_bytes").write_text(str(DIRTY_BYTES))
    print("| load | mode | pages per second | CPU time per page |\n|---|---|---:|---:|")
    for load in loads or LOADS:
        measure(load, mount, folder)
        for path in mount.iterdir():
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
