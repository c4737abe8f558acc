# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: two cgroups write to one device, each within its own io.max, through all contexts.

Standard library only. Both limits are far below what the device does, so writeback is what they bound.
"""

from __future__ import annotations

import os
import sys
import time
from multiprocessing import Process
from pathlib import Path

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup")
LIMITS_MIB_S = {"low": 2, "high": 8}
SECONDS_OF_WRITES = 4
FILES = 8
# The limit is handed out in slices of 100 ms, and what a group did not use counts for one more.
BURST_S = 0.5


def device_number() -> str:
    """Return MAJ:MIN of the device under test."""
    status = os.stat(os.environ["PWB_DEV"])
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def write(group: str) -> None:
    """Join a group, dirty several seconds' worth of its limit in several files, and fsync them."""
    (CGROUPS / group / "cgroup.procs").write_text("0")
    folder = Path(os.environ["PWB_MNT"]) / group
    folder.mkdir()
    size = LIMITS_MIB_S[group] * SECONDS_OF_WRITES * MIB // FILES
    files = [os.open(folder / str(number), os.O_CREAT | os.O_WRONLY) for number in range(FILES)]
    for file in files:
        os.write(file, os.urandom(4096) * (size // 4096))
    for file in files:
        os.fsync(file)


def written_bytes(group: str, device: str) -> int:
    """Return what the device wrote on behalf of a group."""
    for line in (CGROUPS / group / "io.stat").read_text().splitlines():
        name, *values = line.split()
        if name == device:
            return int(dict(value.split("=") for value in values)["wbytes"])
    return 0


def main() -> int:
    """Write in both groups at once; fail if one got more than its limit or wrote too little."""
    device = device_number()
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    writers = {}
    for group, limit in LIMITS_MIB_S.items():
        (CGROUPS / group).mkdir()
        (CGROUPS / group / "io.max").write_text(f"{device} wbps={limit * MIB}")
        writers[group] = Process(target=write, args=[group])
    begin = time.monotonic()
    for writer in writers.values():
        writer.start()
    for group, writer in writers.items():
        writer.join()
        passed_s = time.monotonic() - begin
        written = written_bytes(group, device) / MIB
        allowed = LIMITS_MIB_S[group] * (passed_s + BURST_S)
        asked = LIMITS_MIB_S[group] * SECONDS_OF_WRITES
        print(f"{group}: {written:.1f} MiB in {passed_s:.2f} s, {allowed:.1f} MiB allowed")
        if writer.exitcode or not asked <= written <= allowed:
            print(f"{group}: expected {asked} to {allowed:.1f} MiB, status {writer.exitcode}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
