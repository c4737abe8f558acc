# SPDX-License-Identifier: GPL-2.0
"""Run in the guest by ``pwb costs``: what memory the writebacks of cgroups cost, with every context in use.

Cgroups are made that write nothing, and others that write a small file in each context. Python's standard
library only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from guest.record import leave

CGROUPS = Path("/sys/fs/cgroup")
GROUPS = 100
FILES = 8


def kernel_bytes() -> int:
    """Return what slab and percpu memory are in use, with the caches dropped."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[key].split()[0]) for key in ("Slab", "Percpu", "KernelStack")) * 1024


def in_group(group: int, write: bool) -> None:
    """Have a process of a new cgroup write its files, and leave their inodes in use."""
    folder = CGROUPS / f"cost{group}"
    folder.mkdir()
    child = os.fork()
    if not child:
        (folder / "cgroup.procs").write_text("0")
        if write:
            for number in range(FILES):
                Path(os.environ["PWB_MNT"], f"{group}-{number}").write_bytes(bytes(4096))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("a cgroup's process failed")


def cost_of_groups(first: int, write: bool) -> float:
    """Return what a cgroup costs, in bytes."""
    before = kernel_bytes()
    for group in range(first, first + GROUPS):
        in_group(group, write)
    held = [os.open(path, os.O_RDONLY) for path in Path(os.environ["PWB_MNT"]).iterdir()] if write else []
    cost = (kernel_bytes() - before) / GROUPS
    for file in held:
        os.close(file)
    return cost


def main() -> int:
    """Tell what a cgroup costs that writes nothing, and one that writes in every context."""
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    idle, writing = cost_of_groups(0, write=False), cost_of_groups(GROUPS, write=True)
    leave({"a cgroup that writes nothing": idle, f"a cgroup that writes {FILES} files": writing})
    return 0


if __name__ == "__main__":
    sys.exit(main())
