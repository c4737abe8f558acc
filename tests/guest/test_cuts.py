# SPDX-License-Identifier: GPL-2.0
"""Power cuts under a load that notes what it was promised, on the debug kernel: a few of ``./pwb cuts``."""

from __future__ import annotations

import pytest

from lab.proof import cuts
from lab.tree.build import Kernel
from tests.guest import output
from tests.guest.marks import long

pytestmark = pytest.mark.guest

SEED = 1000


# Stock F2FS loses something in one cut of forty, docs/proofs.md.
@pytest.mark.parametrize("fs", ["xfs", "ext4"])
@pytest.mark.parametrize("count", [3, *long(100)])
def test_what_was_promised_is_there_after_a_power_cut(debug_kernel: Kernel, fs: str, count: int) -> None:
    (job,) = cuts.jobs(debug_kernel, [fs], cpus=output.cpus, cuts=count, seed=SEED, per_boot=count)
    outcome = cuts.boot(job)
    assert outcome.lost == []
    assert outcome.promised > 100 * count


@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
def test_what_is_not_there_is_seen(debug_kernel: Kernel, fs: str) -> None:
    (job,) = cuts.jobs(debug_kernel, [fs], cpus=output.cpus, cuts=3, seed=SEED)
    assert cuts.boot(job, lie=True).lost
