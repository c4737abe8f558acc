# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: an inode is switched to another cgroup while it is on its way to another context.

Standard library only. The flusher is held between the two lists, by the test point "moving".
"""

from __future__ import annotations

import os
import re
import sys
import time
from multiprocessing import Process
from pathlib import Path

from tests.guest import held

MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup")
FILE = held.MNT / "shared"
ROUNDS = 200


def in_group(group: str, action: str) -> None:
    """Have a process of a cgroup do something, and wait until it is done."""
    process = Process(target=run_in_group, args=[group, action])
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{action} in {group} failed")


def run_in_group(group: str, action: str) -> None:
    """Join a cgroup, and do what is to be done there."""
    (CGROUPS / group / "cgroup.procs").write_text("0")
    {"create": create, "take over": take_over}[action]()


def create() -> None:
    """Make a file whose inode is in context 1 of two, and dirty it."""
    path = held.file_in_context(1, FILE.name)
    path.write_bytes(bytes(MIB // 16))


def take_over() -> None:
    """Write new pages of the file, until its inode has been switched to this cgroup, and leave some dirty."""
    with FILE.open("r+b", buffering=0) as file:
        file.seek(MIB)
        for _ in range(ROUNDS):
            file.write(bytes(MIB))
            os.fdatasync(file.fileno())
            if any("inode_switch_wbs:" in line for line in held.traced()):
                file.write(bytes(4096))
                return
            time.sleep(0.05)
    sys.exit("the inode was not switched")


def dirty_inodes(group: str) -> int:
    """Return how many inodes are on the lists of a cgroup's writebacks."""
    number = (CGROUPS / group).stat().st_ino
    count = 0
    for block in (Path("/sys/kernel/debug/bdi") / held.BDI.name / "wb_stats").read_text().split("\n\n"):
        values = {name: int(value) for name, value in re.findall(r"(\w+): *(\d+)\b", block)}
        if values.get("WbCgIno") == number:
            count += values["b_dirty"] + values["b_io"] + values["b_more_io"]
    return count


def main() -> int:
    """Hold the flusher between two contexts, switch the cgroup, and say whose list the inode is on."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    for group in ("first", "second"):
        (CGROUPS / group).mkdir()
    held.trace("writeback/inode_switch_wbs")
    held.flush_periodically(centiseconds=0)
    in_group("first", "create")

    held.arm("moving")
    (held.BDI / "nwritebacks").write_text("1")
    held.flush_periodically(centiseconds=100)
    held.until(held.is_held)
    held.flush_periodically(centiseconds=0)

    in_group("second", "take over")
    held.release()
    held.until(lambda: any(dirty_inodes(group) for group in ("first", "second")))
    owners = {group: dirty_inodes(group) for group in ("first", "second")}
    print(owners)
    return owners != {"first": 0, "second": 1}


if __name__ == "__main__":
    sys.exit(main())
