# SPDX-License-Identifier: GPL-2.0
"""What happens when one task gets in between two steps of another: with test points, on a debug kernel.

A test point, kernel/mm/tests/bdi_wb_test_point.c, holds a task at a named place. Nothing depends on time.
"""

from __future__ import annotations

import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import foreign
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

PROGRAM = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m"]
TWO_CONTEXTS = {"nwritebacks": "2", "wb_affinity": "ino"}


@pytest.fixture(params=["debug_kernel", "smp_debug_kernel"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    kernel = request.getfixturevalue(request.param)
    assert isinstance(kernel, Kernel)
    return kernel


def test_cgroup_switch_during_a_move(kernel: Kernel) -> None:
    # The inode has left context 1 and is not yet in context 0 when it gets another cgroup.
    command = [*PROGRAM, "tests.guest.switch_during_move"]
    output_of(kernel, command, fs="xfs", settings=TWO_CONTEXTS)


@pytest.mark.parametrize("way", ["written", "unwritten"])
def test_inode_is_evicted_during_a_move(kernel: Kernel, way: str) -> None:
    # It has left context 1 and must not come to context 0 any more.
    command = [*PROGRAM, "tests.guest.evict_during_move", way]
    output_of(kernel, command, fs="xfs", settings=TWO_CONTEXTS)


def test_no_inode_moves_during_a_sync(kernel: Kernel) -> None:
    # A sync asks one context after the other, and would miss a dirty inode that goes from the one that it has
    # yet to ask to one that it has asked.
    command = [*PROGRAM, "tests.guest.sync_interleavings", "inodes"]
    output_of(kernel, command, fs="xfs", settings=TWO_CONTEXTS)


def test_a_sync_waits_for_what_a_worker_has_in_hand(kernel: Kernel) -> None:
    # An inode in a worker's hand is on no list, so what looks through the lists beside it would miss it.
    command = [*PROGRAM, "tests.guest.sync_interleavings", "workers"]
    output_of(kernel, command, fs="xfs", settings={**TWO_CONTEXTS, "wb_workers": "4"})


def test_nobody_waits_for_exclusive_work(kernel: Kernel) -> None:
    # While a sync has the context for itself, throttled writers wake its other workers again and again, also
    # once another sync is queued. None may sleep until the sync ends: that takes as long as the device likes,
    # and one may be the rescuer.
    script = """
        trace=/sys/kernel/tracing
        point=/sys/kernel/debug/wb_test_point
        echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
        echo $((1 << 20)) > /proc/sys/vm/dirty_background_bytes
        echo exclusive > $point
        dd if=/dev/zero of=$PWB_MNT/0 bs=64k count=4 2>/dev/null
        sync -f $PWB_MNT &
        sync=$!
        until grep -q reached $point; do sleep 0.1; done
        echo 1 > $trace/events/writeback/writeback_queue/enable
        echo 1 > $trace/events/writeback/writeback_wake_background/enable
        nobody_waits() {
            woken=$(grep -c wake_background: $trace/trace)
            until test $(grep -c wake_background: $trace/trace) -gt $((woken + 20)); do
                if cat /proc/[0-9]*/stat 2>/dev/null | grep '(kworker[^)]*flush[^)]*) D'; then return 1; fi
                sleep 0.1
            done
        }
        queued() {
            sync -f $PWB_MNT &
            sync="$sync $!"
            until grep -q writeback_queue: $trace/trace; do sleep 0.1; done
        }
        for file in $(seq 8); do
            while dd if=/dev/zero of=$PWB_MNT/$file bs=64k count=32 conv=notrunc; do :; done 2>/dev/null &
            writers="$writers $!"
        done
        nobody_waits && queued && nobody_waits
        found=$?
        echo > $point
        kill $writers; wait $sync $writers 2>/dev/null
        exit $found
    """
    output_of(kernel, script, fs="ext4", settings={"nwritebacks": "1", "wb_workers": "4"})


def test_foreign_flush_is_not_exclusive(debug_kernel: Kernel) -> None:
    # The memory controller has pages of a cgroup in files of another one written, and does not wait:
    # other workers go on.
    point = "/sys/kernel/debug/wb_test_point"
    script = foreign.dirtied(
        before=f"echo 1 > $trace/events/writeback/writeback_written/enable; echo exclusive > {point}",
        until=f"grep -q reason=foreign_flush $trace/trace || grep -q reached {point}",
    )
    script += f"""
        found=$(cat {point})
        echo > {point}
        echo "found: $found"
    """
    settings = {"nwritebacks": "1", "wb_workers": "4"}
    report = output_of(debug_kernel, script, fs="ext4", settings=settings)
    assert report.splitlines()[-1] == "found: exclusive"
