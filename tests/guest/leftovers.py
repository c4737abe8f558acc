# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is anything left of devices and cgroups that were there, wrote, and are gone?

``python -m tests.guest.leftovers FS``. Standard library only.

A round makes a device and removes it in each of the ways of faults.py, with writers, syncs, freezes, resizes
and a cgroup that comes and goes all the time; or it mounts a device that stays, makes cgroups, writes in each
through all contexts, removes it, and unmounts. What one round leaves, the kernel may keep to use it again.
What is left by each of the rounds after it is leaked.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

from tests.guest.faults import ATTRIBUTES, FLUSHING, GONE, Load, RemovalLog, run, write_in_cgroup
from tests.guest.lab_device import MOUNT, NODE, device, fail, flush
from tests.guest.live_objects import Objects
from tests.guest.resize import CGROUPS

# Rounds after the first one, and how many objects of a kind may be more after them.
ROUNDS, MOST = 12, 6
GROUPS = 4


def devices(fs: str) -> None:
    """Let a device come and go in each way."""
    for gone in GONE:
        gone(fs)


def fill() -> None:
    """Write every block of the device, which keeps memory for what was ever written."""
    with Path(NODE).open("wb", buffering=0) as blocks:
        for _ in range(ATTRIBUTES["size_mib"]):
            blocks.write(bytes(1 << 20))


def cgroups(load: Load) -> None:
    """Let cgroups come and go while the filesystem is mounted."""
    load.mount()
    for number in range(GROUPS):
        write_in_cgroup(f"group{number}")
    run("umount", str(MOUNT))


def see_what_is_left(objects: Objects, what: str, round_: Callable[[], object]) -> None:
    """Do a round, count, do the others, and see that there is no more than there was."""
    with RemovalLog().only_reports():
        round_()
        before = objects.settled()
        for _ in range(ROUNDS):
            round_()
        more = objects.more_than(before, MOST)
    if more:
        fail(f"{what}: {ROUNDS} rounds have left {dict(more)}")
    print(f"{what}: nothing is left", flush=True)


def see_that_it_would_be_seen(objects: Objects) -> None:
    """Let each round leave a filesystem that is mounted, and see that it is counted."""
    before = objects.settled()
    for _ in range(ROUNDS):
        run("mount", "-t", "tmpfs", "none", str(MOUNT))
    left = objects.settled() - before
    for _ in range(ROUNDS):
        run("umount", str(MOUNT))
    for kind in ("slab kmalloc-", "percpu by "):
        if not any(what.startswith(kind) and number >= ROUNDS for what, number in left.items()):
            fail(f"{ROUNDS} mounts are not seen in any count of {kind!r}: {dict(left)}")


def main(fs: str) -> None:
    """See that what is left is counted; let devices come and go, then cgroups."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    objects = Objects()
    see_that_it_would_be_seen(objects)
    see_what_is_left(objects, "devices", functools.partial(devices, fs))
    with device(ATTRIBUTES):
        fill()
        load = Load(fs, NODE)
        run("umount", str(MOUNT))
        see_what_is_left(objects, "cgroups", functools.partial(cgroups, load))


if __name__ == "__main__":
    main(sys.argv[1])
