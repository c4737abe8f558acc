# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with ROUNDS: what AG-aware writeback of XFS costs where it has nothing to gain.

Two boots of one kernel lie up to 10% apart. So a job is done over and over in one boot while its filesystem
goes from mode to mode, in a new order each round, and each turn is compared with the turn of mode ``off`` in
the same round. A turn ends when all is on the device. Standard library only.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from guest.record import leave
from lab.probes.ag import modes

MODES = ("off", "ag-hint", "rotor", "generic")
DIRTY_BYTES = 32 << 20
# Jobs of fio that take a few seconds.
LOADS = {
    "sequential": "rw=write bs=1m size=384m unlink=1",
    "small files": "rw=write bs=64k filesize=64k nrfiles=500 openfiles=1 file_service_type=sequential "
    "create_on_open=1 unlink=1 numjobs=4",
    "fsync": "rw=write bs=4k fsync=1 size=64m io_size=6m numjobs=4",
    "mmap": "rw=randwrite bs=4k ioengine=mmap overwrite=1 size=128m io_size=32m norandommap=1 numjobs=2",
}
COMMON = "ioengine=psync fallocate=none invalidate=0"


def cpu_s() -> float:
    """Return the seconds that CPUs were busy since boot (Documentation/filesystems/proc.rst)."""
    # User, nice, system, idle, waiting for I/O, interrupts...
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:])) / os.sysconf("SC_CLK_TCK")


def turn(job: list[str], folder: Path, mode: str) -> tuple[float, float]:
    """Do a job in a mode; return how long it took and its CPU time, in seconds."""
    modes.choose(folder, mode)
    begin_s, begin_cpu_s = time.monotonic(), cpu_s()
    subprocess.run(job, check=True)
    os.sync()
    return time.monotonic() - begin_s, cpu_s() - begin_cpu_s


def measure(load: str, rounds: int, mount: Path, folder: Path) -> dict[str, list[tuple[float, float]]]:
    """Run a load through all modes; return the times and CPU times of each mode, in seconds, by rounds."""
    words = f"{COMMON} {LOADS[load]} directory={mount} name=load output=/dev/null".split()
    job = ["fio", *(f"--{word}" for word in words)]
    order = random.Random(load)
    turns: dict[str, list[tuple[float, float]]] = {mode: [] for mode in MODES}
    turn(job, folder, MODES[0])  # makes the files
    for _ in range(rounds):
        for mode in order.sample(MODES, len(MODES)):
            turns[mode].append(turn(job, folder, mode))
    return turns


def main(rounds: int) -> int:
    """Measure each load in so many rounds."""
    mount = Path(os.environ["PWB_MNT"])
    folder = modes.folder()
    Path("/proc/sys/vm/dirty_bytes").write_text(str(DIRTY_BYTES))
    found = {}
    for load in LOADS:
        found[load] = measure(load, rounds, mount, folder)
        for path in mount.iterdir():
            path.unlink()
    leave(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
