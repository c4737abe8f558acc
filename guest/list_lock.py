# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, on the traced kernel: who waits for spinlocks while files are written back, and how long?

    ./pwb guest --kernel traced --mem-mib 6144 --device-size-mib 3072 --set nwritebacks=1 --set wb_workers=4
        -- env PYTHONPATH=$PWD python3 -m guest.list_lock

Four processes overwrite 4 KiB at random places of a file each, as the headline bench does. A line for each
function that waited for a lock: how often and how long, per GiB that reached the device. Those of
fs/fs-writeback.c wait for the ``list_lock`` of a writeback. Python's standard library only.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from guest.load import sectors_written, set_dirty_limit
from guest.waits import BUFFER_KIB, FILE_BYTES, FRAME, TRACING, WRITERS, start, write

GIB = 1 << 30
SECTOR = 512
LIMIT_MIB = 1024
RAMP_S = 3
WINDOW_S = 5
# LCB_F_SPIN of include/trace/events/lock.h
SPIN = 1

BEGIN = re.compile(r"-(?P<pid>\d+) .* (?P<time>[\d.]+): contention_begin: ")
END = re.compile(r"-(?P<pid>\d+) .* (?P<time>[\d.]+): contention_end: ")
# Functions that say that somebody waits, not why.
LOCKING = re.compile(r"spin_|stack_trace|^_*f?trace|trigger|^__traceiter")


def waited(lines: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Return how often and how many seconds each function waited for a spinlock.

    Args:
        lines: those of a trace.
    """
    found: dict[str, tuple[int, float]] = {}
    since: dict[str, float] = {}
    callers: dict[str, str] = {}
    pid = ""
    for line in lines:
        if (begin := BEGIN.search(line)) is not None:
            pid = begin["pid"]
            since[pid] = float(begin["time"])
            callers.pop(pid, None)
        elif (frame := FRAME.match(line)) is not None:
            if not LOCKING.search(frame["function"]):
                callers.setdefault(pid, frame["function"])
        elif (end := END.search(line)) is not None and end["pid"] in since:
            seconds = float(end["time"]) - since.pop(end["pid"])
            caller = callers.pop(end["pid"], "unknown")
            count, total = found.get(caller, (0, 0.0))
            found[caller] = count + 1, total + seconds
    return found


def start_trace() -> None:
    """Have each wait for a spinlock noted, with its stack, by a clock that is finer than a tick."""
    (TRACING / "tracing_on").write_text("0")
    (TRACING / "buffer_size_kb").write_text(str(BUFFER_KIB))
    (TRACING / "trace_clock").write_text("mono")
    lock = TRACING / "events" / "lock"
    (lock / "contention_begin" / "filter").write_text(f"flags == {SPIN}")
    (lock / "contention_begin" / "trigger").write_text(f"stacktrace if flags == {SPIN}")
    for event in "contention_begin", "contention_end":
        (lock / event / "enable").write_text("1")


def main() -> int:
    """Run the writers, trace a window of that, and print who waited."""
    paths = [Path(os.environ["PWB_MNT"]) / f"data.{number}" for number in range(WRITERS)]
    for path in paths:
        with path.open("wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(bytes(1 << 20))
    os.sync()
    set_dirty_limit(LIMIT_MIB)
    stat = Path("/sys/block") / Path(os.environ["PWB_DEV"]).resolve().name / "stat"
    children = [start(write, path) for path in paths]
    start_trace()
    time.sleep(RAMP_S)
    written = sectors_written(stat.read_text())
    (TRACING / "tracing_on").write_text("1")
    time.sleep(WINDOW_S)
    (TRACING / "tracing_on").write_text("0")
    gib = (sectors_written(stat.read_text()) - written) * SECTOR / GIB
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with (TRACING / "trace").open() as lines:
        found = waited(lines)
    print(f"{gib / WINDOW_S * 1024:.0f} MiB/s")
    for caller, (count, seconds) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"{caller}: {count / gib:.1f} waits, {seconds / gib * 1e6:.0f} us per GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
