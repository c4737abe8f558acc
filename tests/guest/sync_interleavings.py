# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what other flushers do at a bad moment of a sync.

``inodes``: while a sync has the device, no inode changes its context.
``workers``: what a sync waits for is not written before another worker has put down the inode in its hand.
Standard library only.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from multiprocessing import Process
from pathlib import Path

from tests.guest import held

PASSES = 20
BATCH = 4
MOST_BATCHES = 25
STARTED = re.compile(r"writeback_start: .* ctx=1 .* reason=sync")


def start_sync() -> subprocess.Popen[bytes]:
    """Start to sync the filesystem."""
    return subprocess.Popen(["sync", "-f", str(held.MNT)])


def hold_a_sync(path: Path) -> subprocess.Popen[bytes]:
    """Hold the flusher of a file in the part of a sync that waits for the data, and return the sync.

    The part before, which only starts to write, does not keep inodes where they are. That there is something
    left to write after it takes somebody who goes on writing.
    """
    writer = Process(target=keep_dirty, args=(path,))
    writer.start()
    held.arm("exclusive")
    while True:
        sync = start_sync()
        while sync.poll() is None:
            if not held.is_held():
                continue
            works = [line for line in held.traced() if "writeback_exec:" in line and "reason=sync" in line]
            if "sync_mode=1" in works[-1]:
                writer.kill()
                writer.join()
                return sync
            held.arm("exclusive")


def keep_dirty(path: Path) -> None:
    """Write a file over and over."""
    while True:
        held.dirty(path)


def inodes() -> int:
    """Lower the number of contexts during a sync: a file of one that is out of use stays until the end."""
    home, leaving = held.file_in_context(0, "home"), held.file_in_context(1, "leaving")
    ino = leaving.stat().st_ino
    held.flush_periodically(centiseconds=0)
    start_sync().wait()
    held.trace("writeback/writeback_exec", "writeback/writeback_single_inode", "writeback_ctx/wb_ctx_switch")
    sync = hold_a_sync(home)
    (held.BDI / "nwritebacks").write_text("1")
    held.flush_periodically(centiseconds=1)

    def lines(event: str) -> list[str]:
        return [line for line in held.traced() if f"{event}:" in line and f" ino={ino} " in line]

    def passes_or_move() -> bool:
        held.dirty(leaving)
        return bool(lines("wb_ctx_switch")) or len(lines("writeback_single_inode")) > PASSES

    held.until(passes_or_move)
    moved = lines("wb_ctx_switch")
    held.release()
    sync.wait()
    if moved:
        print(f"during a sync: {moved[0]}")
        return 1

    def move() -> bool:
        held.dirty(leaving)
        return bool(lines("wb_ctx_switch"))

    held.until(move)
    return 0


def dirty_and_look(files: list[Path]) -> bool:
    """Write a page of each file, and tell whether a task is held by now."""
    for path in files:
        held.dirty(path)
    return held.is_held()


def hold_a_sibling() -> None:
    """Hold another worker than the first one of context 1, with an inode in hand that is on no list.

    The context is out of use, so whatever a worker writes of it moves. Which one comes first is chance.
    """
    limits = {"dirty_bytes": 1 << 28, "dirty_background_bytes": 1 << 27}
    held.trace("workqueue/workqueue_execute_start")
    made = [held.MNT / str(number) for number in range(4 * BATCH * MOST_BATCHES)]
    for path in made:
        path.write_bytes(bytes(held.PAGE))
    # By their numbers, as wb_affinity "ino" has it.
    files = [path for path in made if path.stat().st_ino % 2]
    start_sync().wait()
    (held.BDI / "nwritebacks").write_text("1")
    (held.VM / "dirty_bytes").write_text(str(4 << 20))
    (held.VM / "dirty_background_bytes").write_text(str(held.PAGE))
    while len(files) >= BATCH:
        batch = [files.pop() for _ in range(BATCH)]
        held.arm("moving")
        held.until(functools.partial(dirty_and_look, batch))
        task = f"-{held.who_is_held()} "
        starts = [line for line in held.traced() if task in line and "execute_start" in line]
        if starts[-1].endswith("wb_sibling_workfn"):
            for name, value in limits.items():
                (held.VM / name).write_text(str(value))
            return
    sys.exit("no worker but the first one was ever held")


def workers() -> int:
    """Sync while a worker has an inode in hand that is on no list."""
    other = held.file_in_context(1, "other")
    held.flush_periodically(centiseconds=0)
    hold_a_sibling()
    held.dirty(other)
    held.trace("writeback/writeback_exec", "writeback/writeback_start")
    sync = start_sync()

    def waits_or_writes() -> str:
        for line in held.traced():
            work = re.search(r"kworker/\S+-(\d+) .*writeback_exec: .* ctx=1 .* reason=sync", line)
            if not work:
                continue
            # In this order: a worker that sleeps and has started nothing before does not start by itself.
            state = Path(f"/proc/{work[1]}/stat").read_text().rpartition(") ")[2][0]
            started = [line for line in held.traced() if STARTED.search(line)]
            if started or state == "D":
                return started[0] if started else "waits"
        return ""

    held.until(waits_or_writes)
    found = waits_or_writes()
    held.release()
    sync.wait()
    if found != "waits":
        print(f"beside a worker: {found}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit({"inodes": inodes, "workers": workers}[sys.argv[1]]())
