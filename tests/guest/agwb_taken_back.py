# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what no worker comes to is taken back, and its flusher writes it.

Two large files of one allocation group have one worker, which needs minutes for its part of the first: so it
would be if there were no memory for a second worker. ``python -m tests.guest.agwb_taken_back`` from the
repository's folder. Standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.guest.agwb import FLUSHING, Case
from tests.guest.agwb_cgroups import number, unwritten, wait_until, write
from tests.guest.lab_device import DEVICE, MOUNT, NAME, device, fail, flush, settle
from tests.guest.versioned import File

TRACE = Path("/sys/kernel/tracing")
EVENT = re.compile(r" xfs_agwb_(begin|end): .* ino (0x[0-9a-f]+) ")
PAGES = 2048
SUBMIT_NS = 500_000_000


def events() -> list[tuple[str, str]]:
    """List what happened to passes, and whose they are."""
    return EVENT.findall((TRACE / "trace").read_text())


def taken_back() -> set[str]:
    """Return the inodes whose pass has ended and never begun."""
    begun = {ino for event, ino in events() if event == "begin"}
    return {ino for event, ino in events() if event == "end"} - begun


def main() -> None:
    """Overwrite both files, and wait until one is taken back while a worker is at the other."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    with device({"size_mib": 192, "queues": 2}):
        case = Case("off")
        # A worker has a queue for each context.
        Path("/sys/class/bdi", number(), "nwritebacks").write_text("1")
        case.all = [File(number, PAGES) for number in range(2)]
        # Files of one directory begin in one allocation group.
        for file in case.all:
            file.path = MOUNT / f"file{file.number}"
            write(file)
        settle()
        case.set_mode("rotor")
        for event in ("begin", "end"):
            (TRACE / f"events/xfs_agwb/xfs_agwb_{event}/enable").write_text("1")
        Path("/sys/block", NAME, "queue/max_sectors_kb").write_text("4")
        (DEVICE / "submit_ns").write_text(str(SUBMIT_NS))
        for file in case.all:
            write(file)
        try:
            wait_until("a pass that has not begun is taken back", lambda: bool(taken_back()))
            if not all(sum(unwritten(file)) for file in case.all):
                fail("a file was written before: the device is not slow enough to show anything")
        finally:
            (DEVICE / "submit_ns").write_text("0")
        settle()
        case.conclude()


if __name__ == "__main__":
    main()
