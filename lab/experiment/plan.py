# SPDX-License-Identifier: GPL-2.0
"""What a run of a user's own fio job would boot, and how long that takes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.experiment import cluster, jobfile, schedule
from lab.experiment.bench import HERE, Where, check
from lab.experiment.scenario import Scenario
from lab.experiment.schedule import Boot
from lab.experiment.search import first_answer_first
from lab.machine import host
from lab.machine.hardware import QEMU_MIB, Hardware
from lab.util.progress import duration


class _Unfetched(Hardware):
    """A machine of which nothing is fetched yet."""

    def check(self) -> None:
        """Raise LabError unless the host has room for it."""
        host.check(host.Need(packages=False, memory_bytes=(self.mem_mib + QEMU_MIB) << 20))


def plan(job: Path, *, budget_min: float, where: Where = HERE, **settings: Any) -> str:
    """Say what a run would boot and how long it would take; nothing is fetched, built or booted.

    Args:
        job: as for :func:`lab.experiment.bench.run_job`, like those below.
        budget_min: minutes.
        where: where guests in virtual time run; a cluster is asked for its workers.
        settings: those that are left.

    Raises:
        LabError: bad input, as for run_job.
    """
    chosen = jobfile.scenario_of(job, **settings)
    check(chosen, job.resolve().parent, where, machine=_Unfetched)
    boots = first_answer_first(schedule.boots(chosen))
    count = _side_by_side(chosen, boots, where)
    lines = [f"{boot.label}: about {duration(boot.estimate_s)}" for boot in boots]
    whole_s = sum(boot.estimate_s for boot in boots) / count
    lines.append(f"{chosen.title}: {len(boots)} boots, {count} at a time, about {duration(whole_s)}")
    if chosen.virtual and not where.fresh:
        lines.append("what the cache has of them takes no time (--fresh measures it again)")
    lines.append("kernels that are not built yet come first, a quarter of an hour for each on two cores")
    budget = duration(60 * budget_min)
    if whole_s > 60 * budget_min:
        begun_s = itertools.accumulate((boot.estimate_s / count for boot in boots), initial=0.0)
        few = sum(before_s < 60 * budget_min for before_s in [*begun_s][:-1])
        lines.append(
            f"of these only the first {few} or so begin within the {budget} of --budget, and what is left "
            "out is said at the end: expected more time, or fewer --fs and --contexts"
        )
    else:
        lines.append(
            "then more rounds of what is still open, and for what is decided the kernel's own number, other "
            f"affinities and more workers, until {budget} are over"
        )
    return "\n".join([*lines, *jobfile.notes(chosen)])


def _side_by_side(chosen: Scenario, boots: Sequence[Boot], where: Where) -> int:
    """Return how many guests run at once."""
    if not chosen.virtual:
        return 1
    if where.scheduler is None:
        return cluster.places(chosen.guest.mem_mib, len(boots))
    with cluster.existing(where.scheduler, [], where.runner) as crew:
        return crew.size
