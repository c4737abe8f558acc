# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with PLACE: what do the flushers do, and what do they wait for?

Four processes write 4 KiB at random places of a sparse file each, so that every block must be allocated.
PLACE is ``apart`` for files in a directory each, which XFS puts into different AGs, ``together`` for one
directory, or ``full`` for one directory whose AG alone has room, while a process reads the map of its free
space, as scrubbing does, and so holds its lock. Once that is steady, the trace of the scheduler is kept for
some seconds: each switch away from a kworker, with its stack. Python's standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from guest.fiemap import extents
from guest.layout import choose_inodes
from guest.record import leave
from guest.sampler import sectors_written
from guest.settings import set_dirty_limit

MIB = 1 << 20
PAGE = 4096
SECTOR = 512
WRITERS = 4
# The probe makes 4 AGs in 3 GiB.
AGS = 4
AG_BYTES = 768 * MIB
PUNCHED_BYTES = 700 * MIB
LEFT_BYTES = 16 * MIB
# FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE of include/uapi/linux/falloc.h.
PUNCH = 3
# _IOWR('X', 59, struct fsmap_head) of include/uapi/linux/fsmap.h, 192 bytes.
GETFSMAP = 3 << 30 | 192 << 16 | ord("X") << 8 | 59
UINT32_MAX, UINT64_MAX = (1 << 32) - 1, (1 << 64) - 1
LIBC = ctypes.CDLL(None, use_errno=True)
FILE_BYTES = 512 * MIB
LIMIT_MIB = 128
RAMP_S = 2
WINDOW_S = 3
# Every number of contexts up to 8 divides it, so that i_ino % n spreads the files evenly.
MODULUS = 840
TRACING = Path("/sys/kernel/tracing")
BUFFER_KIB = 256 * 1024

SWITCH = re.compile(
    r" (?P<time>[\d.]+): sched_switch: prev_comm=(?P<prev>.*) prev_pid=(?P<prev_pid>\d+) prev_prio=\d+ "
    r"prev_state=(?P<state>\S+) ==> next_comm=(?P<next>.*) next_pid=(?P<next_pid>\d+)"
)
WAKEUP = re.compile(r" (?P<time>[\d.]+): sched_wakeup: comm=(?P<comm>.*) pid=(?P<pid>\d+) ")
STACK = re.compile(r"-(?P<pid>\d+) .* (?P<time>[\d.]+): <stack trace>$")
FRAME = re.compile(r"^ => (?P<function>[\w.]+)")
FLUSHING = "wb_workfn"
TASK_UNINTERRUPTIBLE = 2


class Flushers:
    """What kworkers did while they were flushing, from the lines of a trace.

    Attributes:
        running_s: seconds on a CPU.
        queued_s: seconds ready to run without one.
        waits: for each stack, innermost function first, seconds asleep and how often.
        lost: events that the trace buffer had no room for.
    """

    def __init__(self) -> None:
        """Start before the first line."""
        self.running_s = 0.0
        self.queued_s = 0.0
        self.waits: dict[tuple[str, ...], tuple[float, int]] = {}
        self.lost = 0
        # By pid: when it came to a CPU; when it left one, whether still running, and its stack; when it was
        # woken; and whether it is a flusher, since its first sleep as one.
        self._on: dict[int, float] = {}
        self._off: dict[int, tuple[float, bool, tuple[str, ...]]] = {}
        self._woken: dict[int, float] = {}
        self._flushing: set[int] = set()

    def read(self, lines: Iterable[str]) -> None:
        """Take the lines of a whole trace."""
        frames: list[str] | None = None
        pid = 0
        for line in lines:
            frame = FRAME.match(line)
            if frame is not None:
                if frames is not None:
                    frames.append(frame["function"])
                continue
            if frames is not None:
                self._slept(pid, tuple(frames))
                frames = None
            stack = STACK.search(line)
            if stack is not None:
                pid, frames = int(stack["pid"]), []
            else:
                self._event(line)
        if frames is not None:
            self._slept(pid, tuple(frames))

    def _event(self, line: str) -> None:
        switch = SWITCH.search(line)
        if switch is not None:
            now = float(switch["time"])
            if switch["prev"].startswith("kworker/"):
                self._left(int(switch["prev_pid"]), now, switch["state"][0])
            if switch["next"].startswith("kworker/"):
                self._came(int(switch["next_pid"]), now)
            return
        wakeup = WAKEUP.search(line)
        if wakeup is not None:
            self._woken[int(wakeup["pid"])] = float(wakeup["time"])
        elif "LOST" in line:
            self.lost += 1

    def _left(self, pid: int, now: float, state: str) -> None:
        """Count the time on the CPU that a kworker has just left."""
        came = self._on.pop(pid, None)
        if came is not None and pid in self._flushing:
            self.running_s += now - came
        if state not in "DR":
            # It has no work any more.
            self._flushing.discard(pid)
        self._off[pid] = (now, state == "R", ())

    def _slept(self, pid: int, stack: tuple[str, ...]) -> None:
        """Note where a kworker that has just left its CPU went to sleep."""
        if pid not in self._off:
            return  # the trace begins between the two
        since, running, _ = self._off[pid]
        self._off[pid] = (since, running, stack)
        if FLUSHING in stack:
            self._flushing.add(pid)
        else:
            self._flushing.discard(pid)

    def _came(self, pid: int, now: float) -> None:
        """Count the time since a kworker left its last CPU."""
        self._on[pid] = now
        left = self._off.pop(pid, None)
        if left is None or pid not in self._flushing:
            return
        since, was_running, stack = left
        woken = since if was_running else min(max(self._woken.get(pid, now), since), now)
        self.queued_s += now - woken
        if not was_running:
            seconds, count = self.waits.get(stack, (0.0, 0))
            self.waits[stack] = (seconds + woken - since, count + 1)


def start_trace() -> None:
    """Have each switch from or to a kworker noted, with its stack where it goes to sleep, and each wake-up.

    A stack costs time in the guest, so there is none of a kworker that is preempted.
    """
    (TRACING / "buffer_size_kb").write_text(str(BUFFER_KIB))
    sched = TRACING / "events" / "sched"
    (sched / "sched_switch" / "filter").write_text('prev_comm ~ "kworker/*" || next_comm ~ "kworker/*"')
    asleep = f'prev_comm ~ "kworker/*" && prev_state == {TASK_UNINTERRUPTIBLE}'
    (sched / "sched_switch" / "trigger").write_text(f"stacktrace if {asleep}")
    (sched / "sched_wakeup" / "filter").write_text('comm ~ "kworker/*"')
    for event in "sched_switch", "sched_wakeup":
        (sched / event / "enable").write_text("1")


def write(path: Path) -> None:
    """Write at random until killed."""
    place = random.Random(str(path))
    page = os.urandom(PAGE)
    fd = os.open(path, os.O_WRONLY)
    while True:
        os.pwrite(fd, page, place.randrange(FILE_BYTES // PAGE) * PAGE)


def fill(folder: Path) -> None:
    """Leave free every second block of the folder's AG, and hardly any elsewhere."""
    fd = os.open(folder / "punched", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, PUNCHED_BYTES)
    space = os.statvfs(folder)
    with (folder / "rest").open("wb") as rest:
        os.posix_fallocate(rest.fileno(), 0, space.f_bavail * space.f_frsize - LEFT_BYTES)
    for offset in range(0, PUNCHED_BYTES, 2 * PAGE):
        if LIBC.fallocate(fd, PUNCH, ctypes.c_long(offset), ctypes.c_long(PAGE)):
            raise OSError(ctypes.get_errno(), "fallocate", str(folder))
    os.close(fd)


def read_space_map(mount: Path) -> None:
    """Have the filesystem count its extents and free extents of one AG until killed, by FS_IOC_GETFSMAP."""
    first = struct.pack("=2I7Q", 0, 0, *[0] * 7)
    last = struct.pack("=2I7Q", UINT32_MAX, UINT32_MAX, AG_BYTES - 1, *[UINT64_MAX] * 2, 0, *[0] * 3)
    # No room for records: they are counted only, in one go.
    request = struct.pack("=4I6Q", 0, 0, 0, 0, *[0] * 6) + first + last
    fd = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    while True:
        fcntl.ioctl(fd, GETFSMAP, request)


def lay_out(mount: Path, place: str) -> list[Path]:
    """Make the sparse files."""
    folders = [mount / f"d{number if place == 'apart' else 0}" for number in range(WRITERS)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    paths = [folder / f"data.{number}" for number, folder in enumerate(folders)]
    choose_inodes(paths, MODULUS, skewed=False)
    for path in paths:
        os.truncate(path, FILE_BYTES)
    if place == "full":
        fill(folders[0])
    return paths


def share_in_one_ag(path: Path) -> float:
    """Return the share of a file's blocks that the AG with most of them holds."""
    blocks = [0] * AGS
    for physical, length in extents(path):
        blocks[physical // AG_BYTES] += length // PAGE
    return max(blocks) / sum(blocks)


def start(work: Callable[[Path], None], path: Path) -> int:
    """Start a process that works until killed, and return its pid."""
    pid = os.fork()
    if not pid:
        work(path)
    return pid


def main(arguments: list[str]) -> int:
    """Run the writers, trace a window of that, and note what the flushers did in it."""
    mount = Path(os.environ["PWB_MNT"])
    paths = lay_out(mount, arguments[0])
    os.sync()
    set_dirty_limit(LIMIT_MIB)
    stat = Path("/sys/block") / Path(os.environ["PWB_DEV"]).resolve().name / "stat"
    children = [start(write, path) for path in paths]
    if arguments[0] == "full":
        children.append(start(read_space_map, mount))
    (TRACING / "tracing_on").write_text("0")
    start_trace()
    time.sleep(RAMP_S)
    written, begin = sectors_written(stat.read_text()), time.monotonic()
    (TRACING / "tracing_on").write_text("1")
    time.sleep(WINDOW_S)
    (TRACING / "tracing_on").write_text("0")
    seconds = time.monotonic() - begin
    written = sectors_written(stat.read_text()) - written
    for child in children:
        os.kill(child, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            print("a process ended early, see above", file=sys.stderr)
            return 1
    os.sync()
    flushers = Flushers()
    with (TRACING / "trace").open() as lines:
        flushers.read(lines)
    found = {
        "seconds": seconds,
        "mib_s": written * SECTOR / MIB / seconds,
        "running_s": flushers.running_s,
        "queued_s": flushers.queued_s,
        "waits": [[stack, *figures] for stack, figures in flushers.waits.items()],
        "lost": flushers.lost,
        "in_one_ag": sum(share_in_one_ag(path) for path in paths) / len(paths),
    }
    leave(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
