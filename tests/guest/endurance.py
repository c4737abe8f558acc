# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: does anything grow, or get slower, while the load of resize.py goes on for long?

``python -m tests.guest.endurance FS SECONDS`` from the repository's folder, on the raw device $PWB_DEV.
Standard library only.

The load goes on in rounds: writers, syncs, cgroups that come and go, changes of the contexts, by hand and by
the kernel, on XFS changes of the modes of AG-aware writeback, and a freeze each second, as for a snapshot.
After each round the filesystem is mounted anew and the caches are dropped: what memory is gone then, some
part of the kernel holds. At the end every byte is compared.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import sys
import time
from pathlib import Path

from guest.record import leave
from tests.guest.agwb import CLASSES, MODES
from tests.guest.lab_device import FIFREEZE, FITHAW, flush
from tests.guest.resize import CGROUPS, FLUSHING, MOUNT, QUICK_FILE_PAGES, WRITERS, Load, Times, finish, start

ROUND_S = 20.0
FROZEN_S, THAWED_S = 0.02, 1.0
MODE_S = 0.2
KIB_PER_MIB = 1024
# Of a cgroup that was removed something may stay until a grace period is over.
MOST_WAIT_S = 10.0


def freeze(load: Load) -> None:
    """Freeze the filesystem and thaw it, until the load has stopped."""
    root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
    while not load.stopped[0]:
        fcntl.ioctl(root, FIFREEZE, 0)
        time.sleep(FROZEN_S)
        fcntl.ioctl(root, FITHAW, 0)
        time.sleep(THAWED_S)


def change_modes(load: Load) -> None:
    """Go through the modes of AG-aware writeback, until the load has stopped."""
    folder = Path("/sys/fs/xfs", Path(os.environ["PWB_DEV"]).name, "writeback")
    for mode in itertools.cycle(MODES):
        if load.stopped[0]:
            return
        for name in CLASSES:
            (folder / name).write_text(mode)
        time.sleep(MODE_S)


def dying_cgroups() -> int:
    """Return how many cgroups were removed and are still in memory."""
    found = re.search(r"nr_dying_descendants (\d+)", (CGROUPS / "cgroup.stat").read_text())
    assert found
    return int(found[1])


def kworkers() -> int:
    """Return how many threads of workqueues there are."""
    names = (path / "comm" for path in Path("/proc").glob("[0-9]*"))
    return sum(path.exists() and path.read_text().startswith("kworker/") for path in names)


def writebacks() -> int:
    """Return how many writebacks the device has: of contexts, and of cgroups in them."""
    stats = Path("/sys/kernel/debug/bdi", Path(os.environ["PWB_BDI"]).resolve().name, "wb_stats")
    return stats.read_text().count("WbCgIno:")


def held() -> dict[str, float]:
    """Return what the kernel holds when nobody uses it: memory in MiB, and numbers."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    end = time.monotonic() + MOST_WAIT_S
    while dying_cgroups() and time.monotonic() < end:
        time.sleep(0.1)
    found = re.findall(r"(\w+): +(\d+) kB", Path("/proc/meminfo").read_text())
    mib = {name: int(kib) / KIB_PER_MIB for name, kib in found}
    # Cached files count as the kernel's: what a dropped cache still has, somebody holds.
    programs_mib = mib["AnonPages"] + mib["Shmem"]
    return {
        "kernel_mib": mib["MemTotal"] - mib["MemFree"] - programs_mib,
        "programs_mib": programs_mib,
        "slab_mib": mib["SUnreclaim"],
        "percpu_mib": mib["Percpu"],
        "kworkers": kworkers(),
        "dying_cgroups": dying_cgroups(),
        "writebacks": writebacks(),
    }


def main(filesystem: str, seconds: float) -> None:
    """Load in rounds until the time is up, note what is held after each, and compare at the end."""
    flush(FLUSHING)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    load = Load(filesystem, QUICK_FILE_PAGES)
    load.make()
    resizer = start(load.resize)
    began = time.monotonic()
    rounds: list[dict[str, float]] = []
    while not rounds or time.monotonic() - began < seconds:
        load.write_times = [Times() for _ in range(WRITERS)]
        load.stopped[0] = 0
        beside = [start(freeze, load)]
        if filesystem == "xfs":
            beside.append(start(change_modes, load))
        load.run(len(rounds), ROUND_S)
        finish(beside)
        load.remount()
        times = sorted(value for one in load.write_times for value in one.values())
        rounds.append(
            {
                "at_s": time.monotonic() - began,
                "writes_s": sum(one.count for one in load.write_times) / ROUND_S,
                "write_ms": times[len(times) * 999 // 1000] / 1e6,
                **held(),
            }
        )
    load.compare()
    assert resizer.is_alive()
    resizer.kill()
    resizer.join()
    load.conclude()
    leave({"rounds": rounds, "resizes": load.resize_times.count, "cgroups": load.groups[0]})


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
