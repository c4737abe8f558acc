# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the cgroups of who writes while the power is cut, see cuts.py. Standard library only."""

from __future__ import annotations

import errno
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

from tests.guest.resize import CGROUPS

# What becomes of the groups amid the load: their processes stay, leave them for another one, or leave and
# the groups are removed with what was written in them.
FATES = ("stays", "is left", "goes")
ELSEWHERE = CGROUPS / "elsewhere"
ROOT = 1


class Groups:
    """Cgroups of some processes, one each, and one where these may go."""

    def __init__(self, processes: Sequence[int], bdi: str, chosen: random.Random) -> None:
        """Have groups for processes that write to a device, by its number."""
        self._groups = {CGROUPS / f"group{process}": process for process in processes}
        self._statistics = Path("/sys/kernel/debug/bdi", bdi, "wb_stats")
        self._chosen = chosen
        (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
        ELSEWHERE.mkdir()

    def join(self) -> None:
        """Have each process in its own group."""
        for group, process in self._groups.items():
            group.mkdir(exist_ok=True)
            move(process, group)

    def choose(self) -> str:
        """Choose what becomes of the groups amid the load."""
        self._fate = self._chosen.choice(FATES)
        return self._fate

    def change(self) -> None:
        """Do to the groups what was chosen."""
        for group, process in self._groups.items():
            if self._fate != FATES[0]:
                move(process, ELSEWHERE)
            if self._fate == FATES[2]:
                remove(group)

    def writebacks(self) -> int:
        """Return how many writebacks the device has for groups."""
        inodes = re.findall(r"WbCgIno: +(\d+)", self._statistics.read_text())
        return sum(int(inode) != ROOT for inode in inodes)


def move(process: int, group: Path) -> None:
    """Have a process in a group."""
    (group / "cgroup.procs").write_text(str(process))


def remove(group: Path) -> None:
    """Remove a group that its process has left, when the children that this had there have ended."""
    while True:
        try:
            return group.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        time.sleep(0.001)
