# SPDX-License-Identifier: GPL-2.0
"""The number of writeback contexts changes under load, in a running debug kernel."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from tests.guest.marks import long
from tests.guest.output import output_of
from tests.tried import Tried

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
SECONDS = 5


def change_under_load(kernel: Kernel, fs: str, seconds: int, tried: Tried) -> None:
    """Change the number of contexts under load for so long, and compare every byte."""
    report = output_of(kernel, [sys.executable, str(HERE / "resize.py"), fs, str(seconds)], fs="none")
    assert "every byte is as written" in report
    changes = re.search(r"^resizes: (\d+), ", report, re.MULTILINE)
    assert changes, report
    tried(changes=int(changes[1]))


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs", "f2fs-compressed")])
def test_every_byte_arrives_while_contexts_change(debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    change_under_load(debug_kernel, fs, SECONDS, tried)


@pytest.mark.parametrize("fs", long("xfs", "ext4", "f2fs"))
def test_every_byte_arrives_after_a_minute_of_changes(
    uml_parallel_kernel: Kernel, tried: Tried, fs: str
) -> None:
    change_under_load(uml_parallel_kernel, fs, 60, tried)


def test_device_goes_away_while_contexts_change(debug_kernel: Kernel, tried: Tried) -> None:
    # The writers and the resizer end when the device is gone.
    script = """
        echo 5 > /proc/sys/vm/dirty_writeback_centisecs
        echo 5 > /proc/sys/vm/dirty_expire_centisecs
        m=$(mktemp -d)
        for round in 1 2 3 4 5; do
            # By the files' place all of them would be in one context.
            echo rotor > $PWB_BDI/wb_affinity && echo 8 > $PWB_BDI/nwritebacks || exit 1
            mkfs.xfs -q -f $PWB_DEV && mount -t xfs $PWB_DEV $m || exit 1
            for file in a b c d; do dd if=/dev/zero of=$m/$file bs=1M count=4 2>/dev/null || exit 1; done
            test $(grep -c ^Context /sys/kernel/debug/bdi/$(basename $PWB_BDI)/stats) -gt 1 || exit 1
            for file in a b c d; do
                while dd if=/dev/zero of=$m/$file bs=64k count=64 conv=notrunc; do :; done 2>/dev/null &
            done
            echo 4 > $PWB_BDI/wb_workers || exit 1
            while echo 8 > $PWB_BDI/nwritebacks && echo 1 > $PWB_BDI/nwritebacks; do :; done 2>/dev/null &
            sleep 0.2
            for device in /sys/kernel/config/nullb/*/power; do echo 0 > $device; done
            wait
            test ! -e $PWB_BDI || exit 1
            umount $m
            for device in /sys/kernel/config/nullb/*/power; do echo 1 > $device; done
        done
        echo "the device went away $round times"
    """
    assert "went away 5 times" in output_of(debug_kernel, script, fs="none")
    tried(rounds=5)
