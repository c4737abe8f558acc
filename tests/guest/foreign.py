# SPDX-License-Identifier: GPL-2.0
"""A cgroup that dirties the files of another one until the memory controller has them written."""

from __future__ import annotations


def dirtied(*, before: str, until: str) -> str:
    """Return shell lines: a cgroup, ``owner``, has eight small files, and one near its limit dirties them.

    Args:
        before: lines for the time when the files are clean, and nothing else is written.
        until: the command that succeeds once it is enough; it is given the trace as ``$trace/trace``.
    """
    return f"""
        trace=/sys/kernel/tracing
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control
        mkdir owner writer
        echo 64M > writer/memory.max
        (echo 0 > owner/cgroup.procs
         for i in $(seq 8); do echo data > $PWB_MNT/$i; done)
        sync -f $PWB_MNT
        {before}
        (echo 0 > writer/cgroup.procs
         until {until}; do
             for i in $(seq 8); do dd if=/dev/zero of=$PWB_MNT/$i bs=1M seek=1 count=2 conv=notrunc; done
             dd if=/dev/zero of=$PWB_MNT/own bs=1M count=4
         done) 2>/dev/null
    """
