# SPDX-License-Identifier: GPL-2.0
"""No two CPUs race for data in our code, nor in a function of stock that it has been woven into.

For ``make test-all``: on the kernel with KCSAN, which is built for this alone. KCSAN makes an access wait now
and then, and looks whether another CPU comes to the same place meanwhile, one of them to write. Reported is
what races with both sides in a function of a file that we wrote or changed: what the rest of the kernel does
is not ours to judge.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.tree.build import Kernel, build_dir
from lab.tree.source import Source
from tests.built import built
from tests.guest.output import output_of
from tests.touched import ours, touched
from tests.tried import Tried

pytestmark = pytest.mark.guest

CPUS = 8
HERE = Path(__file__).parent
SYNC = f"{sys.executable} {HERE / 'syncproof.py'}"
WORKERS = f"echo 1 > $PWB_BDI/nwritebacks && echo 8 > $PWB_BDI/wb_workers && {SYNC}"
LOADS = {
    "resize-xfs": f"{sys.executable} {HERE / 'resize.py'} xfs 2",
    "resize-ext4": f"{sys.executable} {HERE / 'resize.py'} ext4 2",
    "resize-f2fs": f"{sys.executable} {HERE / 'resize.py'} f2fs 2",
    "agwb": f"cd {HERE.parents[1]} && {sys.executable} -m tests.guest.agwb changing",
    "cgroups-xfs": f"cd {HERE.parents[1]} && {sys.executable} -m tests.guest.cgroups xfs 2",
    "cgroups-ext4": f"cd {HERE.parents[1]} && {sys.executable} -m tests.guest.cgroups ext4 2",
    "sync-xfs": f"echo rotor > $PWB_BDI/wb_affinity && {SYNC} xfs 2 --quick --resize",
    "workers-xfs": f"{WORKERS} xfs 2 --quick",
    "workers-f2fs": f"{WORKERS} f2fs 2 --quick",
}

# What stock itself reads and writes without a lock. Which cgroup writes most to an inode is a guess, changed
# in fsync() and in the flusher; inode_do_switch_wbs() says that it does not matter. Whoever waits for
# writeback stamps the time for the flusher, which wakes it now and then to say that it waits; it touches
# nothing else. Statistics in debugfs print a writeback's state (wb->state) while its flusher changes it. F2FS
# sets flags of a checkpoint that flushers ask for errors (f2fs_cp_error()), and XFS counts in
# xfs_bmapi_read() what each CPU reads by a plain addition, though its task may lose the CPU.

UNLOCKED_IN_STOCK = {
    "wbc_attach_and_unlock_inode",
    "wbc_detach_inode",
    "wb_wait_for_completion_cb",
    "bdi_debug_stats_show",
    "cgwb_debug_stats_show",
    "f2fs_write_checkpoint",
    "xfs_bmapi_read",
}
# So does a throttled writer: it notes when it went to sleep (last_bdp_sleep), and whether the limit is
# exceeded (dirty_exceeded), by which others look sooner whether they have to pause. These loads throttle
# theirs, by vm.dirty_bytes: its handler sets dirty_limit, of which flushers take the size of their chunks.
THROTTLED = {"resize-xfs", "resize-ext4", "resize-f2fs"}
UNLOCKED_WHERE_THROTTLED = {
    "balance_dirty_pages",
    "balance_dirty_pages_ratelimited_flags",
    "dirty_bytes_handler",
}


@pytest.fixture(scope="module")
def kcsan_kernel(kernel_source: Source) -> Kernel:
    return built("kcsan", kernel_source, "smp")


def functions(kernel: Kernel, source: Source, load: str) -> list[str]:
    """Return the functions of all files that are ours or have been changed by us, to look at under a load."""
    tree = build_dir(kernel.flavour, source, kernel.machine) / "tree" / "obj"
    objects = [name for name in [*ours(), *touched(source)] if (tree / name).exists()]
    command = ["nm", "--defined-only", *objects]
    said = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    left_out = UNLOCKED_IN_STOCK | (UNLOCKED_WHERE_THROTTLED if load in THROTTLED else set())
    return sorted({*re.findall(r" [tT] (\w+)$", said, re.MULTILINE)} - left_out)


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("load", LOADS)
def test_no_data_race(
    kcsan_kernel: Kernel, kernel_source: Source, tried: Tried, tmp_path: Path, load: str
) -> None:
    names = tmp_path / "functions"
    names.write_text("".join(f"!{name}\n" for name in functions(kcsan_kernel, kernel_source, load)))
    script = f"""
        while read name; do echo "$name"; done < {names} > /sys/kernel/debug/kcsan 2>/dev/null
        echo whitelist > /sys/kernel/debug/kcsan && echo on > /sys/kernel/debug/kcsan || exit 1
        {LOADS[load]} > /tmp/said 2>&1 || {{ cat /tmp/said; exit 1; }}
        echo off > /sys/kernel/debug/kcsan
        cat /sys/kernel/debug/kcsan
    """
    # The guest fails the test if there was a report.
    said = output_of(kcsan_kernel, script, fs="none", cpus=CPUS, clock="virtual", timeout_s=5400)
    [watched] = re.findall(r"^setup_watchpoints: (\d+)$", said, re.MULTILINE)
    assert int(watched) > 1000
    assert "whitelisted functions" in said
    tried(watchpoints=int(watched))
