# SPDX-License-Identifier: GPL-2.0
"""What a run of a user's own fio job would boot, and how long that takes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lab.bench import boot_task, cluster
from lab.bench.bench import BUILD_TIME, HERE, Where, check
from lab.bench.search import NULL, WHAT_ELSE, first_answer_first, searches
from lab.bench.store import Store, known_surroundings
from lab.experiment import fiojob, jobfile, schedule
from lab.experiment.scenario import Scenario
from lab.experiment.schedule import Boot
from lab.machine import guest
from lab.machine.hardware import QEMU_MIB, Hardware
from lab.tree import build
from lab.tree import source as sources
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util import host
from lab.util.progress import duration


class _Turn(NamedTuple):
    """When a boot begins, and when it ends, in seconds."""

    begin_s: float
    end_s: float


class _Unfetched(Hardware):
    """A machine of which nothing is fetched yet."""

    def check(self) -> None:
        """Raise LabError unless the host has room for it."""
        host.check(host.Need(packages=False, memory_bytes=(self.mem_mib + QEMU_MIB) << 20))


def source_at_hand(tree: Path | None, series: str | None) -> Source | None:
    """Return the source of a run, the user's or that of a series; None where it would have to be fetched.

    Raises:
        LabError: the user's tree is none of Linux, or holds a build, or there can be no such series.
    """
    if tree is not None:
        return sources.user_tree(tree)
    return sources.cached(series or sources.SERIES)


def plan(
    job: Path, *, budget_min: float, source: Source | None = None, where: Where = HERE, **settings: Any
) -> str:
    """Say what a run would boot and how long it would take; nothing is fetched, built or booted.

    Args:
        job: as for :func:`lab.bench.bench.run_job`, like those below.
        budget_min: minutes.
        source: the kernel source; None: not known yet, and so neither which kernels are built nor which boots
            the cache has.
        where: where guests in virtual time run; a cluster is asked for its workers.
        settings: those that are left.

    Raises:
        LabError: bad input, as for run_job.
    """
    chosen = jobfile.scenario_of(job, **settings)
    check(chosen, job.resolve().parent, where, machine=_Unfetched)
    boots = [replace(boot, is_profiled=where.profiled) for boot in first_answer_first(schedule.boots(chosen))]
    count = _side_by_side(chosen, boots, where)
    found = [build.find(name, source, chosen.guest.machine) for name in chosen.flavours] if source else []
    kept = _kept(chosen, boots, [kernel for kernel, _ in found], job.resolve().parent, where)
    lines = [
        f"{boot.label}: {'in the cache' if boot in kept else f'about {duration(boot.estimate_s)}'}"
        for boot in boots
    ]
    every, boots = boots, [boot for boot in boots if boot not in kept]
    whole_s = sum(boot.estimate_s for boot in boots) / count
    more = f" ({len(kept)} more from the cache, --fresh measures them again)" if kept else ""
    lines.append(f"{chosen.title}: {len(boots)} boots, {count} at a time, about {duration(whole_s)}{more}")
    budget_s = 60 * budget_min
    turns = _turns(boots, count)
    begun = {boot: turn for boot, turn in turns.items() if turn.begin_s < budget_s}
    first_s = _first_answer_s(begun, kept)
    lines += [] if first_s is None else [f"first answer after about {duration(first_s)}"]
    if chosen.virtual and not where.fresh and not found:
        lines.append("what the cache has of them takes no time (--fresh measures it again)")
    missing = [kernel.flavour for kernel, is_built in found if not is_built]
    if missing or not found:
        named = f": {' and '.join(missing)}" if missing else ""
        lines.append(f"kernels that are not built yet come first, {BUILD_TIME}{named}")
    if len(begun) < len(boots):
        lines.append(
            f"of these only the first {len(begun)} or so begin within the {duration(budget_s)} of --budget, "
            "and what is left out is said at the end: expected more time, or fewer --fs and --contexts"
        )
    if not jobfile.hopeless(chosen):
        first_round_s = max((turn.end_s for turn in turns.values()), default=0.0)
        lines.append(_further(searches(every), count, first_round_s, budget_s))
    return "\n".join([*lines, *jobfile.notes(chosen)])


def _kept(
    chosen: Scenario, boots: Sequence[Boot], kernels: Sequence[Kernel], job_folder: Path, where: Where
) -> list[Boot]:
    """Return the boots that the cache has, as far as that is known."""
    around = known_surroundings() if kernels and chosen.virtual and not where.fresh else None
    if around is None:
        return []
    store = Store(around)
    job = fiojob.for_the_guest(chosen.name, chosen.job.text, job_folder)
    by_flavour = dict(zip(chosen.flavours, kernels, strict=True))
    return [boot for boot in boots if store.has(boot_task.task(boot, chosen, by_flavour, job, job_folder))]


def _further(searched: Sequence[Sequence[Boot]], count: int, from_s: float, budget_s: float) -> str:
    """Say how many boots begin after the first round, and which budget the search of all else needs.

    Args:
        searched: the boots of that search, for each filesystem and dirty limit.
        count: how many run at once.
        from_s: when the first round ends, in seconds.
        budget_s: when no further boot begins.
    """
    turns = _turns([boot for boots in searched for boot in boots], count, from_s)
    fits = sum(turn.begin_s < budget_s for turn in turns.values())
    into = f"into the {duration(budget_s)} of --budget"
    said = f"one filesystem after the other, more rounds of what is open, and for what is decided {WHAT_ELSE}"
    if fits == len(turns):
        return f"then {fits} or more further boots fit {into}: {said}"
    first_min, all_min = (
        math.ceil(max(turns[boot].end_s for boot in boots) / 60) for boots in (searched[0], turns)
    )
    need = f"need --budget {first_min}"
    if len(searched) > 1:
        need += f" for the first verdict, {all_min} for all {len(searched)}"
    if not fits:
        return f"then no further boot fits {into}: {WHAT_ELSE} {need}"
    return f"then about {fits} further boots fit {into}: {said}, which {need}"


def _turns(boots: Sequence[Boot], count: int, from_s: float = 0.0) -> dict[Boot, _Turn]:
    """Return when each boot has its turn: in their order, each takes whichever place is free first.

    Args:
        boots: the boots.
        count: places.
        from_s: when all of them become free, in seconds.
    """
    free_s = [from_s] * count
    found = {}
    for boot in boots:
        begin_s = free_s[0]
        heapq.heapreplace(free_s, begin_s + boot.estimate_s)
        found[boot] = _Turn(begin_s, begin_s + boot.estimate_s)
    return found


def _first_answer_s(turns: Mapping[Boot, _Turn], kept: Sequence[Boot]) -> float | None:
    """Return after how many seconds the first verdict is known; None: not within the budget.

    It is said when a boot ends on a filesystem of which stock and a setting to judge are there by then.

    Args:
        turns: of the boots that begin.
        kept: boots that the cache has.
    """
    for boot, turn in sorted(turns.items(), key=lambda one: one[1].end_s):
        there = [*kept, *(one for one, other in turns.items() if other.end_s <= turn.end_s)]
        same = [one for one in there if (one.fs, one.limits) == (boot.fs, boot.limits)]
        settings = {setting for one in same for setting in one.settings} - {NULL}
        if {"stock", "parallel"} <= {setting.variant for setting in settings}:
            return turn.end_s
    return None


def _side_by_side(chosen: Scenario, boots: Sequence[Boot], where: Where) -> int:
    """Return how many guests run at once."""
    if not chosen.virtual:
        return 1
    if where.scheduler is None:
        return cluster.places(chosen.guest.mem_mib, len(boots))
    with cluster.existing(where.scheduler, [], guest.run) as crew:
        return crew.size
