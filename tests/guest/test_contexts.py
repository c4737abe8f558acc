# SPDX-License-Identifier: GPL-2.0
"""Writeback contexts in a running debug kernel."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from lab import guest
from lab.build import Kernel

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
FILESYSTEMS = ["xfs", "ext4", "f2fs"]


def run(kernel: Kernel, script: str, *, fs: str = "xfs", contexts: int | None = None) -> str:
    """Run a shell script in the debug guest and return what it printed; a failing script fails the test."""
    output = io.StringIO()
    result = guest.run(
        kernel.path,
        ["sh", "-c", script],
        fs=fs,
        settings={} if contexts is None else {"nwritebacks": str(contexts)},
        timeout_s=240,
        stream=output,
    )
    assert result.status == 0, output.getvalue()
    return output.getvalue()


def test_kunit(debug_kernel: Kernel) -> None:
    suite = "/sys/kernel/debug/kunit/bdi_writeback_ctx"
    report = run(debug_kernel, f"cat {suite}/results", fs="none")
    assert "not ok" not in report, report
    assert "\nok 1 bdi_writeback_ctx" in "\n" + report, report


@pytest.mark.parametrize("contexts", [1, 2, 8])
@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_every_byte_arrives(debug_kernel: Kernel, fs: str, contexts: int) -> None:
    script = f"""
        {sys.executable} {HERE / "compare.py"} {fs} || exit 1
        test "$(cat $PWB_BDI/nwritebacks)" = {contexts}
    """
    assert "every byte is as written" in run(debug_kernel, script, fs="none", contexts=contexts)


def test_default_is_one_context_per_cpu(debug_kernel: Kernel) -> None:
    script = 'echo "$(cat $PWB_BDI/nwritebacks) $(nproc)"'
    contexts, cpus = run(debug_kernel, script).split()
    assert contexts == cpus


@pytest.mark.parametrize("value", ["0", "-1", "9", "two", "''"])
def test_bad_nwritebacks_is_refused(debug_kernel: Kernel, value: str) -> None:
    # Two CPUs: at most eight contexts.
    script = f"""
        echo 3 > $PWB_BDI/nwritebacks
        echo {value} > $PWB_BDI/nwritebacks && exit 1
        cat $PWB_BDI/nwritebacks
    """
    assert run(debug_kernel, script, fs="none").split()[-1] == "3"


def test_nwritebacks_is_busy_while_mounted(debug_kernel: Kernel) -> None:
    script = """
        mkfs.ext4 -q -F $PWB_DEV && mkdir /tmp/m && mount -t ext4 $PWB_DEV /tmp/m || exit 1
        echo 4 > $PWB_BDI/nwritebacks && exit 1
        cat $PWB_BDI/nwritebacks
        umount /tmp/m && echo 4 > $PWB_BDI/nwritebacks && cat $PWB_BDI/nwritebacks
    """
    mounted, unmounted = run(debug_kernel, script, fs="none", contexts=3).split()[-2:]
    assert (mounted, unmounted) == ("3", "4")


def test_only_mounted_devices_pay_for_contexts(debug_kernel: Kernel) -> None:
    script = """
        name=$(basename $PWB_BDI)
        grep -c WbCgIno /sys/kernel/debug/bdi/$name/wb_stats
        mkfs.ext4 -q -F $PWB_DEV && mkdir -p /tmp/m && mount -t ext4 $PWB_DEV /tmp/m
        grep -c WbCgIno /sys/kernel/debug/bdi/$name/wb_stats
        umount /tmp/m
    """
    before, mounted = run(debug_kernel, script, fs="none", contexts=5).split()
    assert (before, mounted) == ("1", "5")


def test_statistics_add_up_over_the_contexts(debug_kernel: Kernel) -> None:
    # Twelve dirty files on four contexts: the lists add up, and no page is counted twice.
    count = (
        "awk '/^b_(dirty|io|more_io):/ {inodes += $2} /^BdiReclaimable/ {kib = $2} END {print inodes, kib}' "
        "/sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats"
    )
    script = f"""
        echo 1000000 > /proc/sys/vm/dirty_writeback_centisecs
        for i in $(seq 12); do dd if=/dev/zero of=$PWB_MNT/f$i bs=64k count=1 2>/dev/null; done
        {count}
        sync
        {count}
    """
    dirty_inodes, dirty_kib, _, clean_kib = map(int, run(debug_kernel, script, fs="ext4", contexts=4).split())
    assert dirty_inodes >= 12
    assert 12 * 64 <= dirty_kib <= 12 * 64 * 2
    assert clean_kib == 0


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_cgroups_write_back_in_every_context(debug_kernel: Kernel, fs: str) -> None:
    # Groups come, write through all contexts, and go; their writebacks must not outlive them.
    script = """
        cd /sys/fs/cgroup && echo '+memory +io' > cgroup.subtree_control
        for round in 1 2 3; do
            mkdir group
            (echo 0 > group/cgroup.procs
             for i in $(seq 16); do dd if=/dev/zero of=$PWB_MNT/r$round-$i bs=64k count=4 2>/dev/null; done)
            rm -f $PWB_MNT/r$((round - 1))-*
            sync
            rmdir group
        done
        rm -f $PWB_MNT/r*
        sync
        echo 3 > /proc/sys/vm/drop_caches
    """
    run(debug_kernel, script, fs=fs, contexts=4)


def test_device_goes_away_below_dirty_files(debug_kernel: Kernel) -> None:
    script = """
        mkfs.xfs -q -f $PWB_DEV && mkdir /tmp/m && mount -t xfs $PWB_DEV /tmp/m || exit 1
        for file in a b c d; do dd if=/dev/zero of=/tmp/m/$file bs=1M count=4 2>/dev/null & done
        wait
        for device in /sys/kernel/config/nullb/*/power; do echo 0 > $device; done
        test ! -e $PWB_BDI || exit 1
        umount /tmp/m
    """
    run(debug_kernel, script, fs="none", contexts=8)
