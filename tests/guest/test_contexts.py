# SPDX-License-Identifier: GPL-2.0
"""Writeback contexts in a running debug kernel."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.check import kunit
from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import foreign, output
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
FILESYSTEMS = ["xfs", "ext4", "f2fs"]


def run(
    kernel: Kernel,
    script: str,
    *,
    fs: str = "xfs",
    device: str | None = None,
    contexts: int | str | None = None,
    affinity: str = "fs",
    workers: int = 1,
    mkfs: Sequence[str] = (),
) -> str:
    """Run a shell script in the debug guest and return what it printed; a failing script fails the test."""
    settings = {"wb_affinity": affinity, "wb_workers": str(workers)}
    settings |= {} if contexts is None else {"nwritebacks": str(contexts)}
    named = {} if device is None else {"device": device}
    return output_of(kernel, script, fs=fs, settings=settings, mkfs=mkfs, **named)


@pytest.mark.parametrize("fixture", ["debug_kernel", "smp_debug_kernel", "nocgroup_kernel"])
def test_kunit(request: pytest.FixtureRequest, fixture: str) -> None:
    suites = [
        "bdi_writeback_ctx",
        "bdi_wb_affinity",
        "bdi_wb_auto",
        "bdi_wb_auto_lull",
        "bdi_wb_move",
        "bdi_wb_number",
        "bdi_wb_throttle",
        "bdi_wb_workers",
        "labblk_ftl",
        "labblk_media",
        "labblk_spindle",
        "labblk_timing",
        "xfs_ag_set",
        "xfs_ag_window",
        "xfs_agwb",
        "xfs_agwb_hint",
        "xfs_agwb_hint_pack",
    ]
    kernel = request.getfixturevalue(fixture)
    if kernel.flavour == "nocgroup":
        suites = [name for name in suites if name.startswith("bdi_")]
    report = output_of(kernel, kunit.script(suites), fs="none", kernel_arguments=[])
    assert kunit.failed(report) == [], report
    assert kunit.suites(report) == suites, report


# nwritebacks, wb_affinity, wb_workers.
WAYS = [(1, "fs", 1), (1, "fs", 4), (2, "ino", 2), (3, "least-loaded", 8), (8, "rotor", 1)]


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_every_byte_arrives(debug_kernel: Kernel, fs: str) -> None:
    # All ways share a boot; each has a filesystem of its own.
    script = "set -e\n" + "".join(
        f"""
        echo {contexts} > $PWB_BDI/nwritebacks
        echo {affinity} > $PWB_BDI/wb_affinity
        echo {workers} > $PWB_BDI/wb_workers
        {sys.executable} {HERE / "compare.py"} {fs}
        test "$(cat $PWB_BDI/nwritebacks)" = {contexts}
        """
        for contexts, affinity, workers in WAYS
    )
    report = run(debug_kernel, script, fs="none")
    assert report.count("every byte is as written") == len(WAYS), report


@pytest.mark.parametrize("fs", ["ext4", "f2fs"])
def test_every_byte_arrives_without_cgroups(nocgroup_kernel: Kernel, fs: str) -> None:
    script = f"""
        test ! -e /proc/self/cgroup || exit 1
        resize() {{
            while sleep 0.1; do echo $((1 + $(date +%N | tail -c 2))) > $PWB_BDI/nwritebacks; done 2>/dev/null
        }}
        for contexts in 1 4; do
            echo $contexts > $PWB_BDI/nwritebacks
            resize &
            {sys.executable} {HERE / "compare.py"} {fs} || exit 1
            kill $!
        done
    """
    report = run(nocgroup_kernel, script, fs="none", affinity="rotor")
    assert report.count("every byte is as written") == 2, report


def test_attributes_are_shown_and_set(debug_kernel: Kernel) -> None:
    # As many contexts as CPUs, and at most four times as many. What is refused changes nothing.
    script = """
        cd $PWB_BDI
        is_set() {
            cat $1
            echo $2 > $1 && cat $1
            echo > $1 && exit 1
            for value in $3; do echo $value > $1 && exit 1; done
            cat $1
        } 2>/dev/null
        nproc
        is_set nwritebacks 3 "0 -1 $((4 * $(nproc) + 1)) two"
        is_set wb_affinity least-loaded 'random fs,ino 1'
        is_set wb_workers 8 '0 9 -1 four 1.5 4294967297'
    """
    cpus, *shown = output_of(debug_kernel, script, fs="none").splitlines()
    affinities = ["[fs] ino rotor least-loaded", *["fs ino rotor [least-loaded]"] * 2]
    assert shown == [cpus, "3", "3", *affinities, "1", "8", "8"]


def test_kernel_finds_the_number_unless_it_is_told(debug_kernel: Kernel) -> None:
    script = "cat $PWB_BDI/nwritebacks; echo 3 > $PWB_BDI/nwritebacks; cat $PWB_BDI/nwritebacks"
    script += "; echo auto > $PWB_BDI/nwritebacks; saved=$(cat $PWB_BDI/nwritebacks); echo $saved"
    # What was read can be written back.
    script += (
        '; echo 2 > $PWB_BDI/nwritebacks; echo "$saved" > $PWB_BDI/nwritebacks; cat $PWB_BDI/nwritebacks'
    )
    said = [
        output_of(debug_kernel, script, fs="none", kernel_arguments=arguments).splitlines()
        for arguments in ([], ["nwritebacks=2"], ["nwritebacks=auto"], ["nwritebacks=none"])
    ]
    assert said == [
        [first, "3", "auto (1)", "auto (1)"] for first in ("auto (1)", "2", "auto (1)", "auto (1)")
    ]


def test_a_number_at_boot_is_no_more_than_there_may_be(debug_kernel: Kernel) -> None:
    script = "cat $PWB_BDI/nwritebacks; nproc; for i in $(seq 64); do echo data > $PWB_MNT/$i; done; sync"
    said = output_of(
        debug_kernel,
        script,
        fs="ext4",
        settings={"wb_affinity": "ino"},
        kernel_arguments=["nwritebacks=999"],
    )
    number, cpus = map(int, said.split())
    assert number == 4 * cpus


# What it finds depends on speed; that it finds something, and that no byte is lost meanwhile, does not.
@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
def test_kernel_tries_while_writers_are_throttled(debug_kernel: Kernel, fs: str) -> None:
    script = """
        cd /sys/kernel/tracing && echo 1 > events/writeback_ctx/wb_ctx_auto/enable || exit 1
        echo $((8 << 20)) > /proc/sys/vm/dirty_bytes; echo $((4 << 20)) > /proc/sys/vm/dirty_background_bytes
        cd $PWB_MNT
        for round in $(seq 20); do
            fio --name=load --numjobs=4 --size=16m --rw=randwrite --bs=4k --verify=crc32c \
                --time_based --runtime=2s --group_reporting --minimal > /dev/null || exit 1
            grep -q ' nr=2 ' /sys/kernel/tracing/trace && break
        done
        grep -o 'kept=.*' /sys/kernel/tracing/trace
    """
    report = output_of(debug_kernel, script, fs=fs, kernel_arguments=[])
    number = r"\d+"
    line = (
        f"kept={number} kept_rate={number} nr={number} rate={number} waited={number}/{number} "
        "up=[01] again=[01] lull=[01] verdict=(base|more|same|less)"
    )
    decisions = report.splitlines()
    assert decisions[0].startswith("kept=1 kept_rate=0 nr=1 ")
    assert decisions[0].endswith("verdict=base")
    assert all(re.fullmatch(line, decision) for decision in decisions)
    assert any(" nr=2 " in decision for decision in decisions)
    seen = [int(number) for number in re.findall(r"waited=\d+/(\d+)", report)]
    assert any(seen), "no flusher was ever seen at work"


def test_context_comes_with_its_first_inode(debug_kernel: Kernel) -> None:
    script = """
        stats=/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats
        grep -c ^Context $stats
        mkfs.ext4 -q -F $PWB_DEV && m=$(mktemp -d) && mount -t ext4 $PWB_DEV $m || exit 1
        for i in $(seq 20); do echo data > $m/$i; done
        grep -c ^Context $stats
        umount $m
    """
    before, written = run(debug_kernel, script, fs="none", contexts=5, affinity="ino").split()
    assert (before, written) == ("1", "5")


def test_number_of_contexts_changes_while_mounted(debug_kernel: Kernel) -> None:
    # No periodic writeback: what is dirty stays where it is until the flushers are told to work.
    script = """
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        dirty() { awk '/^Context/ {gsub(":", ""); print $2 "=" $4 + $6 + $8}' \
            /sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats | tr '\n' ' '; }
        for i in $(seq 8); do echo data > $PWB_MNT/a$i; done
        echo 1 > $PWB_BDI/nwritebacks || exit 1
        for i in $(seq 8); do echo data > $PWB_MNT/b$i; done
        echo "grown: $(dirty)"
        sync $PWB_MNT/*
        for i in $(seq 8); do echo more >> $PWB_MNT/a$i; done
        echo "synced: $(dirty)"
    """
    output = run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino")
    grown, synced = (
        {int(index): int(count) for index, count in re.findall(r"(\d+)=(\d+)", line)}
        for line in output.splitlines()
    )
    assert sum(grown.values()) >= 16
    assert all(grown[index] >= 2 for index in range(1, 4))
    assert grown[0] >= 10, "new files go to the only context left"
    # fsync() keeps every inode where it is; they follow when a flusher writes them of its own accord.
    assert all(synced[index] >= 1 for index in range(1, 4))


def test_inodes_follow_the_number_of_contexts(debug_kernel: Kernel) -> None:
    script = """
        trace=/sys/kernel/tracing
        stats=/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats
        echo 1 > /proc/sys/vm/dirty_expire_centisecs
        echo 5 > /proc/sys/vm/dirty_writeback_centisecs
        for event in attach switch resize; do echo 1 > $trace/events/writeback_ctx/wb_ctx_$event/enable; done
        for i in $(seq 16); do echo data > $PWB_MNT/a$i; done
        echo 1 > $PWB_BDI/nwritebacks
        for turn in $(seq 100); do
            for i in $(seq 16); do echo more >> $PWB_MNT/a$i; done
            sleep 0.2
            test $(grep -c 'wb_ctx_switch.*new_ctx=0' $trace/trace) -ge 12 && break
        done
        grep -c 'wb_ctx_switch.*new_ctx=0' $trace/trace
        grep -c 'wb_ctx_resize.*old_nr=4 new_nr=1' $trace/trace
        for i in $(seq 16); do echo again >> $PWB_MNT/a$i; done
        awk '/^Context [^0]/ {left += $4 + $6 + $8} END {print left + 0}' $stats
        grep -c 'wb_ctx_attach.*ctx=3' $trace/trace
    """
    switched, resized, left, attached = map(
        int, run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino").split()
    )
    # What is left counts only while it is dirty.
    assert switched >= 12
    assert resized == 1
    assert left <= 4
    assert attached >= 4


def test_work_events_carry_the_context(debug_kernel: Kernel) -> None:
    # syncfs(2), for sync(2) first wakes the flushers, and one that is done by then gets no work.
    script = """
        trace=/sys/kernel/tracing
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for event in queue exec start done; do echo 1 > $trace/events/writeback/writeback_$event/enable; done
        for i in $(seq 8); do echo data > $PWB_MNT/a$i; done
        sync -f $PWB_MNT
        for event in queue exec start done; do
            contexts=$(grep -o "writeback_$event:.* ctx=[0-9]*" $trace/trace | grep -o 'ctx=.*' | sort -u)
            echo $event $contexts
        done
    """
    lines = run(debug_kernel, script, fs="ext4", contexts=2, affinity="ino").splitlines()
    assert [line.split() for line in lines] == [
        [event, "ctx=0", "ctx=1"] for event in ("queue", "exec", "start", "done")
    ]


def test_statistics_add_up_over_the_contexts(debug_kernel: Kernel) -> None:
    # Twelve dirty files on four contexts: the lists add up, and no page is counted twice.
    count = (
        "awk '/^b_(dirty|io|more_io):/ {inodes += $2} /^BdiReclaimable/ {kib = $2} END {print inodes, kib}' "
        "/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"
    )
    script = f"""
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        for i in $(seq 12); do dd if=/dev/zero of=$PWB_MNT/f$i bs=2M count=1 2>/dev/null; done
        {count}
        sync
        {count}
    """
    dirty_inodes, dirty_kib, _, clean_kib = map(
        int, run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino").split()
    )
    assert dirty_inodes >= 12
    kept_kib = output.kept_kib()
    assert 12 * 2048 - 4 * kept_kib <= dirty_kib <= 1.1 * 12 * 2048
    assert clean_kib <= kept_kib


def test_statistics_of_cgroups_name_the_context(debug_kernel: Kernel) -> None:
    # Eight files by turns: a group has a writeback in each of four contexts.
    script = """
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control
        mkdir group
        (echo 0 > group/cgroup.procs
         for i in $(seq 8); do dd if=/dev/zero of=$PWB_MNT/$i bs=64k count=4 2>/dev/null; done)
        stat -c %i group
        grep -A 1 WbCgIno /sys/kernel/debug/bdi/$(basename $PWB_BDI)/wb_stats
    """
    group, *lines = run(debug_kernel, script, fs="ext4", contexts=4, affinity="rotor").splitlines()
    blocks = re.findall(r"WbCgIno: +(\d+)\nWbContext: +(\d+)", "\n".join(lines))
    assert sorted(context for ino, context in blocks if ino == group) == ["0", "1", "2", "3"]


def test_a_context_may_write_all_that_is_dirty_when_reclaim_asks(debug_kernel: Kernel) -> None:
    """One of four contexts has nearly all that is dirty: a fourth would have to be asked for often."""
    # A new interval wakes all flushers as reclaim does, for as many pages as are dirty. So does sync(2), but
    # its own work may come first. A flusher for which there is no kworker in time is run by the workqueue's
    # rescuer, which takes no request: what it has left undone sync(2) takes off, and all are woken again.
    script = """
        trace=/sys/kernel/tracing
        echo 1 > $trace/events/writeback/writeback_start/enable
        for turn in $(seq 50); do
            echo 0 > /proc/sys/vm/dirty_writeback_centisecs
            for i in $(seq 4); do echo data > $PWB_MNT/a$i; done
            dd if=/dev/zero of=$PWB_MNT/large bs=1M count=8 2>/dev/null
            echo 100000 > /proc/sys/vm/dirty_writeback_centisecs
            sleep 0.2
            sync
            asked=$(sed -n 's/.*nr_pages=\\([0-9]*\\) .*reason=periodic.*/\\1/p' $trace/trace |
                    sort -n | tail -n 1)
            test "${asked:-0}" -ge 2048 && break
        done
        echo "${asked:-0}"
    """
    # The flushers start one by one, and what the first has written is not dirty for the last.
    assert int(run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino")) >= 8 << 8


def test_inodes_of_a_removed_cgroup_stay_in_their_context_without_memory(
    debug_kernel: Kernel,
) -> None:
    """No memory for the parent's writeback in it: they go on to the root, and hold neither cgroup."""
    script = """
        trace=/sys/kernel/tracing; fault=/sys/kernel/debug/failslab
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control
        mkdir parent && echo '+memory +io' > parent/cgroup.subtree_control && mkdir parent/child
        (echo 0 > parent/child/cgroup.procs
         for i in $(seq 8); do echo data > $PWB_MNT/a$i; done)
        sync
        echo 1 > $trace/events/writeback/inode_switch_wbs/enable
        echo Y > $fault/ignore-gfp-wait; echo 0 > $fault/verbose; echo -1 > $fault/times
        echo 100 > $fault/probability
        rmdir parent/child
        for i in $(seq 100); do
            test $(grep -c inode_switch_wbs: $trace/trace) -ge 8 && break
            sleep 0.1
        done
        echo 0 > $fault/probability
        grep -c inode_switch_wbs: $trace/trace
        rmdir parent
        for turn in $(seq 300); do
            grep -qx 'nr_dying_descendants 0' cgroup.stat && break
            sync; echo 3 > /proc/sys/vm/drop_caches
            sleep 0.1
        done
        grep nr_dying_descendants cgroup.stat | cut -d ' ' -f 2
    """
    switched, dying = map(int, run(debug_kernel, script, fs="ext4", contexts=4, affinity="rotor").split())
    assert switched >= 8
    assert dying == 0, "a reference on the parent's writeback is left"


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_cgroups_leave_nothing_behind(debug_kernel: Kernel, fs: str) -> None:
    # Groups come, write through all contexts, are killed and removed; a writeback that outlives its group
    # would keep the group's memory controller dying for ever.
    script = """
        stats=/sys/kernel/debug/bdi/$(basename $PWB_BDI)/wb_stats
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control
        echo before $(grep -c WbCgIno $stats)
        for round in $(seq 8); do
            mkdir group
            (echo 0 > group/cgroup.procs
             for i in $(seq 16); do dd if=/dev/zero of=$PWB_MNT/r$round-$i bs=64k count=4 2>/dev/null; done
             test $round -gt 2 || sync
             exec sleep 100) &
            test $round -gt 4 || echo $(($round % 8 + 1)) > $PWB_BDI/nwritebacks
            until test -e $PWB_MNT/r$round-16; do sleep 0.05; done
            test $round = 2 && echo during $(grep -c WbCgIno $stats)
            echo 1 > group/cgroup.kill
            wait
            rmdir group
        done
        rm -f $PWB_MNT/r*
        for turn in $(seq 20); do
            sync
            echo 3 > /proc/sys/vm/drop_caches
            grep -qx 'nr_dying_descendants 0' cgroup.stat && break
            sleep 0.1
        done
        grep nr_dying cgroup.stat
        echo after $(grep -c WbCgIno $stats)
        echo contexts $(grep -c ^Context $(dirname $stats)/stats)
    """
    output = run(debug_kernel, script, fs=fs, contexts=4, affinity="rotor")
    counted = dict(
        re.findall(r"^(before|during|after|contexts|nr_dying_descendants) (\d+)$", output, re.MULTILINE)
    )
    assert int(counted["during"]) > int(counted["before"])
    # F2FS has an inode for its node blocks and one for other metadata, dirty most of the time: the group that
    # they are attached to when the last one dies keeps their writebacks, in two contexts if need be, and the
    # throttle of these, until the next one dies.
    kept = 1 if fs == "f2fs" else 0
    assert int(counted["nr_dying_descendants"]) <= kept
    assert int(counted["after"]) <= int(counted["contexts"]) + 3 * kept, "one root writeback per context"


@pytest.mark.parametrize("context", [0, 1])
def test_removed_cgroup_gives_up_all_files_of_a_context(debug_kernel: Kernel, context: int) -> None:
    """Its inodes go to its parent, more of them than one switch takes, though they stay in memory."""
    script = f"""
        stats=/sys/kernel/debug/bdi/$(basename $PWB_BDI)/wb_stats
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control && mkdir group
        (echo 0 > group/cgroup.procs
         for i in $(seq 600); do echo data > $PWB_MNT/$i; done
         find $PWB_MNT -type f -printf '%i %p\\n' | awk '$1 % 2 != {context} {{print $2}}' | xargs rm)
        ls $PWB_MNT | wc -l
        sync -f $PWB_MNT
        blocks="WbCgIno: *$(stat -c %i group)$"
        grep -c "$blocks" $stats
        rmdir group
        for turn in $(seq 300); do
            grep -q "$blocks" $stats || break
            sleep 0.1
        done
        echo $(grep -c "$blocks" $stats)
    """
    files, during, after = map(int, run(debug_kernel, script, fs="ext4", contexts=2, affinity="ino").split())
    assert files > 250
    assert during == 2
    assert after == 0, "writebacks of a cgroup that is gone"


def test_foreign_pages_are_flushed_in_all_contexts(debug_kernel: Kernel) -> None:
    """A cgroup over its limit by pages of another's files has them written, wherever their inodes are."""
    script = foreign.dirtied(
        before="echo 1 > $trace/events/writeback/writeback_queue/enable",
        until="grep -q reason=foreign_flush $trace/trace",
    )
    script += "stat -c %i owner; cat $trace/trace"
    owner, *traced = run(debug_kernel, script, fs="ext4", contexts=4, affinity="ino").splitlines()
    event = re.compile(r"writeback_queue:.* ctx=(\d+) .*reason=foreign_flush.* cgroup_ino=(\d+)")
    flushed = {found[1] for found in map(event.search, traced) if found and found[2] == owner}
    assert flushed == {"0", "1", "2", "3"}


def test_dirty_inode_changes_its_cgroup_beside_interrupts(debug_kernel: Kernel) -> None:
    # The inode comes, dirty, to a writeback that was clean, under the lock that an interrupt takes which ends
    # a write. Lockdep must find nothing to say about the locks taken below it.
    script = """
        trace=/sys/kernel/tracing
        cd /sys/fs/cgroup
        echo '+memory +io' > cgroup.subtree_control
        mkdir first second
        echo 1 > $trace/events/writeback/inode_switch_wbs/enable
        (echo 0 > first/cgroup.procs
            exec dd if=/dev/zero of=$PWB_MNT/shared bs=64k count=1 2>/dev/null)
        (echo 0 > second/cgroup.procs
            until grep inode_switch_wbs: $trace/trace; do
                dd if=/dev/zero of=$PWB_MNT/shared bs=1M count=1 seek=1 conv=notrunc,fdatasync 2>/dev/null
            done)
    """
    assert "inode_switch_wbs:" in run(debug_kernel, script, fs="ext4", device="100us", contexts=2)


def test_memory_of_a_cgroup_is_freed_with_it(debug_kernel: Kernel) -> None:
    # What the allocator has lent to one function and not got back, by its trace events.
    script = """
        trace=/sys/kernel/tracing
        echo 60000 > $trace/buffer_size_kb
        echo '+memory +io' > /sys/fs/cgroup/cgroup.subtree_control
        lent() {
            awk '/ kmalloc: call_site=(cgwb_create_in_ctx|wb_in_ctx)[+]/ {match($0, /ptr=[^ ]*/)
                     held[substr($0, RSTART, RLENGTH)] = 1}
                 / kfree: / {match($0, /ptr=[^ ]*/); delete held[substr($0, RSTART, RLENGTH)]}
                 END {for (one in held) sum++; print sum + 0}' $trace/trace
        }
        for event in kmalloc kfree; do echo 1 > $trace/events/kmem/$event/enable; done
        group=/sys/fs/cgroup/group; mkdir $group
        (echo 0 > $group/cgroup.procs
         for i in $(seq 16); do dd if=/dev/zero of=$PWB_MNT/$i bs=64k count=1 2>/dev/null; done)
        lent
        rm $PWB_MNT/*; rmdir $group
        for turn in $(seq 100); do
            sync; echo 3 > /proc/sys/vm/drop_caches
            after=$(lent)
            test $after = 0 && break
            sleep 0.1
        done
        echo $after
        cat $trace/per_cpu/cpu*/stats | awk '/^overrun/ {sum += $2} END {print sum}'
    """
    during, after, not_recorded = map(int, run(debug_kernel, script, contexts=4, affinity="rotor").split())
    assert not_recorded == 0
    assert during == 3
    assert after == 0, "writebacks of a cgroup that is gone"


def test_contexts_share_pages_that_are_not_to_stay_cached(debug_kernel: Kernel) -> None:
    program = f"env PYTHONPATH={REPO} {sys.executable} -m tests.guest.dontcache"
    contexts, most = map(int, run(debug_kernel, program, contexts=4, affinity="ino").split())
    assert (contexts, most) == (4, 256 // 4)


@pytest.mark.parametrize("option", ["data_flush", "nodiscard"])
def test_f2fs_with_and_without_its_list_of_dirty_files(debug_kernel: Kernel, option: str) -> None:
    # With data_flush a file is on a list while it is dirty, under a lock that is not taken else.
    script = f"""
        set -e
        mkdir /dev/shm/f2fs
        mkfs.f2fs -q -f $PWB_DEV > /dev/null
        mount -t f2fs -o {option} $PWB_DEV /dev/shm/f2fs
        cd /dev/shm/f2fs
        for i in 1 2 3 4 5 6 7 8; do
            (head -c 2M /dev/urandom > file.$i; sync file.$i; head -c 1M /dev/urandom >> file.$i) &
        done
        wait
        sync
        sha256sum file.* > /dev/shm/sums
        cd /
        umount /dev/shm/f2fs
        fsck.f2fs --dry-run $PWB_DEV > /dev/null
        mount -t f2fs $PWB_DEV /dev/shm/f2fs
        cd /dev/shm/f2fs
        sha256sum --quiet -c /dev/shm/sums && echo every byte is as written
    """
    assert "every byte is as written" in output_of(debug_kernel, script, fs="none", device_size_mib=256)


@pytest.mark.parametrize("contexts", [1, 8])
def test_cgroups_keep_their_io_limits(debug_kernel: Kernel, contexts: int) -> None:
    # What reached the device for a group never exceeds what its limit allows for the time that passed.
    command = [sys.executable, str(HERE / "iolimits.py")]
    output_of(debug_kernel, command, fs="ext4", settings={"nwritebacks": str(contexts)})


def test_device_goes_away_below_dirty_files(debug_kernel: Kernel) -> None:
    script = """
        mkfs.xfs -q -f $PWB_DEV && m=$(mktemp -d) && mount -t xfs $PWB_DEV $m || exit 1
        for file in a b c d; do dd if=/dev/zero of=$m/$file bs=1M count=4 2>/dev/null & done
        wait
        for device in /sys/kernel/config/nullb/*/power; do echo 0 > $device; done
        test ! -e $PWB_BDI || exit 1
        umount $m
    """
    run(debug_kernel, script, fs="none", contexts=8)
