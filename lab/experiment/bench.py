# SPDX-License-Identifier: GPL-2.0
"""Measure every setting of a scenario on stock and parallel kernels in the same run, with the bounds."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.experiment import cells, cluster, fiojob, ownjob, schedule
from lab.experiment import scenario as scenarios
from lab.experiment.axes import Contexts
from lab.experiment.cells import Kernels, Runner, tool
from lab.experiment.cluster import InTurn
from lab.experiment.scenario import Machine, Scenario
from lab.experiment.search import first_answer_first
from lab.experiment.session import measure
from lab.experiment.store import Store, surroundings
from lab.machine import devices, guest, guest_memory, host, host_idle
from lab.machine.hardware import Hardware
from lab.result import profile, report
from lab.tree import build
from lab.tree.source import Source
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import cache_dir
from lab.util.progress import duration

CPUS_SLEEP = (
    f"{host_idle.LATENCY} could not be opened, so the host's CPUs sleep when idle and rates vary more: "
    "expected to be run by root, or by a user who may write that file"
)
# The kernel's limit of nwritebacks (BDI_WB_CTX_PER_CPU).
CONTEXTS_PER_CPU = 4


@dataclass(frozen=True)
class Where:
    """Where guests in virtual time run, and what of them is measured again.

    Attributes:
        scheduler: address of a cluster of dask.distributed that is there already; None: on this machine.
        fresh: measure again what was measured before.
        profiled: write a profile of each run; what was measured without one is measured again.
    """

    scheduler: str | None = None
    fresh: bool = False
    profiled: bool = False

    @property
    def runner(self) -> Runner:
        """Return what boots a guest."""
        return functools.partial(profile.profiled, guest.run) if self.profiled else guest.run


HERE = Where()


def bench(
    scenario: str = "headline",
    *,
    full: bool = False,
    source: Source,
    machine: Machine | None = None,
    cpus: int | None = None,
    where: Where = HERE,
) -> Path:
    """Run a scenario.

    Args:
        scenario: its name in ``scenarios/``.
        full: with the further devices, CPUs, contexts and repetitions that the scenario lists.
        source: the kernel source to compare stock and parallel of.
        machine: another machine than the scenario's.
        cpus: another number of CPUs than the scenario's.
        where: where guests in virtual time run.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, found before anything is built, or a guest that failed.
    """
    chosen = scenarios.load(scenario).on(machine, cpus)
    return _build_and_measure(chosen.expanded() if full else chosen, source, scenarios.SCENARIOS, where)


def run_job(
    job: Path,
    *,
    fs: list[str],
    device: str,
    contexts: list[Contexts],
    dirty_limits_mib: list[int],
    machine: Machine,
    cpus: int | None,
    memory_mib: int,
    budget_min: float,
    source: Source,
    where: Where = HERE,
) -> Path:
    """Run a user's own fio job file as it is, the way :func:`bench` runs a scenario; bounds run derived jobs.

    After the first round only what is open goes on, and what else may be set is tried: see
    :mod:`lab.experiment.search`.

    Args:
        job: fio job file; it runs with the filesystem under test as its working directory.
        fs: filesystems.
        device: name in the device table.
        contexts: numbers of contexts to try, or ``auto``.
        dirty_limits_mib: dirty limits in MiB.
        machine: ``uml`` or ``smp``.
        cpus: the guest's CPUs; None: 8, on ``uml`` as many as this machine gives.
        memory_mib: the guest's memory.
        budget_min: minutes after which no further boot begins, once kernels are there.
        source: as in :func:`bench`.
        where: as in :func:`bench`.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, such as a job that fio refuses (with fio's words), or a guest that failed.
    """
    chosen = _of_job(
        job,
        fs=fs,
        device=device,
        contexts=contexts,
        dirty_limits_mib=dirty_limits_mib,
        machine=machine,
        cpus=cpus,
        memory_mib=memory_mib,
    )
    return _build_and_measure(
        chosen, source, job.resolve().parent, where, budget_s=60 * budget_min, notes=_notes(chosen)
    )


def plan_job(job: Path, *, budget_min: float, **settings: Any) -> str:
    """Say what :func:`run_job` would boot and how long it would take; nothing is fetched, built or booted.

    Args:
        job: as for :func:`run_job`.
        budget_min: as for :func:`run_job`.
        settings: those of :func:`run_job` but ``source`` and ``where``.

    Raises:
        LabError: bad input, as for :func:`run_job`.
    """
    chosen = _of_job(job, **settings)
    check(chosen, job.resolve().parent)
    boots = first_answer_first(schedule.boots(chosen))
    count = cluster.places(chosen.guest.mem_mib, len(boots)) if chosen.virtual else 1
    lines = [f"{boot.label}: about {duration(boot.estimate_s)}" for boot in boots]
    whole_s = sum(boot.estimate_s for boot in boots) / count
    lines.append(
        f"{chosen.title}: {len(boots)} boots, {count} at a time, about {duration(whole_s)}, after kernels "
        "that are not built yet, a quarter of an hour on two cores"
    )
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
            f"then more rounds of what is still open, and the kernel's own number, other affinities and more "
            f"workers with the best number of contexts, until {budget} are over"
        )
    return "\n".join([*lines, *_notes(chosen)])


def _of_job(job: Path, **settings: Any) -> Scenario:
    """Return the scenario of a user's job, which has to write through the page cache."""
    tool("fio", "fio")
    chosen = scenarios.from_job(job, **settings)
    for name in chosen.devices:
        devices.load(name)
    fiojob.check(chosen.name, chosen.job.text, job.resolve().parent)
    fiojob.check_globals(chosen.name, chosen.job.text)
    ownjob.check(chosen.name, chosen.job.text, stopped_after_s=chosen.stopped_after_s)
    fiojob.check_buffered(chosen.name, chosen.job.text, job.resolve().parent)
    fiojob.check_room(chosen.name, chosen.job.text, job.resolve().parent, chosen.guest.device_mib)
    if _files_are_few(chosen):
        return chosen.model_copy(update={"bounds": [one for one in chosen.bounds if one != "bdis"]})
    return chosen


def _files_are_few(chosen: Scenario) -> bool:
    """Say whether a job has fewer files than there are CPUs, so that some of as many devices get none."""
    return fiojob.most_files(chosen.job.text) < chosen.guest.cpus


def _notes(chosen: Scenario) -> list[str]:
    """Say what of a user's job is not run as it is, and what bound it does not have."""
    said = []
    if chosen.stopped_after_s is not None:
        said.append(
            f"the job is stopped {chosen.stopped_after_s:.1f} s of the guest after its first write to the "
            "device, whatever its runtime; --machine uml runs it to its end"
        )
    if _files_are_few(chosen):
        said.append(
            f"no bound from separate BDIs: of {chosen.guest.cpus} devices only "
            f"{fiojob.most_files(chosen.job.text)} would have a file of the job"
        )
    elif "bdis" not in chosen.bounds:
        said.append(
            f"no bound from separate BDIs: {chosen.guest.device_mib} MiB are less than "
            f"{scenarios.LEAST_DEVICE_MIB} for each of {chosen.guest.cpus} CPUs; raise --memory for it"
        )
    return said


def _build_and_measure(
    chosen: Scenario,
    source: Source,
    job_folder: Path,
    where: Where,
    *,
    budget_s: float | None = None,
    notes: Sequence[str] = (),
) -> Path:
    if where.profiled and not chosen.virtual:
        raise LabError("a profile is of virtual time: expected the machine smp, add --machine smp")
    check(chosen, job_folder)
    with exclusive(cache_dir() / "bench.lock", f"measuring {chosen.name}"), ExitStack() as stack:
        machine = chosen.guest.machine
        crew = None
        if chosen.virtual and where.scheduler is not None:
            needed = [cells.LOAD, cache_dir()]
            crew = stack.enter_context(cluster.existing(where.scheduler, needed, where.runner))
        kernels = Kernels(*(build.build(name, source, machine) for name in ("stock", "parallel")))
        measured = functools.partial(measure, chosen, kernels, job_folder=job_folder, budget_s=budget_s)
        if chosen.virtual:
            if crew is None:
                count = cluster.places(chosen.guest.mem_mib, len(schedule.boots(chosen)))
                crew = stack.enter_context(cluster.local(count, where.runner))
            around = surroundings() | ({"profile": "of each run"} if where.profiled else {})
            return measured(crew=crew, store=Store(around), fresh=where.fresh, notes=notes)
        mib = chosen.guest.mem_mib
        report.terminal().print(f"filling {mib} MiB of memory for the guests", highlight=False)
        memory = stack.enter_context(guest_memory.filled(mib))
        is_awake = stack.enter_context(host_idle.awake())
        asleep = [] if is_awake else [CPUS_SLEEP]
        crew = InTurn(functools.partial(guest.run, memory=memory))
        return measured(crew=crew, notes=[*notes, *asleep])


def check(chosen: Scenario, job_folder: Path) -> None:
    """Check all that can be checked before anything expensive.

    Raises:
        LabError: an unknown device, a job that fio refuses, too few cores, too little memory, a missing tool.
    """
    for name in chosen.devices:
        devices.load(name)
    fiojob.check(chosen.name, chosen.job.text, job_folder)
    tool("fio", "fio")
    tool("filefrag", "e2fsprogs")
    size = chosen.guest
    most = CONTEXTS_PER_CPU * (size.possible_cpus or size.cpus)
    asked = max((number for number in chosen.contexts if isinstance(number, int)), default=1)
    if asked > most:
        raise LabError(
            f"{chosen.name}: {asked} contexts on {size.cpus} CPUs: expected at most {most}, "
            f"{CONTEXTS_PER_CPU} for each CPU; ask for fewer, or for more CPUs"
        )
    if chosen.virtual:
        for cpus in [size.cpus, *chosen.scaling]:
            hardware = Hardware("smp", mem_mib=size.mem_mib, cpus=cpus, possible_cpus=size.possible_cpus)
            for name in chosen.devices:
                guest.check(hardware, fs="xfs", device=name, device_size_mib=size.device_mib)
    else:
        host.check(host.Need(cpus=size.cpus, guest_mem_bytes=size.mem_mib << 20))
