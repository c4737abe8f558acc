# SPDX-License-Identifier: GPL-2.0
"""AG-aware writeback of XFS, in a running debug kernel."""

from __future__ import annotations

import re
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest.agwb import CASES, CHANGING, MODES
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

SETTINGS = "cd /sys/fs/xfs/*/writeback; counters=$(echo /sys/kernel/debug/xfs/*/writeback)"


@pytest.mark.parametrize("mode", [*MODES, CHANGING])
def test_every_case_in_every_mode(debug_kernel: Kernel, mode: str) -> None:
    # All cases of a mode share a boot; each has a filesystem of its own.
    script = f"cd {REPO} && {sys.executable} -m tests.guest.agwb {mode}"
    report = output_of(debug_kernel, script, fs="none", device_size_mib=16, timeout_s=600)
    assert re.findall(r"^(\w+): as it should be$", report, re.MULTILINE) == [case.__name__ for case in CASES]


def test_modes_are_shown_and_set(debug_kernel: Kernel) -> None:
    script = f"""{SETTINGS}
        cat overwrite delalloc $counters
        echo ag-hint > overwrite && echo rotor > delalloc && cat overwrite delalloc
        for value in on AG-HINT '' 'ag-hint rotor'; do echo "$value" > overwrite && exit 1; done 2>/dev/null
        cat overwrite
        grep -c ^worker $counters
    """
    assert output_of(debug_kernel, script).splitlines() == [
        *["[off] ag-hint rotor generic"] * 2,
        "off [ag-hint] rotor generic",
        "off ag-hint [rotor] generic",
        "off [ag-hint] rotor generic",
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
    script = f"""{SETTINGS}
        echo 0 > /proc/sys/vm/dirty_writeback_centisecs
        echo $((1 << 30)) > /proc/sys/vm/dirty_background_bytes
        echo ag-hint > overwrite; echo ag-hint > delalloc
        entries() {{ awk '/^hints/ {{print $3}}' $counters; }}
        write() {{ dd if=/dev/zero of=$PWB_MNT/a bs=4k count=512 2>/dev/null; }}
        write; sync; entries
        write; truncate -s 0 $PWB_MNT/a; entries
        write; rm $PWB_MNT/a; sync; entries
        write; echo off > overwrite; echo off > delalloc; entries
    """
    assert output_of(debug_kernel, script).split() == ["0"] * 4
