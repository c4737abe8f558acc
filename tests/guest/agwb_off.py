# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the mode of a file is switched off while workers write it.

Its flusher may not write beside them: what lies beyond the size on disk has one writer. ``python -m
tests.guest.agwb_off`` from the repository's folder. Standard library only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path

from tests.guest.agwb import FLUSHING, SYSFS, Case
from tests.guest.agwb_flusher import out
from tests.guest.lab_device import DEVICE, MOUNT, device, fail, flush

TRACE = Path("/sys/kernel/tracing")
EVENTS = ("xfs_agwb/xfs_agwb_begin", "xfs_agwb/xfs_agwb_end", "iomap/iomap_writeback_folio")
LINE = re.compile(r"-(\d+) +\[.* (\w+): ")
# Long enough that the flusher comes back to the file while one command is being submitted.
SUBMIT_NS = 500_000_000


def written_beside(lines: Iterable[str]) -> tuple[int, int]:
    """Return how many folios somebody else wrote while a worker was at a pass, and how many workers wrote."""
    at_work: set[str] = set()
    beside = by_workers = 0
    for match in filter(None, map(LINE.search, lines)):
        task, event = match.groups()
        if event == "xfs_agwb_begin":
            at_work.add(task)
        elif event == "xfs_agwb_end":
            at_work.discard(task)
        elif event == "iomap_writeback_folio":
            beside += bool(at_work) and task not in at_work
            by_workers += task in at_work
    return beside, by_workers


def main() -> None:
    """Overwrite a file, and switch the mode off once it is handed over."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    with device({"size_mib": 192, "queues": 2}):
        case = Case("generic")
        case.all = [case.spanning]
        case.fill(case.all)
        # A count, for a clock may stand still between what two CPUs do.
        (TRACE / "trace_clock").write_text("counter")
        for event in EVENTS:
            (TRACE / "events" / event / "enable").write_text("1")
        (DEVICE / "submit_ns").write_text(str(SUBMIT_NS))
        with case.spanning.open() as fd:
            for page in range(case.spanning.most_pages):
                case.spanning.write(fd, page)
        while not any(out()):
            time.sleep(0.001)
        (SYSFS / "overwrite").write_text("off")
        while any(out()):
            time.sleep(0.01)
        (DEVICE / "submit_ns").write_text("0")
        beside, by_workers = written_beside((TRACE / "trace").read_text().splitlines())
        case.conclude()
    if not by_workers:
        fail("the trace has no folio that a worker wrote")
    if beside:
        fail(f"{beside} folios were written beside workers")


if __name__ == "__main__":
    main()
