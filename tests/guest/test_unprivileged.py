# SPDX-License-Identifier: GPL-2.0
"""What a user without rights can cause: each bound of docs/unprivileged.md, in a running debug kernel.

That such a user can change no setting and read no statistics is tried by test_hostile.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from tests.guest.test_contexts import run
from tests.guest.test_hostile import NOBODY
from tests.guest.test_wbctl import make

pytestmark = pytest.mark.guest

STATS = "/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"
CONTEXTS, WORKERS = 3, 2
# As x86-64 has them without the debug kernel's checks, which double them.
STRUCTURE_BYTES = 1024
# A user's shell; what it runs has one line for each command.
AS_NOBODY = f"""
    chmod 777 $PWB_MNT
    as_nobody() {{ {NOBODY} sh -c "$1"; }}
"""
# Files are overwritten until the flushers have written 30 MiB and what is looked for was seen.
LOAD = """
    echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
    echo $((1 << 20)) > /proc/sys/vm/dirty_background_bytes
    for file in $(seq 8); do
        as_nobody "while :; do
            dd if=/dev/zero of=$PWB_MNT/$file bs=64k count=128 conv=notrunc
        done" 2> /dev/null &
        writers="$writers $!"
    done
    most=0
    count_up() { test $1 -le $most || most=$1; }
    written() { awk '/^Context/ {sum += $12} END {print sum}' $stats; }
    until test $(written) -gt $((30 << 10)) && seen; do look; done
    kill $writers
"""


def load(kernel: Kernel, look: str, seen: str, after: str, **settings: object) -> list[int]:
    """Have a user write, look again and again meanwhile, and return the numbers that are printed after it.

    Args:
        kernel: what to boot.
        look: shell commands; count_up() keeps the greatest number in $most.
        seen: a condition that must come true while the user writes.
        after: shell commands that print numbers.
        settings: those of test_contexts.run().
    """
    script = f"""
        stats={STATS}
        {AS_NOBODY}
        look() {{ {look}; }}
        seen() {{ {seen}; }}
        {LOAD}
        {after}
    """
    return [int(number) for number in run(kernel, script, **settings).split()]  # type: ignore[arg-type]


def test_contexts_their_memory_and_the_work_of_a_sync(debug_kernel: Kernel) -> None:
    # A user writes many files, and has them synced.
    script = f"""
        stats={STATS}
        trace=/sys/kernel/tracing
        {AS_NOBODY}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo 30000 > $trace/buffer_size_kb
        for event in kmem/kmalloc writeback/writeback_queue; do echo 1 > $trace/events/$event/enable; done
        as_nobody 'for i in $(seq 40); do echo data > $PWB_MNT/$i; done; sync -f $PWB_MNT'
        for event in kmem/kmalloc writeback/writeback_queue; do echo 0 > $trace/events/$event/enable; done
        echo exist $(grep -c ^Context $stats)
        grep -o 'kmalloc: call_site=bdi_alloc_wb_ctx[+].* bytes_req=[0-9]*' $trace/trace
        echo queued $(grep -c 'writeback_queue: .*reason=sync' $trace/trace)
    """
    said = run(debug_kernel, script, fs="ext4", contexts=CONTEXTS, affinity="rotor")
    assert re.findall(r"exist (\d+)", said) == [str(CONTEXTS)]
    # Context 0 is there from the start, and the mount's own inodes may have made another.
    sizes = [int(size) for size in re.findall(r"bytes_req=(\d+)", said)]
    assert 1 <= len(sizes) < CONTEXTS, said
    assert max(sizes) <= 2 * STRUCTURE_BYTES
    assert re.findall(r"queued (\d+)", said) == [str(CONTEXTS)]


def test_cgroups_that_a_user_was_given(debug_kernel: Kernel) -> None:
    # Without a delegated cgroup there are none to make; in one, there are as many as were allowed.
    groups = 4
    script = f"""
        stats={STATS}
        trace=/sys/kernel/tracing
        {AS_NOBODY}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        cd /sys/fs/cgroup
        echo '+memory +io' > cgroup.subtree_control
        as_nobody 'mkdir own' 2> /dev/null && exit 1
        mkdir own
        chown 65534 own own/cgroup.procs own/cgroup.subtree_control
        echo {groups} > own/cgroup.max.descendants
        echo 30000 > $trace/buffer_size_kb
        echo 1 > $trace/events/kmem/kmalloc/enable
        (echo 0 > own/cgroup.procs; exec {NOBODY} sh -ec '
            cd own
            mkdir $(seq {groups})
            echo 0 > 1/cgroup.procs
            echo +memory > cgroup.subtree_control
            for group in $(seq {groups}); do
                (echo 0 > $group/cgroup.procs
                 for file in $(seq 12); do echo data > $PWB_MNT/$group-$file; done)
            done
        ') || exit 1
        echo 0 > $trace/events/kmem/kmalloc/enable
        as_nobody 'mkdir own/one-more' 2> /dev/null && exit 1
        grep -A 1 WbCgIno $(dirname $stats)/wb_stats
        grep -Eo 'kmalloc: call_site=(cgwb_create_in_ctx|wb_in_ctx)[+].* bytes_req=[0-9]*' $trace/trace
    """
    said = run(debug_kernel, script, fs="ext4", contexts=CONTEXTS, affinity="rotor")
    blocks = re.findall(r"WbCgIno: +(\d+)\nWbContext: +(\d+)", said)
    assert len(blocks) == len(set(blocks)) == (1 + groups) * CONTEXTS, said
    sizes = [int(size) for size in re.findall(r"bytes_req=(\d+)", said)]
    # The writeback of a cgroup in context 0 is stock's.
    assert len(sizes) == groups * (CONTEXTS - 1), said
    assert max(sizes) <= 2 * STRUCTURE_BYTES


def test_flushers_at_work(debug_kernel: Kernel) -> None:
    # On a device that has its submitters sleep, so that all are at work at once.
    [most, bound] = load(
        debug_kernel,
        look="count_up $(cat /proc/[0-9]*/comm 2> /dev/null | grep -c '+flush-')",
        seen="test $most -gt 1",
        after="echo $most; cat /sys/devices/virtual/workqueue/writeback/max_active",
        fs="ext4",
        device="waiting",
        contexts=CONTEXTS,
        workers=WORKERS,
        affinity="rotor",
    )
    assert 1 < most <= CONTEXTS * WORKERS
    assert bound == 1024


def test_passes_of_xfs(debug_kernel: Kernel) -> None:
    # Where an administrator has switched a mode on, a user's writes are passes in workers' queues.
    queues = "/sys/kernel/debug/xfs/$(basename $PWB_DEV)/writeback"
    [most, passes] = load(
        debug_kernel,
        look=f"for out in $(awk '/^worker/ {{print $6}}' {queues}); do count_up $out; done",
        seen=(
            "echo generic > /sys/fs/xfs/$(basename $PWB_DEV)/writeback/overwrite; "
            "echo generic > /sys/fs/xfs/$(basename $PWB_DEV)/writeback/delalloc; test $most -gt 0"
        ),
        after=f"echo $most; awk '/^worker/ {{sum += $4}} END {{print sum}}' {queues}",
        fs="xfs",
        device="waiting",
        contexts=CONTEXTS,
        affinity="rotor",
    )
    assert 0 < most <= 2 * CONTEXTS
    assert passes > 0


def test_number_that_the_kernel_chooses(debug_kernel: Kernel) -> None:
    [is_auto, cpus, most, contexts] = load(
        debug_kernel,
        look="count_up $(grep -o '[0-9]*' $PWB_BDI/nwritebacks)",
        seen="true",
        after="grep -c '^auto (' $PWB_BDI/nwritebacks; nproc; echo $most; grep -c ^Context $stats",
        fs="ext4",
        device="waiting",
        contexts="auto",
        affinity="rotor",
    )
    assert is_auto == 1
    assert 1 <= most <= cpus
    assert contexts <= cpus


def test_wbctl_tells_a_user_what_is_missing(debug_kernel: Kernel, tmp_path: Path) -> None:
    script = f"""
        install -m 755 {make(tmp_path)} /run/wbctl
        {AS_NOBODY}
        for command in 'set $PWB_DEV contexts=2' 'set $PWB_MNT affinity=ino' 'contexts $PWB_MNT'; do
            as_nobody "/run/wbctl $command"; echo $?
        done
        touch $PWB_MNT/of-root
        as_nobody "/run/wbctl stream get $PWB_MNT/of-root"
        as_nobody "/run/wbctl stream set $PWB_MNT/of-root 1"; echo $?
        as_nobody "cd $PWB_MNT; : > own; exec 3< own; /run/wbctl stream set own 1; /run/wbctl stream get own"
        cat $PWB_BDI/nwritebacks $PWB_BDI/wb_affinity
    """
    lines = run(debug_kernel, script, fs="xfs", contexts=CONTEXTS).splitlines()
    refused = [line for line in lines if line.startswith("wbctl: ")]
    assert [re.sub(r"/[^ ]*/", "", line) for line in refused] == [
        "wbctl: cannot write nwritebacks (Permission denied): run wbctl as root",
        "wbctl: cannot write wb_affinity (Permission denied): run wbctl as root",
        "wbctl: cannot read stats in debugfs (Permission denied): run wbctl as root",
        "wbctl: cannot open 'of-root' (Permission denied): give a file that you may write",
    ]
    others = [line for line in lines if line not in refused]
    assert others == ["1", "1", "1", "0", "1", "1", str(CONTEXTS), "[fs] ino rotor least-loaded"]


def test_root_of_a_container_sets_what_it_can_write(debug_kernel: Kernel) -> None:
    # It needs no capability, for the files are its own: a container's /sys has to be read-only.
    script = """
        weak() { setpriv --bounding-set=-all --inh-caps=-all sh -c "$1"; }
        weak 'echo 2 > $PWB_BDI/nwritebacks' || exit 1
        cat $PWB_BDI/nwritebacks
        unshare -m sh -ec 'mount -o remount,bind,ro /sys; exec setpriv --bounding-set=-all --inh-caps=-all \\
            sh -c "echo 1 > $PWB_BDI/nwritebacks"' 2> /dev/null && exit 1
        cat $PWB_BDI/nwritebacks
    """
    assert run(debug_kernel, script, contexts=CONTEXTS).split() == ["2", "2"]
