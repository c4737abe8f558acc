# SPDX-License-Identifier: GPL-2.0
"""CPUs that stall in our code, on the debug kernel in virtual time: a few of ``./pwb schedules``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.proof import schedules
from lab.tree.build import Kernel
from lab.tree.source import Source

pytestmark = [pytest.mark.guest, pytest.mark.long]

CPUS = 4
SEED = 3


@pytest.fixture
def jobs(smp_debug_kernel: Kernel, kernel_source: Source) -> Iterator[dict[str, schedules.Job]]:
    with schedules.jobs(
        smp_debug_kernel, kernel_source, list(schedules.LOADS), cpus=CPUS, seeds=[SEED]
    ) as wanted:
        yield {job.load: job for job in wanted}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("load", schedules.LOADS)
def test_nothing_breaks_while_cpus_stall(jobs: dict[str, schedules.Job], load: str) -> None:
    outcome = schedules.boot(jobs[load])
    assert outcome.found == ""
    assert outcome.stalls > 100


@pytest.mark.timeout(3600)
def test_no_cpu_stalls_unless_told_to(jobs: dict[str, schedules.Job]) -> None:
    outcome = schedules.boot(jobs["cgroups"], stalls=False)
    assert (outcome.found, outcome.stalls) == ("", 0)
