# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: hold a task at a test point, and watch what the others do. Standard library only."""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

PAGE = 4096
VM = Path("/proc/sys/vm")
TRACE = Path("/sys/kernel/tracing")
POINT = Path("/sys/kernel/debug/wb_test_point")
BDI = Path(os.environ["PWB_BDI"])
MNT = Path(os.environ["PWB_MNT"])

# A test that waits in vain says for what.
faulthandler.dump_traceback_later(120, repeat=True)


def until(true: Callable[[], object]) -> None:
    """Wait for something that has to come sooner or later; the guest's time limit is the end of waiting."""
    while not true():
        time.sleep(0.02)


def arm(name: str) -> None:
    """Let whoever is held go on, and hold the next task that comes to a test point."""
    POINT.write_text(name)


def who_is_held() -> int:
    """Return the number of the task that waits at the test point that is armed; 0 if none does."""
    return int(POINT.read_text().partition(" reached ")[2] or 0)


def is_held() -> bool:
    """Tell whether a task waits at the test point that is armed."""
    return " reached " in POINT.read_text()


@atexit.register
def release() -> None:
    """Let whoever is held go on, and hold nobody. A test that fails must not leave a flusher held either.

    Without it the guest could not unmount, and would end with its time limit instead of the test's words.
    """
    POINT.write_text("\n")


def trace(*events: str) -> None:
    """Record these events of the kernel, "group/event", from here on."""
    for event in events:
        (TRACE / "events" / event / "enable").write_text("1")


def traced() -> list[str]:
    """Return what has been recorded, a line each."""
    return (TRACE / "trace").read_text().splitlines()


def flush_periodically(*, centiseconds: int) -> None:
    """Have flushers write whatever is dirty this often; 0 stops them."""
    (VM / "dirty_expire_centisecs").write_text("1")
    (VM / "dirty_writeback_centisecs").write_text(str(centiseconds))


def file_in_context(context: int, name: str) -> Path:
    """Make a clean file that belongs to one of two contexts by its number, as wb_affinity "ino" has it."""
    for attempt in range(64):
        path = MNT / f"{name}-{attempt}"
        path.write_bytes(bytes(16 * PAGE))
        if path.stat().st_ino % 2 == context:
            with path.open("r+b") as file:
                os.fsync(file.fileno())
            return path.rename(MNT / name)
        path.unlink()
    sys.exit(f"no inode for context {context}")


def hold_between_lists(path: Path) -> None:
    """Hold the flusher of a file whose context goes out of use, after it has written a page of the file."""
    arm("moving")
    (BDI / "nwritebacks").write_text("1")
    dirty(path)
    flush_periodically(centiseconds=1)
    until(is_held)
    flush_periodically(centiseconds=0)


def dirty(path: Path) -> None:
    """Write a page of a file again."""
    with path.open("r+b", buffering=0) as file:
        file.write(os.urandom(PAGE))
