# SPDX-License-Identifier: GPL-2.0
"""Several flusher workers for one bdi_writeback, in a running debug kernel: a test for each of their rules.

The rules: kernel/include/linux/bdi-wb-workers.h. That sync(2) and device removal keep theirs is also shown by
test_sync.py and test_resize.py, which run with several workers.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import pytest

from lab.tree.build import Kernel
from tests.guest import output
from tests.guest.test_contexts import run

pytestmark = pytest.mark.guest

WORKERS = 4
STATS = "stats=/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"
# The other clocks have a grain of 10 ms here, and leave what two CPUs did within it in no order.
TRACE = """
    trace=/sys/kernel/tracing
    echo counter > $trace/trace_clock
    echo 20000 > $trace/buffer_size_kb
    for event in start written single_inode_start single_inode; do
        echo 1 > $trace/events/writeback/writeback_$event/enable
    done
"""
# Sixteen files are written over and over, in one context, until its flushers have written 100 MiB.
HOT_FILES = """
    echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
    echo $((1 << 20)) > /proc/sys/vm/dirty_background_bytes
    for file in $(seq 16); do
        while dd if=/dev/zero of=$PWB_MNT/$file bs=64k count=32 conv=notrunc; do :; done 2>/dev/null &
        writers="$writers $!"
    done
    beside
    until test $(awk '/^Context/ {print $12}' $stats) -gt $((100 << 10)); do sleep 0.1; done
    kill $writers
    wait $writers 2>/dev/null
"""
PERIODIC = """
    echo 1 > /proc/sys/vm/dirty_writeback_centisecs; echo 1 > /proc/sys/vm/dirty_expire_centisecs
    until test $(grep -c "writeback_written: .* reason=periodic" $trace/trace) -gt 1; do sleep 0.1; done
"""
SYNC = '(while :; do sync -f $PWB_MNT; done) & writers="$writers $!"'


@dataclass(frozen=True)
class Event:
    """What a flusher did: start or end (written) a pass over its list, or to write one inode."""

    pid: str
    name: str
    reason: str | None
    ino: str | None


EVENT = re.compile(
    r"kworker/\S+-(\d+) .*: writeback_(\w+): bdi \S+: (?:.* reason=(\w+) )?(?:ino=(\d+) )?",
)


def events(kernel: Kernel, script: str, fs: str = "ext4") -> list[Event]:
    """Run a script with four workers, traced, and return what the flushers did, in order."""
    output = run(kernel, f"{STATS}\n{TRACE}\n{script}\ncat $trace/trace", fs=fs, contexts=1, workers=WORKERS)
    return [Event(*found.groups()) for found in map(EVENT.search, output.splitlines()) if found]


def hot(beside: str = ":") -> str:
    """Return the script that writes to hot files, with something else beside."""
    return f"beside() {{\n{beside}\n}}\n{HOT_FILES}"


def passes(found: list[Event], reason: str) -> list[tuple[int, int]]:
    """Return where each pass of this reason starts and ends; a worker has one at a time."""
    begun: dict[str, int] = {}
    spans = []
    for number, event in enumerate(found):
        if event.reason == reason and event.name == "start":
            begun[event.pid] = number
        elif event.reason == reason and event.name == "written" and event.pid in begun:
            spans.append((begun.pop(event.pid), number))
    return sorted(spans)


def overlaps(spans: list[tuple[int, int]]) -> bool:
    """Tell whether a span begins before the one ahead of it has ended."""
    return any(after[0] < before[1] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
def test_workers_share_a_list_and_no_inode(debug_kernel: Kernel, fs: str) -> None:
    found = events(debug_kernel, hot(), fs)
    assert overlaps(passes(found, "background"))
    writers: dict[str | None, str] = {}
    for event in found:
        if event.name == "single_inode_start":
            assert event.ino not in writers, f"inode {event.ino} has two writers"
            writers[event.ino] = event.pid
        elif event.name == "single_inode":
            writers.pop(event.ino, None)
    assert len({event.ino for event in found if event.name == "single_inode_start"}) > 1


def test_filesystem_that_takes_no_part_has_one_worker(debug_kernel: Kernel) -> None:
    # The disk has had one that does. Now and then the rescuer takes a sibling's turn.
    mount = f"""
        set -e
        lab=/sys/kernel/config/labblk/own PWB_MNT=/tmp/own
        mkdir $lab $PWB_MNT; echo 1 > $lab/power
        PWB_BDI=/sys/class/bdi/$(cat /sys/block/own/dev)
        mkfs.ext4 -q -F /dev/own; mount /dev/own $PWB_MNT; umount $PWB_MNT
        mount -o data=journal /dev/own $PWB_MNT
        echo 1 > $PWB_BDI/nwritebacks; echo {WORKERS} > $PWB_BDI/wb_workers
        {STATS}
        set +e
    """
    found = events(debug_kernel, f"{mount}\n{hot()}\numount $PWB_MNT; rmdir $lab")
    assert overlaps(passes(found, "background")), "no sibling was woken"
    writers = set()
    for event in found:
        if event.name == "single_inode_start":
            writers.add(event.pid)
        elif event.name == "single_inode":
            writers.discard(event.pid)
        assert len(writers) < 2, "a sibling writes beside the first worker"


def test_what_somebody_waits_for_is_exclusive(debug_kernel: Kernel) -> None:
    found = events(debug_kernel, hot(SYNC))
    syncs = passes(found, "sync")
    assert len(syncs) > 1
    alone = 0
    for begin, end in syncs:
        pids = {event.pid for event in found[begin:end] if event.name.startswith("single_inode")}
        assert pids <= {found[begin].pid}, "a sibling writes an inode while a sync is under way"
        alone += bool(pids)
    assert alone, "no sync had anything to write"


def test_periodic_writeback_is_for_one(debug_kernel: Kernel) -> None:
    found = events(debug_kernel, hot(PERIODIC))
    periodic = passes(found, "periodic")
    assert len(periodic) > 1
    assert not overlaps(periodic)


def test_older_inodes_start_before_younger(debug_kernel: Kernel) -> None:
    # Inodes are queued in the order in which they were dirtied. The trace may tell late what a worker has
    # taken, but each has one in hand at most.
    script = """
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in $(seq 64); do
            dd if=/dev/zero of=$PWB_MNT/$i bs=256k count=1 2>/dev/null; stat -c 'dirtied %i' $PWB_MNT/$i
        done
        echo $((64 << 10)) > /proc/sys/vm/dirty_background_bytes
        echo $((128 << 20)) > /proc/sys/vm/dirty_bytes
        # Again and again: the workqueue's rescuer, which comes where a kworker does not, writes 4 MiB a time.
        until test $(awk '/^Dirty:/ {print $2}' /proc/meminfo) -lt 1024; do
            dd if=/dev/zero of=$PWB_MNT/last bs=4M count=1 2>/dev/null
            sleep 0.1
        done
    """
    output = run(debug_kernel, f"{TRACE}\n{script}\ncat $trace/trace", fs="ext4", contexts=1, workers=WORKERS)
    dirtied = re.findall(r"^dirtied (\d+)$", output, re.MULTILINE)
    started = re.findall(r"writeback_single_inode_start: .* ino=(\d+) ", output)
    places = [started.index(ino) for ino in dirtied]
    for number, place in enumerate(places):
        assert sum(older > place for older in places[:number]) < WORKERS


def test_what_is_written_counts_once(debug_kernel: Kernel) -> None:
    script = f"""
        {STATS}
        written() {{ awk '/^BdiWritten/ {{print $2}}' $stats; }}
        echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
        sync
        before=$(written)
        for i in $(seq 16); do dd if=/dev/zero of=$PWB_MNT/$i bs=1M count=4 2>/dev/null & done
        wait
        sync
        echo $(($(written) - before))
    """
    kib = int(run(debug_kernel, script, fs="ext4", contexts=1, workers=WORKERS))
    assert (64 << 10) - output.kept_kib() <= kib <= 66 << 10


def test_surplus_workers_end(debug_kernel: Kernel) -> None:
    # So much is dirty that a worker finds more for as long as it looks.
    fewer = """
        flushed() { awk '/^Context/ {print $12}' $stats; }
        echo $((64 << 20)) > /proc/sys/vm/dirty_bytes
        until test $(flushed) -gt $((50 << 10)); do sleep 0.1; done
        echo 1 > $PWB_BDI/wb_workers
        echo > $trace/trace
        until test $(flushed) -gt $((300 << 10)); do sleep 0.1; done
    """
    background = passes(events(debug_kernel, hot(fewer)), "background")
    assert len(background) > 1
    assert not overlaps(background), "a worker beyond the number goes on"
