# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, on the traced kernel: for which locks do T5's jobs sleep, and how long?

    ./pwb guest --kernel traced --fs none --device waiting --mem-mib 6144 --device-size-mib 3072
        -- env PYTHONPATH=$PWD python3 -m guest.lock_waits base|generic|stream

Job, files and AGs are those of scenarios/t5.toml. A line for each kind of lock: how often somebody slept for
it, and how long, all tasks together, for each second. Time that is spent spinning is not told.
Python's standard library only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

from guest.load import place
from guest.waits import BUFFER_KIB, FRAME, TRACING

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "t5.toml"
MOUNT = Path("/tmp/t5")
RAMP_S = 2
WINDOW_S = 3
# LCB_F_SPIN of include/trace/events/lock.h
SLEEPS = "!(flags & 1)"

BEGIN = re.compile(r"-(?P<pid>\d+) .* (?P<time>[\d.]+): contention_begin: ")
END = re.compile(r"-(?P<pid>\d+) .* (?P<time>[\d.]+): contention_end: ")
# What a task waits for, by the first of these functions in its stack.
KINDS = {
    "AGF": ("xfs_read_agf",),
    "log": ("xlog_grant_head_wait", "xfs_log_force", "xfs_log_force_seq"),
    "inode lock": ("xfs_ilock", "xfs_ilock_iocb", "xfs_ilock_for_iomap", "xfs_ilock_data_map_shared"),
}


def kind(stack: Iterable[str]) -> str:
    """Name the kind of lock that a stack waits for, innermost function first."""
    functions = set(stack)
    return next((name for name, of_it in KINDS.items() if functions & set(of_it)), "other")


def waited(lines: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Return how often and how many seconds tasks slept for each kind of lock.

    Args:
        lines: those of a trace of the contention events, with stacks where one begins.
    """
    found: dict[str, tuple[int, float]] = {}
    since: dict[str, float] = {}
    stacks: dict[str, list[str]] = {}
    pid = ""
    for line in lines:
        if (begin := BEGIN.search(line)) is not None:
            pid = begin["pid"]
            since[pid], stacks[pid] = float(begin["time"]), []
        elif (frame := FRAME.match(line)) is not None:
            stacks.get(pid, []).append(frame["function"])
        elif (end := END.search(line)) is not None and end["pid"] in since:
            seconds = float(end["time"]) - since.pop(end["pid"])
            name = kind(stacks.pop(end["pid"]))
            count, total = found.get(name, (0, 0.0))
            found[name] = count + 1, total + seconds
    return found


def start_trace() -> None:
    """Have each sleep for a lock noted, with its stack, by a clock that is finer than a tick."""
    (TRACING / "tracing_on").write_text("0")
    (TRACING / "buffer_size_kb").write_text(str(BUFFER_KIB))
    (TRACING / "trace_clock").write_text("mono")
    lock = TRACING / "events" / "lock"
    (lock / "contention_begin" / "filter").write_text(SLEEPS)
    (lock / "contention_begin" / "trigger").write_text(f"stacktrace if {SLEEPS}")
    for event in "contention_begin", "contention_end":
        (lock / event / "enable").write_text("1")


def main(placement: str) -> None:
    """Run the jobs, trace a window of that, and print what was waited for."""
    scenario = tomllib.loads(SCENARIO.read_text())
    device = Path(os.environ["PWB_DEV"])
    subprocess.run(["mkfs.xfs", "-q", "-f", *scenario["mkfs"]["xfs"], str(device)], check=True)
    MOUNT.mkdir()
    subprocess.run(["mount", str(device), str(MOUNT)], check=True)
    paths = [MOUNT / name for name in scenario["files"]["names"]]
    for path in paths:
        with path.open("wb") as file:
            file.truncate(scenario["files"]["size_mib"] << 20)
    place(placement, paths, device)
    job = Path("/tmp/t5.fio")
    job.write_text(scenario["job"]["text"])
    times = {"RAMP_S": "0", "WINDOW_S": str(RAMP_S + WINDOW_S + 1)}
    start_trace()
    with subprocess.Popen(
        ["fio", str(job)], cwd=MOUNT, env={**os.environ, **times}, stdout=subprocess.DEVNULL
    ) as fio:
        time.sleep(RAMP_S)
        (TRACING / "tracing_on").write_text("1")
        time.sleep(WINDOW_S)
        (TRACING / "tracing_on").write_text("0")
    if fio.returncode:
        sys.exit("fio failed, see above")
    with (TRACING / "trace").open() as lines:
        found = waited(lines)
    for name, (count, seconds) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"{name}: {count / WINDOW_S:.0f} waits, {seconds / WINDOW_S:.3f} s asleep for each second")


if __name__ == "__main__":
    main(*sys.argv[1:])
