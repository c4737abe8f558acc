# SPDX-License-Identifier: GPL-2.0
"""Measure every setting of a scenario on stock and parallel kernels in the same run, with the bounds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.bench import boot_task, cluster
from lab.bench.boot_task import tool
from lab.bench.cluster import Crew, InTurn
from lab.bench.session import measure
from lab.bench.store import Store, surroundings
from lab.experiment import fiojob, jobfile, schedule
from lab.experiment import scenario as scenarios
from lab.experiment.scenario import Machine, Scenario
from lab.machine import devices, guest, guest_memory, host_idle
from lab.machine.hardware import Hardware, check_contexts
from lab.result import report
from lab.tree import build
from lab.tree.source import Source
from lab.util import host
from lab.util.errors import LabError
from lab.util.lock import whole_machine
from lab.util.paths import cache_dir

CPUS_SLEEP = (
    f"{host_idle.LATENCY} could not be opened, so the host's CPUs sleep when idle and rates vary more: "
    "expected to be run by root, or by a user who may write that file"
)
#: How long a kernel takes to build.
BUILD_TIME = "a quarter of an hour for each on two cores"


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


HERE = Where()


def bench(
    scenario: str = "headline",
    *,
    full: bool = False,
    source: Source,
    machine: Machine | None = None,
    cpus: int | None = None,
    most_cpus: int | None = None,
    where: Where = HERE,
) -> Path:
    """Run a scenario.

    Args:
        scenario: its name in ``scenarios/``.
        full: with the further devices, CPUs, contexts and repetitions that the scenario lists.
        source: the kernel source to compare stock and parallel of.
        machine: another machine than the scenario's.
        cpus: another number of CPUs than the scenario's.
        most_cpus: leave out the scenario's further numbers of CPUs above this one.
        where: where guests in virtual time run.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, found before anything is built, or a guest that failed.
    """
    chosen = scenario_of(scenario, full=full, machine=machine, cpus=cpus)
    if most_cpus is not None:
        chosen = chosen.up_to(most_cpus)
    return _build_and_measure(chosen, source, scenarios.SCENARIOS, where)


def bench_all(
    names: Sequence[str],
    *,
    full: bool,
    source: Source,
    machine: Machine | None = None,
    cpus: int | None = None,
    where: Where = HERE,
) -> list[Path]:
    """Run scenarios one after the other and return their results folders.

    Raises:
        LabError: as :func:`bench`; what can be checked is checked for all before the first runs.
    """
    for name in names:
        check(scenario_of(name, full=full, machine=machine, cpus=cpus), scenarios.SCENARIOS, where)
    return [bench(name, full=full, source=source, machine=machine, cpus=cpus, where=where) for name in names]


def scenario_of(name: str, *, full: bool, machine: Machine | None, cpus: int | None) -> Scenario:
    """Return the scenario that :func:`bench` runs, by its arguments.

    Raises:
        LabError: there is no such scenario, or it is none with these arguments.
    """
    found = scenarios.load(name).on(machine, cpus)
    return found.expanded() if full else found


def run_job(job: Path, *, budget_min: float, source: Source, where: Where = HERE, **settings: Any) -> Path:
    """Run a user's own fio job file as it is, the way :func:`bench` runs a scenario; bounds run derived jobs.

    After the first round only what is open goes on, and what else may be set is tried: see
    :mod:`lab.bench.search`.

    Args:
        job: fio job file; it runs with the filesystem under test as its working directory.
        budget_min: minutes after which no further boot begins, once kernels are there.
        source: as in :func:`bench`.
        where: as in :func:`bench`.
        settings: as for :func:`lab.experiment.jobfile.from_job`.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, such as a job that fio refuses (with fio's words), or a guest that failed.
    """
    chosen = jobfile.scenario_of(job, **settings)
    return _build_and_measure(
        chosen, source, job.resolve().parent, where, budget_s=60 * budget_min, notes=jobfile.notes(chosen)
    )


def _build_and_measure(
    chosen: Scenario,
    source: Source,
    job_folder: Path,
    where: Where,
    *,
    budget_s: float | None = None,
    notes: Sequence[str] = (),
) -> Path:
    check(chosen, job_folder, where)
    with whole_machine(f"measuring {chosen.name}"), ExitStack() as stack:
        machine = chosen.guest.machine
        crew: Crew | None = None
        if chosen.virtual and where.scheduler is not None:
            needed = [boot_task.LOAD, cache_dir()]
            crew = stack.enter_context(cluster.existing(where.scheduler, needed, guest.run))
        if missing := [name for name in chosen.flavours if not build.find(name, source, machine)[1]]:
            report.terminal().print(f"built first, {BUILD_TIME}: {' and '.join(missing)}", highlight=False)
        kernels = {name: build.build(name, source, machine) for name in chosen.flavours}
        measured = functools.partial(
            measure, chosen, kernels, job_folder=job_folder, budget_s=budget_s, profiled=where.profiled
        )
        if chosen.virtual:
            if crew is None:
                count = cluster.places(chosen.guest.mem_mib, len(schedule.boots(chosen)))
                crew = stack.enter_context(cluster.local(count, guest.run))
            store = Store(surroundings())
            return measured(crew=crew, store=store, fresh=where.fresh, notes=notes)
        mib = chosen.guest.mem_mib
        report.terminal().print(f"filling {mib} MiB of memory for the guests", highlight=False)
        memory = stack.enter_context(guest_memory.filled(mib))
        is_awake = stack.enter_context(host_idle.awake())
        asleep = [] if is_awake else [CPUS_SLEEP]
        crew = InTurn(functools.partial(guest.run, memory=memory))
        return measured(crew=crew, notes=[*notes, *asleep])


def check(
    chosen: Scenario, job_folder: Path, where: Where = HERE, *, machine: type[Hardware] = Hardware
) -> None:
    """Check all that can be checked before anything expensive.

    Args:
        chosen: the scenario.
        job_folder: where the job's included files are.
        where: where its guests are to run.
        machine: makes their machine.

    Raises:
        LabError: an unknown device, a job that fio refuses, too few cores, too little memory, a missing tool,
            a profile of the host's time.
    """
    if where.profiled and not chosen.virtual:
        raise LabError("a profile is of virtual time: expected the machine smp, add --machine smp")
    for name in chosen.devices:
        devices.load(name)
    fiojob.check(chosen.name, chosen.job.text, job_folder)
    tool("fio", "fio")
    tool("filefrag", "e2fsprogs")
    size = chosen.guest
    for number in chosen.contexts:
        if isinstance(number, int):
            check_contexts(chosen.name, number, size.possible_cpus or size.cpus)
    if chosen.virtual:
        for cpus in [size.cpus, *chosen.scaling]:
            hardware = machine(
                machine="smp", mem_mib=size.mem_mib, cpus=cpus, possible_cpus=size.possible_cpus
            )
            for name in chosen.devices:
                guest.check(hardware, fs="xfs", device=name, device_size_mib=size.device_mib)
    else:
        host.check(host.Need(cpus=size.cpus, guest_mem_bytes=size.mem_mib << 20))
