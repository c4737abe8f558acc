# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: what the kernel has allocated and not freed. Standard library only.

Objects are counted by their slab, percpu memory and areas of vmalloc by the function that allocated them.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from pathlib import Path

from tests.guest.lab_device import SETTLE_S, fail
from tests.guest.resize import CGROUPS

#: For the kernel's command line, or what slabs keep for themselves is counted: tables for the objects that
#: cgroups are charged for, and lists of free objects for each CPU, which slabs that are checked do not have.
KERNEL_ARGUMENTS = ("cgroup.memory=nokmem", "slab_debug=F")
DROP = Path("/proc/sys/vm/drop_caches")
SLABS = Path("/sys/kernel/slab")
TRACE = Path("/sys/kernel/tracing")
VMALLOC = Path("/proc/vmallocinfo")
PERCPU = re.compile(r"percpu_(?:alloc|free)_percpu: (?:call_site=([\w.]+))?.* ptr=(\w+)")
AREA = re.compile(r"^0x\S+ +\d+ ([\w.]+)", re.MULTILINE)
# The kernel keeps some for itself: free bios, areas of vmalloc that were freed, what watches objects.
NO_MEASURE = re.compile(r"bio-|vmap_area$|debug_objects_cache$")
UNPURGED = "unpurged"
WORKERS = "workers"
WORKER = re.compile(r"kworker/[0-9u]")
# The kernel's table of tasks has a node for every 64 numbers of which one is in use.
NODES, NUMBERS_OF_NODE = "slab radix_tree_node", 64
PIECE_BYTES = 1 << 16
BUFFER_KIB = 16 << 10
# A count is settled when this many in a row find nothing less.
ALIKE, PAUSE_S = 3, 0.5


class Slab:
    """A slab's files, open, for to open them takes objects as well."""

    def __init__(self, name: str) -> None:
        """Open the files."""
        self.name = name
        self._shrink = os.open(SLABS / name / "shrink", os.O_WRONLY)
        self._objects = os.open(SLABS / name / "objects", os.O_RDONLY)
        self._read()

    def _read(self) -> int:
        return int(os.pread(self._objects, 80, 0).split()[0])

    def objects(self) -> int:
        """Return how many objects are allocated."""
        # KASAN keeps what is freed for a while, until a slab is to shrink.
        os.pwrite(self._shrink, b"1", 0)
        return self._read()

    def close(self) -> None:
        """Close the files of a slab that is gone."""
        os.close(self._shrink)
        os.close(self._objects)


class Objects:
    """Counts of what is allocated; of percpu memory, since this was made."""

    def __init__(self) -> None:
        """Begin to follow percpu memory."""
        self._percpu: dict[str, str] = {}
        # Pointers are to be told apart for certain.
        (TRACE / "options" / "hash-ptr").write_text("0")
        (TRACE / "buffer_size_kb").write_text(str(BUFFER_KIB))
        for name in ("percpu_alloc_percpu", "percpu_free_percpu"):
            (TRACE / "events" / "percpu" / name / "enable").write_text("1")
        self._open_slabs: dict[str, Slab] = {}
        self._events = os.open(TRACE / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)

    def _follow_percpu(self) -> None:
        """Take in the events since the last time."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._events, PIECE_BYTES):
                text += piece
        for function, pointer in PERCPU.findall(text.decode()):
            if function:
                self._percpu[pointer] = function
            else:
                self._percpu.pop(pointer, None)
        statistics = "".join(path.read_text() for path in TRACE.glob("per_cpu/cpu*/stats"))
        if any(map(int, re.findall(r"^(?:overrun|dropped events): (\d+)", statistics, re.MULTILINE))):
            fail("events of percpu memory are lost: live_objects.BUFFER_KIB has to be larger")

    def _slabs(self) -> list[Slab]:
        """Return the slabs that there are now."""
        paths = (path for path in SLABS.iterdir() if not path.is_symlink())
        names = {path.name for path in paths if not NO_MEASURE.match(path.name)}
        for name in self._open_slabs.keys() - names:
            self._open_slabs.pop(name).close()
        for name in names - self._open_slabs.keys():
            self._open_slabs[name] = Slab(name)
        return list(self._open_slabs.values())

    def count(self) -> Counter[str]:
        """Return how many objects are allocated, by kind and function, when the caches are empty."""
        counts = tasks()
        os.sync()
        # What was used not long ago is dropped the second time.
        for _ in range(2):
            DROP.write_text("3")
        for slab in self._slabs():
            counts[f"slab {slab.name}"] = slab.objects()
        # A worker that takes the place of one that was idle for minutes has a number far from all others.
        counts[NODES] -= len({number // NUMBERS_OF_NODE for number in task_numbers()})
        self._follow_percpu()
        counts.update(f"percpu by {function}" for function in self._percpu.values())
        areas = AREA.findall(VMALLOC.read_text())
        counts.update(f"vmalloc by {function}" for function in areas if function != UNPURGED)
        dying = re.search(r"nr_dying_descendants (\d+)", (CGROUPS / "cgroup.stat").read_text())
        assert dying
        counts["cgroups that were removed"] = int(dying[1])
        return counts

    def settled(self) -> Counter[str]:
        """Return the count when what is freed later has been freed: the least seen, once it stays so."""
        least, alike = self.count(), 1
        while alike < ALIKE:
            time.sleep(PAUSE_S)
            less = least & self.count()
            alike = alike + 1 if less == least else 1
            least = less
        return least

    def more_than(self, before: Counter[str], most: int) -> Counter[str]:
        """Return of what there are more than so many more than before, and how many more, for ever.

        A worker of a workqueue that has come meanwhile stays for minutes, and has one of several kinds.
        """
        end = time.monotonic() + SETTLE_S
        least = self.count()
        while True:
            more = least - before
            allowed = most + more.pop(WORKERS, 0)
            more = Counter({what: number for what, number in more.items() if number > allowed})
            if not more or time.monotonic() > end:
                return more
            time.sleep(PAUSE_S)
            least &= self.count()


def task_numbers() -> list[int]:
    """Return the numbers of all tasks."""
    return [int(task.name) for task in Path("/proc").glob("[0-9]*")]


def tasks() -> Counter[str]:
    """Return how many threads of workqueues there are, and how many other tasks."""
    counts: Counter[str] = Counter()
    for number in task_numbers():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            name = Path(f"/proc/{number}/comm").read_text()
            counts[WORKERS if WORKER.match(name) else "tasks"] += 1
    return counts
