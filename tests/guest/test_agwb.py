# SPDX-License-Identifier: GPL-2.0
"""AG-aware writeback of XFS, in a running debug kernel."""

from __future__ import annotations

import re
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import agwb_cut
from tests.guest.agwb import CASES, CHANGING, MODES
from tests.guest.agwb_cgroups import LIMITS
from tests.guest.marks import long
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

SETTINGS = "cd /sys/fs/xfs/*/writeback; counters=$(echo /sys/kernel/debug/xfs/*/writeback)"


def report_of(kernel: Kernel, module: str, *arguments: object) -> str:
    """Run one of our modules in the guest, on devices that it makes, and return what it printed."""
    words = " ".join(map(str, arguments))
    script = f"cd {REPO} && {sys.executable} -m tests.guest.{module} {words}"
    return output_of(kernel, script, fs="none", device_size_mib=16)


@pytest.mark.parametrize("mode", [*long(*MODES), CHANGING])
def test_every_case_in_every_mode(debug_kernel: Kernel, mode: str) -> None:
    # All cases of a mode share a boot; each has a filesystem of its own.
    report = report_of(debug_kernel, "agwb", mode)
    assert re.findall(r"^(\w+): as it should be$", report, re.MULTILINE) == [case.__name__ for case in CASES]


@pytest.mark.parametrize("mode", [*long(*MODES[:-1]), MODES[-1]])
def test_power_cut_leaves_no_hole_in_a_file_that_grows(debug_kernel: Kernel, mode: str) -> None:
    report = report_of(debug_kernel, "agwb_cut", mode)
    cuts = re.findall(r"^from (\d+) by (\d+): \d+ pages$", report, re.MULTILINE)
    assert cuts == [(str(before), str(mark)) for before in agwb_cut.BEFORE for mark in agwb_cut.MARKS]


@pytest.mark.parametrize("contexts", [*long(1), 8])
def test_no_cgroup_waits_for_the_budget_of_another(debug_kernel: Kernel, contexts: int) -> None:
    report = report_of(debug_kernel, "agwb_cgroups", contexts)
    done = re.findall(r"^(\S+ \w+): as it should be$", report, re.MULTILINE)
    assert done == [f"{mode} {limit.__name__}" for mode in MODES for limit in LIMITS]


@pytest.mark.long
def test_flusher_counts_what_was_written_and_hands_over_little_at_a_time(debug_kernel: Kernel) -> None:
    report = report_of(debug_kernel, "agwb_flusher")
    assert re.findall(r"^(\S+): as it should be$", report, re.MULTILINE) == list(MODES)


def test_flusher_does_not_write_beside_workers_when_a_mode_goes_off(debug_kernel: Kernel) -> None:
    report_of(debug_kernel, "agwb_off")


def test_what_no_worker_comes_to_is_taken_back(debug_kernel: Kernel) -> None:
    report_of(debug_kernel, "agwb_taken_back")


def test_workers_grow_with_the_filesystem(debug_kernel: Kernel) -> None:
    # A file of as many stretches as there are workers afterwards.
    script = """
        export TEST_DIR=1 TEST_DEV=1 QA_CHECK_FS=1 LC_ALL=C
        mkfs.xfs -q -f -d agcount=4,size=128m $PWB_DEV && m=$(mktemp -d) && mount $PWB_DEV $m || exit 1
        cd /sys/fs/xfs/*/writeback; counters=$(echo /sys/kernel/debug/xfs/*/writeback)
        echo generic > overwrite
        grep -c ^worker $counters
        xfs_growfs $m > /dev/null || exit 1
        grep -c ^worker $counters
        dd if=/dev/zero of=$m/file bs=1M count=64 conv=fsync 2>/dev/null
        echo $((1 << 20)) > /proc/sys/vm/dirty_background_bytes
        echo 5 > /proc/sys/vm/dirty_writeback_centisecs
        dd if=/dev/zero of=$m/file bs=1M count=64 conv=notrunc 2>/dev/null
        until test $(awk '/^worker/ {passes += ($4 > 0)} END {print passes}' $counters) -gt 4; do
            dd if=/dev/zero of=$m/file bs=1M count=64 conv=notrunc 2>/dev/null
        done
        umount $m && xfs_repair -n $PWB_DEV >/tmp/said 2>&1 && echo sound || cat /tmp/said
    """
    assert output_of(debug_kernel, script, fs="none", device_size_mib=512).split() == ["4", "16", "sound"]


def test_modes_are_shown_and_set(debug_kernel: Kernel) -> None:
    script = f"""{SETTINGS}
        cat overwrite delalloc $counters
        echo ag-hint > overwrite && echo rotor > delalloc && cat overwrite delalloc
        for value in on AG-HINT '' 'ag-hint rotor'; do echo "$value" > overwrite && exit 1; done 2>/dev/null
        cat overwrite
        grep -c ^worker $counters
    """
    assert output_of(debug_kernel, script).splitlines() == [
        *["[off] rotor generic ag-hint"] * 2,
        "off rotor generic [ag-hint]",
        "off [rotor] generic ag-hint",
        "off rotor generic [ag-hint]",
        "4",
    ]


def test_what_is_waited_for_is_not_handed_over(debug_kernel: Kernel) -> None:
    # No flusher is let loose: what reaches the device does so by fsync, sync and O_SYNC.
    script = f"""{SETTINGS}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo $((1 << 30)) > /proc/sys/vm/dirty_background_bytes
        for mode in ag-hint rotor generic; do
            echo $mode > overwrite; echo $mode > delalloc
            for round in 1 2; do
                dd if=/dev/zero of=$PWB_MNT/a bs=1M count=16 conv=notrunc,fsync
                dd if=/dev/zero of=$PWB_MNT/b bs=1M count=16 conv=notrunc; sync
                dd if=/dev/zero of=$PWB_MNT/c bs=1M count=16 conv=notrunc oflag=sync
            done 2>/dev/null
        done
        awk '/^worker/ {{passes += $4}} END {{print passes + 0}}' $counters
    """
    assert output_of(debug_kernel, script).split() == ["0"]


def test_memory_pressure_drops_hints_first(debug_kernel: Kernel) -> None:
    # drop_caches = 2 runs the shrinkers; dirty pages stay.
    script = f"""{SETTINGS}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo $((1 << 30)) > /proc/sys/vm/dirty_background_bytes
        echo ag-hint > overwrite; echo ag-hint > delalloc
        dd if=/dev/urandom of=$PWB_MNT/a bs=4k count=4096 2>/dev/null
        entries() {{ awk '/^hints/ {{print $3}}' $counters; }}
        entries
        echo 2 > /proc/sys/vm/drop_caches
        entries
        cksum < $PWB_MNT/a > /tmp/before
        sync; echo 3 > /proc/sys/vm/drop_caches
        cksum < $PWB_MNT/a | cmp - /tmp/before && echo same
    """
    made, left, same = output_of(debug_kernel, script).split()
    assert int(made) > 0
    assert (left, same) == ("0", "same")


def test_clean_file_has_no_hints(debug_kernel: Kernel) -> None:
    # Not truncated first: when such a file is closed, XFS has it written at once.
    script = f"""{SETTINGS}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo $((1 << 30)) > /proc/sys/vm/dirty_background_bytes
        echo ag-hint > overwrite; echo ag-hint > delalloc
        entries() {{ awk '/^hints/ {{print $3}}' $counters; }}
        write() {{
            dd if=/dev/zero of=$PWB_MNT/a bs=4k count=512 conv=notrunc 2>/dev/null
            test $(entries) -gt 0 || echo none
        }}
        write; sync; entries
        write; truncate -s 0 $PWB_MNT/a; entries
        write; rm $PWB_MNT/a; sync; entries
        write; echo off > overwrite; echo off > delalloc; entries
    """
    assert output_of(debug_kernel, script).split() == ["0"] * 4
