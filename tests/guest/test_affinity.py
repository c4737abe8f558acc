# SPDX-License-Identifier: GPL-2.0
"""Which writeback context an inode goes to, in a running debug kernel."""

from __future__ import annotations

import collections
import itertools
import json
import re
import sys
from typing import NamedTuple

import pytest

from lab.tree.build import Kernel
from tests.guest.output import output_of
from tests.guest.test_contexts import run
from tests.guest.test_streams import LARGE_IMAGE, PROGRAM

pytestmark = pytest.mark.guest

# Sums of the lines of the statistics: dirty inodes and kB flushed, for each context that exists.
DIRTY = "awk '/^Context/ {print $4 + $6 + $8}' /sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"
FLUSHED = "awk '/^Context/ {print $12}' /sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"

# With more CPUs mkfs.xfs makes more groups.
FOUR_CONTEXTS, FOUR_GROUPS = {"nwritebacks": "4"}, ["-d", "agcount=4"]
# sync(2) also has every flusher write all that is dirty when it comes to that, which may be after the call.
SYNC = "sync -f $PWB_MNT"


def write_hot_files(until: str) -> str:
    """Write the eight files $hot over and over until a test of $contexts or $flushed_mib holds."""
    return f"""
        echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
        echo $((1 << 20)) > /proc/sys/vm/dirty_background_bytes
        for file in $hot; do
            while dd if=/dev/zero of=$file bs=64k count=32 conv=notrunc; do :; done 2>/dev/null &
            writers="$writers $!"
        done
        contexts=0 flushed_mib=0
        until test {until}; do
            sleep 0.1
            contexts=$({FLUSHED} | awk '$1 > 0' | wc -l)
            flushed_mib=$({FLUSHED} | awk '{{kib += $1}} END {{print int(kib / 1024)}}')
        done
        kill $writers
        wait
        {FLUSHED}
    """


def numbers(output: str) -> list[int]:
    return [int(word) for word in output.split()]


def test_f2fs_deals_its_inodes_out_in_turn(debug_kernel: Kernel) -> None:
    script = """
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in 1 2 3 4; do : > $PWB_MNT/$i; done
        for i in 1 2 3 4; do dd if=/dev/zero of=$PWB_MNT/$i bs=64k count=1 conv=notrunc 2>/dev/null; done
        awk '/^Context/ {print $4 + $6 + $8}' /sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats
    """
    first, second = map(int, run(debug_kernel, script, fs="f2fs", contexts=2).split())
    assert min(first, second) >= 2


def test_xfs_binds_an_allocation_group(debug_kernel: Kernel) -> None:
    # A new directory goes to the next group: four of eight contexts are of use.
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in 1 2 3 4; do
            mkdir $PWB_MNT/$i && for j in 1 2 3; do echo data > $PWB_MNT/$i/$j; done
        done
        {DIRTY}
    """
    dirty = numbers(output_of(debug_kernel, script, settings={"nwritebacks": "8"}, mkfs=FOUR_GROUPS))
    assert len(dirty) == 4
    assert min(dirty) >= 3


def test_xfs_goes_by_the_groups_of_streams(debug_kernel: Kernel) -> None:
    # All inodes are in the group of their directory; each of four streams has another group.
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo 4 > /sys/fs/xfs/$(basename $PWB_DEV)/write_streams/software
        for stream in 1 2 3 4; do {PROGRAM} dirty $stream $stream.1 $stream.2 $stream.3; done
        {DIRTY}
    """
    dirty = numbers(output_of(debug_kernel, script, settings=FOUR_CONTEXTS, mkfs=FOUR_GROUPS))
    assert len(dirty) == 4
    assert min(dirty) >= 3


def test_xfs_goes_by_the_generic_set(debug_kernel: Kernel) -> None:
    # Inode numbers follow each other.
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo 4 > /sys/fs/xfs/$(basename $PWB_DEV)/write_streams/generic_ags
        {PROGRAM} dirty 0 $(seq 8)
        {DIRTY}
    """
    dirty = numbers(output_of(debug_kernel, script, settings=FOUR_CONTEXTS, mkfs=FOUR_GROUPS))
    assert len(dirty) == 4
    assert min(dirty) >= 2


def test_xfs_with_inode32_goes_by_number(debug_kernel: Kernel) -> None:
    # The inodes are in one group, and their blocks will be in all of the others.
    script = f"""
        set -eu
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        {LARGE_IMAGE}
        PWB_BDI=/sys/class/bdi/$(cat /sys/class/block/$(basename $loop)/dev)
        echo 4 > $PWB_BDI/nwritebacks
        {PROGRAM} dirty 0 $(seq 8)
        {DIRTY}
        cd /; umount $m
    """
    dirty = numbers(run(debug_kernel, script, fs="none"))
    assert len(dirty) == 4
    assert min(dirty) >= 2


def test_xfs_follows_a_filestream(debug_kernel: Kernel) -> None:
    # The first and the last directory are in the same group, which can have the files of one of them only.
    # Once the file has a block, it goes to the context of that, and is not written before.
    script = f"""
        trace=/sys/kernel/tracing
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo 24000 > /proc/sys/fs/xfs/filestream_centisecs
        mkdir 1 2 3 4 5
        for i in 1 5; do
            dd if=/dev/zero of=$i/file bs=4k count=1 2>/dev/null
            {SYNC}
        done
        {PROGRAM} ags 5/file
        echo counter > $trace/trace_clock
        for event in writeback_ctx/wb_ctx_switch writeback/writeback_single_inode_start; do
            echo 1 > $trace/events/$event/enable
        done
        dd if=/dev/zero of=5/file bs=1M seek=1 count=8 conv=notrunc 2>/dev/null
        echo $((8 << 20)) > /proc/sys/vm/dirty_bytes
        ino=$(stat -c %i 5/file)
        until grep -m 1 -o "wb_ctx_switch:.* ino=$ino .*\\|single_inode_start:.* ino=$ino " $trace/trace; do
            dd if=/dev/zero of=5/file bs=4k seek=256 count=1 conv=notrunc 2>/dev/null
        done
    """
    placed, event = output_of(
        debug_kernel, script, settings=FOUR_CONTEXTS, mkfs=FOUR_GROUPS, mount_options="filestreams"
    ).splitlines()
    [group] = json.loads(placed)["5/file"]
    assert re.search(rf"wb_ctx_switch:.* new_ctx={group}$", event)


def test_ext4_binds_a_flex_group(debug_kernel: Kernel) -> None:
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        mkdir $PWB_MNT/directory
        {SYNC}
        for i in $(seq 8); do echo data > $PWB_MNT/directory/$i; done
        {DIRTY}
    """
    assert max(numbers(run(debug_kernel, script, fs="ext4", contexts=4))) >= 8


def test_flex_groups_of_ext4_take_turns(debug_kernel: Kernel) -> None:
    # By their numbers, both even or both odd, the two groups would share a context. Mounted anew no group has
    # had its turn.
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        mkfs.ext4 -q -F -b 4096 -g 2048 -G 2 $PWB_DEV && m=$(mktemp -d) && mount -t ext4 $PWB_DEV $m || exit 1
        cd $m && mkdir $(seq 64) || exit 1
        inodes=$(dumpe2fs -h $PWB_DEV 2>/dev/null | awk '/^Inodes per group/ {{print $4}}')
        two=$(stat -c '%i %n' $(seq 64) | awk -v inodes=$inodes '
            {{group = int(($1 - 1) / inodes / 2); odd = group % 2}}
            odd in name && group != first[odd] {{print name[odd], $2; exit}}
            !(odd in name) {{name[odd] = $2; first[odd] = group}}')
        cd /; umount $m && mount -t ext4 $PWB_DEV $m || exit 1
        for directory in $two; do
            for i in 1 2 3 4; do echo data > $m/$directory/$i; done
        done
        {DIRTY}
        umount $m
    """
    dirty = numbers(run(debug_kernel, script, fs="none", contexts=2))
    assert len(dirty) == 2
    assert min(dirty) >= 4


def test_groups_of_ext4_go_by_their_numbers_without_flex_groups(debug_kernel: Kernel) -> None:
    # The kernel then keeps nothing of a group that could hold its turn.
    script = """
        mkfs.ext4 -q -F -b 4096 -O ^flex_bg -g 2048 $PWB_DEV
        m=$(mktemp -d) && mount -t ext4 $PWB_DEV $m && cd $m && mkdir $(seq 32) || exit 1
        echo 1 > /sys/kernel/tracing/events/writeback_ctx/wb_ctx_attach/enable
        for directory in $(seq 32); do echo data > $directory/file; done
        dumpe2fs -h $PWB_DEV 2>/dev/null | awk '/^Inodes per group/ {print $4}'
        stat -c %i */file
        cat /sys/kernel/tracing/trace
        cd /; umount $m
    """
    per_group, *said = run(debug_kernel, script, fs="none", contexts=4).splitlines()
    group = {int(ino): (int(ino) - 1) // int(per_group) for ino in said[:32]}
    attached = {
        int(ino): int(ctx)
        for ino, ctx in re.findall(r"wb_ctx_attach:.* ino=(\d+) ctx=(\d+)", "\n".join(said))
    }
    assert {ino: attached[ino] for ino in group} == {ino: number % 4 for ino, number in group.items()}
    assert len(set(attached.values())) > 1


def test_new_inodes_are_dealt_out(debug_kernel: Kernel) -> None:
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for affinity in rotor least-loaded; do
            echo $affinity > $PWB_BDI/wb_affinity
            for i in $(seq 8); do echo data > $PWB_MNT/$affinity.$i; done
            {DIRTY}
            {SYNC}
        done
    """
    dirty = numbers(run(debug_kernel, script, fs="ext4", contexts=4))
    assert len(dirty) == 2 * 4
    assert min(dirty) >= 2


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_context_with_a_backlog_hands_over(debug_kernel: Kernel, fs: str) -> None:
    # All files are in one group, so they begin in one context. How many more help depends on how often that
    # one is found at work.
    script = f"""
        mkdir $PWB_MNT/directory
        hot=$(for i in $(seq 8); do echo $PWB_MNT/directory/$i; done)
        {write_hot_files(until="$contexts -gt 1 || test $flushed_mib -gt 1000")}
    """
    flushed = numbers(run(debug_kernel, script, fs=fs, contexts=4))
    assert sum(kib > 0 for kib in flushed) > 1


# Not from the start: a first block may be there.
FILL = """
    for i in 1 2 3 4; do
        dd if=/dev/zero of=$PWB_MNT/directory/$i bs=1M seek=1 count=8 conv=notrunc 2>/dev/null
    done
"""


def moved_or_written(kernel: Kernel, prepare: str, fs: str) -> tuple[int, int]:
    """Return how many of four large files of one group move to another context first, how many are written.

    A smaller limit puts the device under pressure, which ends when three of them are written.
    """
    script = f"""
        trace=/sys/kernel/tracing
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        mkdir $PWB_MNT/directory
        {prepare}
        echo counter > $trace/trace_clock
        echo 1 > $trace/events/writeback_ctx/wb_ctx_switch/enable
        for event in writeback_exec writeback_single_inode_start; do
            echo 1 > $trace/events/writeback/$event/enable
        done
        # A file's first dirty page wakes its flusher, which writes as soon as the device is over its share of
        # the background limit. One without writeback for some seconds has an eighth: 15 of 120 MiB.
        echo $((2 << 30)) > /proc/sys/vm/dirty_bytes
        echo $((1 << 30)) > /proc/sys/vm/dirty_background_bytes
        {FILL}
        echo $((8 << 20)) > /proc/sys/vm/dirty_bytes
        until test $(awk '/^nr_dirty / {{print $2}}' /proc/vmstat) -lt 2048; do
            dd if=/dev/zero of=$PWB_MNT/directory/1 bs=4k seek=256 count=1 conv=notrunc 2>/dev/null
        done
        stat -c %i $PWB_MNT/directory/[1-4]
        cat $trace/trace
    """
    said = run(kernel, script, fs=fs, contexts=4).splitlines()
    inodes, trace = said[:4], said[4:]
    event = re.compile(r"(wb_ctx_switch|writeback_single_inode_start):.* ino=(\d+) ")
    first: dict[str, str] = {}
    for name, ino in (found.groups() for found in map(event.search, trace) if found):
        first.setdefault(ino, name)
    events = [first[ino] for ino in inodes if ino in first]
    moved = events.count("wb_ctx_switch")
    # For who has to find out why a file was not handed over: shown when the test fails.
    print(*inodes, *trace[:200], sep="\n")
    return moved, len(events) - moved


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
@pytest.mark.parametrize("allocated", [True, False])
def test_large_files_go_to_idle_flushers_unless_they_need_blocks(
    debug_kernel: Kernel, fs: str, allocated: bool
) -> None:
    moved, written = moved_or_written(debug_kernel, f"{FILL} {SYNC}" if allocated else SYNC, fs)
    assert moved + written == 4
    assert moved >= 3 if allocated else moved == 0


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_file_that_needs_blocks_goes_home(debug_kernel: Kernel, fs: str) -> None:
    # By number each file gets a context of its own. By its group one is at home.
    deal_out = f"""
        echo ino > $PWB_BDI/wb_affinity
        for i in 1 2 3 4; do dd if=/dev/zero of=$PWB_MNT/directory/$i bs=4k count=1 2>/dev/null; done
        {SYNC}
        echo fs > $PWB_BDI/wb_affinity
    """
    moved, written = moved_or_written(debug_kernel, deal_out, fs)
    assert moved >= 2
    assert written <= 1


# Four files of F2FS are written back by four flushers: nothing is, until a smaller limit wakes them all.
F2FS_WRITEBACK = """
    trace=/sys/kernel/tracing
    echo counter > $trace/trace_clock
    echo 20000 > $trace/buffer_size_kb
    for event in writeback/writeback_single_inode_start f2fs/f2fs_do_write_data_page; do
        echo 1 > $trace/events/$event/enable
    done
    echo $((8 << 20)) > /proc/sys/vm/dirty_bytes
    until test $(awk '/^nr_dirty / {print $2}' /proc/vmstat) -lt 2048; do
        dd if=/dev/zero of=$PWB_MNT/1 bs=4k count=1 conv=notrunc 2>/dev/null
    done
    cat $trace/trace
"""


class Pass(NamedTuple):
    """A flusher's going over an inode: whose, its number for the flusher, and over which."""

    pid: str
    number: int
    ino: str


def written_in_passes(trace: str, kind: str) -> list[Pass]:
    """Return the pass of each page of a kind, in the order in which they were written."""
    event = re.compile(r"kworker/\S+-(\d+) .*: (?:writeback_single_inode_start|.* ino = (\d+), (\S+), FILE)")
    count: dict[str, int] = collections.Counter()
    pages = []
    for pid, ino, how in event.findall(trace):
        if not how:
            count[pid] += 1
        elif how == kind:
            pages.append(Pass(pid, count[pid], ino))
    assert len(count) > 1
    assert pages
    return pages


def is_one_after_the_other(pages: list[Pass]) -> bool:
    turns = [turn for turn, _ in itertools.groupby(pages)]
    return len(turns) == len(set(turns))


def test_f2fs_takes_new_blocks_for_one_file_at_a_time(debug_kernel: Kernel) -> None:
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in 1 2 3 4; do dd if=/dev/zero of=$PWB_MNT/$i bs=1M count=8 2>/dev/null; done
        {F2FS_WRITEBACK}
    """
    pages = written_in_passes(run(debug_kernel, script, fs="f2fs", contexts=4), "OUT-OF-PLACE")
    assert is_one_after_the_other(pages), "a flusher took blocks amid those of another's file"


def test_f2fs_overwrites_files_side_by_side_from_the_first_time(debug_kernel: Kernel) -> None:
    # Direct writes give them blocks. Every second page becomes dirty: each is a command to wait for.
    dirty = "for page in range(0, 4096, 2): os.pwrite(file, bytes(4096), page * 4096)"
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in 1 2 3 4; do
            dd if=/dev/zero of=$PWB_MNT/$i bs=1M count=16 oflag=direct 2>/dev/null
            {sys.executable} -c 'import os, sys; file = os.open(sys.argv[1], os.O_WRONLY)
{dirty}' $PWB_MNT/$i
        done
        {F2FS_WRITEBACK}
    """
    trace = run(debug_kernel, script, fs="f2fs", device="waiting", contexts=4)
    pages = written_in_passes(trace, "IN-PLACE")
    first = {page.ino: page for page in reversed(pages)}
    assert not is_one_after_the_other([page for page in pages if page in first.values()])


# Files of 16 KiB in a directory, and the writing back of all that is dirty but 8 MiB.
F2FS_SMALL_FILES = """
    echo 0 > /proc/sys/vm/dirty_writeback_centisecs
    create() {
        mkdir $PWB_MNT/$1
        for i in $(seq 1500); do head -c 16384 /dev/zero > $PWB_MNT/$1/$i; done
    }
    write_back() {
        echo $((8 << 20)) > /proc/sys/vm/dirty_bytes
        until test $(awk '/^nr_dirty / {print $2}' /proc/vmstat) -lt 2048; do
            pokes=$((pokes + 1))
            head -c 4096 /dev/zero > $PWB_MNT/poke.$pokes
        done
        echo $((256 << 20)) > /proc/sys/vm/dirty_bytes
    }
    flushers() {
        awk '{sub(/.*-/, "", $1); print $1}' | sort -u | wc -l
    }
    echo $((256 << 20)) > /proc/sys/vm/dirty_bytes
    echo 20000 > /sys/kernel/tracing/buffer_size_kb
    create before
    write_back
"""


# Files of a compressed directory are compressed, each 16 KiB of them by themselves.
@pytest.mark.parametrize("compressed", [False, True])
def test_f2fs_writes_small_files_with_one_flusher(debug_kernel: Kernel, compressed: bool) -> None:
    script = f"""
        {"chattr +c $PWB_MNT" if compressed else ""}
        {F2FS_SMALL_FILES}
        create small
        echo 1 > /sys/kernel/tracing/events/writeback/writeback_single_inode_start/enable
        write_back
        grep kworker /sys/kernel/tracing/trace > /tmp/trace
        ls -i $PWB_MNT/small | awk '{{print "ino=" $1 " "}}' > /tmp/small
        grep -cFf /tmp/small /tmp/trace
        grep -Ff /tmp/small /tmp/trace | flushers
        lsattr $PWB_MNT/small | awk '$1 ~ /c/' | wc -l
    """
    mkfs = ("-O", "extra_attr,compression") if compressed else ()
    passes, flushers, marked = numbers(run(debug_kernel, script, fs="f2fs", contexts=4, mkfs=mkfs))
    assert passes > 100
    assert flushers == 1
    assert marked == (1500 if compressed else 0)


def test_f2fs_overwrites_side_by_side_after_small_files(debug_kernel: Kernel) -> None:
    script = f"""
        {F2FS_SMALL_FILES}
        for i in 1 2 3 4; do
            dd if=/dev/zero of=$PWB_MNT/$i bs=1M count=16 oflag=direct 2>/dev/null
            dd if=/dev/zero of=$PWB_MNT/$i bs=1M count=16 conv=notrunc 2>/dev/null
        done
        echo 1 > /sys/kernel/tracing/events/f2fs/f2fs_do_write_data_page/enable
        write_back
        grep IN-PLACE /sys/kernel/tracing/trace | grep kworker | flushers
    """
    (flushers,) = numbers(run(debug_kernel, script, fs="f2fs", device="waiting", contexts=4))
    assert flushers > 1


def test_f2fs_looks_nothing_up_to_see_whether_fsync_of_a_page_needs_a_turn(debug_kernel: Kernel) -> None:
    # Only flushers know what a file did the last time, and none has written this one.
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        {sys.executable} -c 'import os, sys; file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for page in range(16):
    os.pwrite(file, bytes(4096), page * 4096)
os.fsync(file)
trace = "/sys/kernel/tracing"
open(trace + "/events/f2fs/f2fs_lookup_extent_tree_start/enable", "w").write("1")
for page in range(16):
    os.pwrite(file, bytes(4096), page * 4096)
    os.fsync(file)
print(open(trace + "/trace").read().count("f2fs_lookup_extent_tree_start:"))' $PWB_MNT/file
    """
    one, two = (int(run(debug_kernel, script, fs="f2fs", contexts=number)) for number in (1, 2))
    assert 0 < one == two


def test_number_holds_under_load(debug_kernel: Kernel) -> None:
    # Every fourth file: their numbers are all multiples of four.
    script = f"""
        for i in $(seq 64); do : > $PWB_MNT/$i; done
        {SYNC}
        hot=$(find $PWB_MNT -type f -printf '%i %p\\n' | awk '$1 % 4 == 0 {{print $2}}' | head -8)
        {write_hot_files(until="$flushed_mib -gt 100")}
    """
    first, *others = numbers(run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino"))
    assert first > 0
    assert sum(others) == 0
