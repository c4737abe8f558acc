# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: how much a flusher hands over to workers, and what it counts as written.

``python -m tests.guest.agwb_flusher`` from the repository's folder. Standard library only.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tests.guest.agwb import COUNTERS, MODES, PAGES, Case, passes
from tests.guest.agwb_cgroups import number
from tests.guest.lab_device import DEVICE, MOUNT, device, dirty_pages, fail, flush
from tests.guest.versioned import File

ATTRIBUTES = {"size_mib": 192, "queues": 2}
# Long enough that a flusher could hand over all there is while one command is being submitted.
SUBMIT_NS = 50_000_000
FLUSHING = {
    "dirty_writeback_centisecs": 5,
    "dirty_expire_centisecs": 10,
    "dirty_bytes": 1 << 29,
    "dirty_background_bytes": 1 << 20,
}
FILES = 12
# One that is being written, one that waits.
MOST_OUT = 2
# What each CPU may keep to itself of the counter, before and after: WB_STAT_BATCH of the kernel, in pages.
CPUS = os.cpu_count() or 1
SLACK_KIB = 2 * CPUS * 8 * CPUS.bit_length() * 4


def out() -> list[int]:
    """Return how many passes each worker has that have not ended."""
    return [int(count) for count in re.findall(r" out (\d+)", COUNTERS.read_text())]


def counted() -> tuple[int, int]:
    """Return what flushers say that they wrote, and what was written, in KiB."""
    text = Path("/sys/kernel/debug/bdi", number(), "stats").read_text()
    flushed = sum(int(count) for count in re.findall(r"flushed (\d+) kB", text))
    found = re.search(r"^BdiWritten: +(\d+) kB", text, re.MULTILINE)
    if not found:
        fail("the BDI does not say what was written")
    return flushed, int(found[1])


def write(case: Case) -> None:
    """Write every page, and wait until only flushers have written them; look at the workers meanwhile."""
    flushed_before, written_before = counted()
    passes_before = passes()
    most = 0
    for file in case.all:
        with file.open() as fd:
            for page in range(file.most_pages):
                file.write(fd, page)
        # Flushers begin before all is dirty, and with a slow host they may be done by then.
        most = max(most, *out(), 0)
    while dirty_pages() or any(out()):
        most = max(most, *out(), 0)
        time.sleep(0.005)
    flushed, written = counted()
    flushed -= flushed_before
    written -= written_before
    wrong = []
    if abs(flushed - written) > SLACK_KIB:
        wrong.append(f"flushers say that they wrote {flushed} KiB, written were {written}")
    if most > MOST_OUT:
        wrong.append(f"a worker had {most} passes to do")
    if passes() == passes_before and case.mode != "off":
        wrong.append("nothing was handed over")
    if wrong:
        fail("; ".join(wrong))


def main() -> None:
    """Write new files and overwrite them, in each mode."""
    flush(FLUSHING)
    MOUNT.mkdir(exist_ok=True)
    for mode in MODES:
        with device(ATTRIBUTES):
            case = Case(mode)
            Path("/sys/class/bdi", number(), "nwritebacks").write_text("1")
            case.all = [File(i, PAGES) for i in range(FILES)]
            # Files of one directory begin in one allocation group.
            for file in case.all:
                file.path = MOUNT / f"file{file.number}"
            (DEVICE / "submit_ns").write_text(str(SUBMIT_NS))
            write(case)
            write(case)
            (DEVICE / "submit_ns").write_text("0")
            case.conclude()
        print(f"{mode}: as it should be", flush=True)


if __name__ == "__main__":
    main()
