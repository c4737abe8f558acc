# SPDX-License-Identifier: GPL-2.0
"""The kernels for the machine of many CPUs, running: free of virtual time, which only measurements need."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from tests.guest.marks import long
from tests.guest.output import output_of

pytestmark = pytest.mark.guest
HERE = Path(__file__).parent


@pytest.mark.parametrize("flavour", ["stock", "parallel", *long("debug")])
def test_kernel_has_its_cpus_and_says_what_it_is(request: pytest.FixtureRequest, flavour: str) -> None:
    kernel: Kernel = request.getfixturevalue(f"smp_{flavour}_kernel")
    script = """
        nproc
        zcat /proc/config.gz | grep -Ec '^CONFIG_(PREEMPT|KASAN|PROVE_LOCKING)=y'
        ls $PWB_BDI | grep -c nwritebacks
        true
    """
    checks, contexts = {"stock": ("0", "0"), "parallel": ("0", "1"), "debug": ("3", "1")}[flavour]
    assert output_of(kernel, script, cpus=4).split() == ["4", checks, contexts]


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_every_byte_arrives_under_preemption(smp_debug_kernel: Kernel, fs: str) -> None:
    settings = {"nwritebacks": "4", "wb_affinity": "rotor", "wb_workers": "2"}
    command = [sys.executable, str(HERE / "compare.py"), fs]
    report = output_of(smp_debug_kernel, command, fs="none", cpus=4, settings=settings)
    assert "every byte is as written" in report


@pytest.mark.parametrize("fs", long("xfs", "ext4", "f2fs"))
def test_cpus_come_and_go_while_the_kernel_finds_the_number(smp_debug_kernel: Kernel, fs: str) -> None:
    # What each trial finds depends on speed; what it tries, and that no byte is lost, does not.
    script = """
        trace=/sys/kernel/tracing
        echo 1 > $trace/events/writeback_ctx/wb_ctx_auto/enable || exit 1
        echo $((8 << 20)) > /proc/sys/vm/dirty_bytes; echo $((4 << 20)) > /proc/sys/vm/dirty_background_bytes
        cpus() { for cpu in $2; do echo $1 > /sys/devices/system/cpu/cpu$cpu/online || exit 1; done; }
        since() { tac $trace/trace | sed "/part $1\\$/q" | tac | grep -o 'kept=.*'; }
        # Load until a trial is seen that is looked for.
        part() {
            echo "part $1" > $trace/trace_marker
            for round in $(seq 20); do
                fio --name=load --numjobs=4 --size=8m --rw=randwrite --bs=4k --verify=crc32c \\
                    --time_based --runtime=1s --group_reporting --minimal > /dev/null || exit 1
                since $1 | awk "$2" | grep -q yes && return
            done
            since $1
            exit 1
        }
        cd $PWB_MNT
        while cpus 0 "3 1 2" && sleep 0.1 && cpus 1 "2 1 3" && sleep 0.1; do :; done &
        part changing '/ nr=2 / {print "yes"}'
        kill $!; wait $! 2> /dev/null
        cpus 1 "1 2 3"; cpus 0 "1 2 3"
        part one '{split($1, kept, "="); split($3, nr, "=")} nr[2] <= kept[2] {n++}
                  END {if (n > 1) print "yes"}'
        since one > /tmp/one
        cpus 1 "1 2 3"
        part all '{split($1, kept, "="); split($3, nr, "=")} nr[2] > kept[2] {print "yes"}'
        cat /tmp/one
    """
    report = output_of(smp_debug_kernel, script, fs=fs, cpus=4, kernel_arguments=[])
    trials = [(int(kept), int(nr)) for kept, nr in re.findall(r"kept=(\d+) kept_rate=\d+ nr=(\d+) ", report)]
    # The one that had begun before the CPUs went may end, after some windows.
    begun = trials[0]
    after = list(itertools.dropwhile(lambda trial: trial == begun and trial[1] > trial[0], trials))
    assert len(after) > 1, report
    assert all(nr <= kept for kept, nr in after), report
