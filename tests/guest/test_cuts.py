# SPDX-License-Identifier: GPL-2.0
"""Power cuts under a load that notes what it was promised, on the debug kernel: a few of ``./pwb cuts``."""

from __future__ import annotations

import json
import re
import sys

import pytest

from lab.proof import cuts
from lab.tree.build import Kernel
from lab.util.errors import GuestError
from lab.util.paths import REPO
from tests.guest import freeze_cut, output
from tests.guest.cuts import MAKE
from tests.guest.marks import long

pytestmark = pytest.mark.guest

SEED = 1000
# What filesystems may refuse, and these do not.
TAKEN = {"writeback of a cgroup", "sync_file_range", "dontcache", "reserve", "collapse", "insert"}
TAKEN_BY_XFS = {"stream", "copy", "unshare"}


# F2FS loses something in one cut of twenty, with stock as with the change: docs/power-cuts.md.
@pytest.mark.parametrize("fs", ["xfs", "ext4"])
@pytest.mark.parametrize("count", [3, *long(40)])
def test_what_was_promised_is_there_after_a_power_cut(debug_kernel: Kernel, fs: str, count: int) -> None:
    (job,) = cuts.jobs(debug_kernel, [fs], cpus=output.cpus, cuts=count, seed=SEED, per_boot=count)
    outcome = cuts.boot(job)
    assert outcome.lost == []
    assert outcome.promised > 100 * count
    assert ("stream" in outcome.taken) == (fs == "xfs")
    assert outcome.taken["writeback of a cgroup"] > 0
    # What three cuts have, and with which modes, is up to the seed and the machine.
    if count > 10:
        assert set(outcome.taken) == TAKEN | (TAKEN_BY_XFS if fs == "xfs" else set())
        assert (outcome.passes > 0) == (fs == "xfs")


@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
def test_what_is_not_there_is_seen(debug_kernel: Kernel, fs: str) -> None:
    (job,) = cuts.jobs(debug_kernel, [fs], cpus=output.cpus, cuts=3, seed=SEED)
    outcome = cuts.boot(job, lie=True)
    assert outcome.promised > 0
    # A guest that died has found nothing: what that says is no JSON.
    assert outcome.lost
    assert all("cut" in json.loads(text) for text in outcome.lost)


# As long as this holds, cuts.py has to ask for a flush after syncfs(). On F2FS it depends on the clock: a
# write within the tick of the one before leaves no new time of the file to be synced, and so no flush.
@pytest.mark.parametrize(("fs", "is_left"), [("xfs", True), ("ext4", False)])
def test_syncfs_leaves_data_in_the_cache_of_the_device(debug_kernel: Kernel, fs: str, is_left: bool) -> None:
    assert (lost_after_syncfs(debug_kernel, fs) > 0) == is_left


@pytest.mark.parametrize("fs", MAKE)
def test_flush_after_syncfs_leaves_nothing_there(debug_kernel: Kernel, fs: str) -> None:
    assert lost_after_syncfs(debug_kernel, fs, "--flush") == 0


@pytest.mark.parametrize("fs", MAKE)
def test_nothing_is_lost_of_a_filesystem_that_is_still(debug_kernel: Kernel, fs: str) -> None:
    assert set(lost_when_still(debug_kernel, fs).values()) == {0}


@pytest.mark.parametrize("fs", MAKE)
def test_what_is_lost_of_one_that_is_not_still_is_seen(debug_kernel: Kernel, fs: str) -> None:
    assert all(lost_when_still(debug_kernel, fs, "--lie").values())


# As long as this holds, cuts.py can find the writes of one file in another one that shared its blocks.
def test_cut_brings_back_blocks_that_were_shared(debug_kernel: Kernel) -> None:
    script = f"cd {REPO} && {sys.executable} -m tests.guest.shared_cut"
    report = output.output_of(debug_kernel, script, fs="none", device_size_mib=16)
    assert int(report.split()[0]) > 0


# As long as this holds, cuts.py can find what was written to a block where the block was before it was moved.
@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_cut_forgets_that_blocks_were_moved_but_not_what_was_written_there(
    debug_kernel: Kernel, fs: str
) -> None:
    script = f"cd {REPO} && {sys.executable} -m tests.guest.moved_cut {fs}"
    report = output.output_of(debug_kernel, script, fs="none", device_size_mib=16)
    assert int(report.split()[0]) > 0


# As long as this holds, cuts.py has to take no such write to F2FS for a promise of the size.
@pytest.mark.parametrize(("fs", "is_lost"), [("f2fs", True), ("xfs", False), ("ext4", False)])
def test_size_that_a_direct_write_with_o_dsync_has_made_is_lost(
    debug_kernel: Kernel, fs: str, is_lost: bool
) -> None:
    script = f"cd {REPO} && {sys.executable} -m tests.guest.direct_cut {fs}"
    report = output.output_of(debug_kernel, script, fs="none", device_size_mib=16)
    assert (int(report.split()[0]) > 0) == is_lost


def test_torn_superblock_is_mended(debug_kernel: Kernel) -> None:
    script = f"cd {REPO} && {sys.executable} -m tests.guest.torn_superblock"
    report = output.output_of(debug_kernel, script, fs="none", device_size_mib=16)
    assert report.splitlines()[-1] == "as it should be"


# As long as this holds, cuts.py has to free blocks behind the end of a file.
def test_file_that_grows_over_blocks_behind_its_end_is_warned_of(debug_kernel: Kernel) -> None:
    script = f"cd {REPO} && {sys.executable} -m tests.guest.blocks_behind"
    with pytest.raises(GuestError, match="iomap_zero_range"):
        output.output_of(debug_kernel, script, fs="none", device_size_mib=16)
    assert "written" in output.output_of(debug_kernel, f"{script} --truncate", fs="none", device_size_mib=16)


def lost_when_still(kernel: Kernel, fs: str, *options: str) -> dict[str, int]:
    """Return for each way to make a filesystem still how many pages are lost by power cuts."""
    command = " ".join([sys.executable, "-m", "tests.guest.freeze_cut", fs, *options])
    report = output.output_of(kernel, f"cd {REPO} && {command}", fs="none", device_size_mib=16)
    lost = {way: int(count) for way, count in re.findall(r"^(\S+): (\d+) of \d+ pages lost$", report, re.M)}
    assert tuple(lost) == freeze_cut.WAYS
    return lost


def lost_after_syncfs(kernel: Kernel, fs: str, *options: str) -> int:
    """Return how many pages that syncfs() had written are lost by power cuts."""
    command = " ".join([sys.executable, "-m", "tests.guest.syncfs_cut", fs, *options])
    report = output.output_of(kernel, f"cd {REPO} && {command}", fs="none", device_size_mib=16)
    return int(report.split()[0])
