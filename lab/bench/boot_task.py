# SPDX-License-Identifier: GPL-2.0
"""One boot as a task: all that decides what comes out of it, as values, and a function that runs it."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lab.experiment import fiojob
from lab.experiment.scenario import Machine, Scenario
from lab.experiment.schedule import Boot, Step
from lab.machine import guest
from lab.result import profile, results
from lab.tree.build import Kernel
from lab.util.errors import GuestError, LabError
from lab.util.paths import REPO

LOAD = REPO / "guest" / "load.py"
GUEST_RESULTS = Path("/results")
# The counters of virtual time, written last: what has it is whole.
CLOCK = "clock.json"
# One CPU after the other: with more at once, what a cell comes to depends on the cores that a worker has.
LANES = 1
# Of a filesystem by mkfs.xfs, which wants a second place for the superblock.
MIN_AGS = 2


#: The kernels that are compared, by flavour: of the same source, config and compiler.
Kernels = Mapping[str, Kernel]


class Runner(Protocol):
    """What :func:`lab.machine.guest.run` does, so that a test can stand in for it."""

    def __call__(  # noqa: D102
        self,
        kernel: Path,
        command: list[str],
        *,
        machine: str,
        fs: str,
        device: str,
        settings: dict[str, str] | None,
        timeout_s: float | None,
        mem_mib: int,
        cpus: int,
        possible_cpus: int | None,
        results: Path | None,
        device_count: int,
        device_size_mib: int | None,
        mkfs: Sequence[str],
        lanes: int | None,
    ) -> guest.GuestResult: ...


@dataclass(frozen=True)
class Task:
    """One guest, what it runs, and where what comes out of it goes.

    Attributes:
        label: names it in errors.
        kernel: path of its kernel.
        kernel_identity: what that kernel is.
        machine: as for :func:`lab.machine.guest.run`, like those below.
        cpus: CPUs.
        possible_cpus: CPUs that the kernel prepares for.
        mem_mib: memory.
        fs: filesystem.
        device: name in the device table.
        device_count: number of devices.
        device_size_mib: size of each.
        settings: kernel files written before the mount.
        mkfs: further arguments of mkfs.
        timeout_s: seconds of the host until the guest must be off.
        round: which of several boots that are alike.
        files: name -> text of what guest/load.py is given: its plan and fio's jobs.
        is_profiled: whether each run leaves its profile beside its figures.
        folder: where the results go.
    """

    label: str
    kernel: Path
    kernel_identity: str
    machine: Machine
    cpus: int
    possible_cpus: int | None
    mem_mib: int
    fs: str
    device: str
    device_count: int
    device_size_mib: int
    settings: dict[str, str]
    mkfs: list[str]
    timeout_s: float
    round: int
    files: dict[str, str]
    is_profiled: bool
    folder: Path


def task(boot: Boot, chosen: Scenario, kernels: Kernels, job: str, folder: Path) -> Task:
    """Make the task of a boot.

    Args:
        boot: the boot.
        chosen: the scenario that it belongs to.
        kernels: the kernels to choose from.
        job: the fio job, with what it includes.
        folder: where the results go.
    """
    kernel = kernels[boot.setting.flavour]
    size = chosen.guest
    # Separate BDIs share the guest's CPUs.
    sharing = max(MIN_AGS, boot.cpus // boot.device_count)
    return Task(
        label=f"{boot.label}, round {boot.round}",
        kernel=kernel.path,
        kernel_identity=f"{kernel.flavour} {kernel.identity}",
        machine=boot.machine,
        cpus=boot.cpus,
        possible_cpus=size.possible_cpus,
        mem_mib=size.mem_mib,
        fs=boot.fs,
        device=boot.device,
        device_count=boot.device_count,
        device_size_mib=size.device_mib // boot.device_count,
        settings=boot.setting.bdi_files,
        mkfs=[word.replace("{cpus}", str(sharing)) for word in chosen.mkfs.get(boot.fs, [])],
        timeout_s=chosen.timeout_s,
        round=boot.round,
        files=_files(boot, chosen, job),
        is_profiled=boot.is_profiled,
        folder=folder,
    )


def run(one: Task, runner: Runner) -> Task:
    """Run a task: boot the guest on its plan, and leave what it read in the task's folder.

    The folder is there at the end only, as a whole, so that a task which was cut off can be run again
    meanwhile; after an error it holds what there was. A task that is done is not run again.

    Returns:
        The task.

    Raises:
        GuestError: the guest kernel misbehaved.
        LabError: the guest could not be set up, or there are no figures.
    """
    if (one.folder / CLOCK).exists():
        return one
    attempt = one.folder.with_name(f".{one.folder.name}-{uuid.uuid4().hex}")
    attempt.mkdir(parents=True)
    try:
        for name, text in one.files.items():
            (attempt / name).write_text(text, encoding="utf-8")
        _boot(replace(one, folder=attempt), runner)
    finally:
        shutil.rmtree(one.folder, ignore_errors=True)
        attempt.rename(one.folder)
    return one


def _boot(one: Task, runner: Runner) -> None:
    # Without site packages: the guest has the host's Python, and nothing of ours for it.
    python = [str(Path(sys.executable).resolve()), "-P", "-s", "-S", "-m", "guest.load"]
    command = ["env", f"PYTHONPATH={REPO}", *python, str(GUEST_RESULTS / "plan.json")]
    boot = functools.partial(profile.profiled, runner) if one.is_profiled else runner
    try:
        done = boot(
            one.kernel,
            command,
            machine=one.machine,
            fs=one.fs,
            device=one.device,
            settings=one.settings,
            timeout_s=one.timeout_s,
            mem_mib=one.mem_mib,
            cpus=one.cpus,
            possible_cpus=one.possible_cpus,
            results=one.folder,
            device_count=one.device_count,
            device_size_mib=one.device_size_mib,
            mkfs=one.mkfs,
            lanes=LANES,
        )
    except GuestError as error:
        raise GuestError(f"{one.label}: {error}") from error
    (one.folder / "console.txt").write_text(done.console, encoding="utf-8")
    if not (one.folder / results.RAW).exists():
        raise LabError(f"{one.label}: {LOAD.name} ended with status {done.status}, no figures: {done.output}")
    (one.folder / CLOCK).write_text(json.dumps(done.clock), encoding="utf-8")


def tool(name: str, package: str) -> str:
    """Find a program that the guest runs from the host's files.

    Raises:
        LabError: it is missing.
    """
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    if found is None:
        raise LabError(f"{name} is not installed: install the Debian package {package}")
    return found


def _files(boot: Boot, chosen: Scenario, job: str) -> dict[str, str]:
    """Return what guest/load.py needs, by file name."""
    files = {"job.fio": job}
    layout = None
    if not chosen.files and (boot.device_count > 1 or not fiojob.makes_files_as_it_runs(job)):
        layout = "layout.fio"
        files[layout] = fiojob.layout_only(job)
    if boot.direct:
        files["direct.fio"] = fiojob.direct(job)
    own = chosen.files
    plan = {
        "fio": tool("fio", "fio"),
        "filefrag": tool("filefrag", "e2fsprogs"),
        "sample_s": chosen.sample_s,
        "directories": fiojob.directories(job),
        "files": own.names_for(boot.cpus) if own else [],
        "size_mib": own.size_for(boot.cpus) if own else 0,
        "empty": own.empty if own else False,
        "inodes": None if boot.setting.layout == "as-made" else boot.setting.layout,
        "modulus": own.modulus if own else None,
        "placement": boot.setting.placement,
        "layout_job": layout,
        "prepare": boot.setting.mounted + (chosen.prepare or "") or None,
        "devices": boot.device_count,
        "runs": [_run(step, boot, chosen) for step in boot.steps],
    }
    return files | {"plan.json": json.dumps(plan, indent=1)}


def _run(step: Step, boot: Boot, chosen: Scenario) -> dict[str, Any]:
    window = step.window
    # fio takes no fractions of a second, but milliseconds.
    env = {
        "RAMP_S": f"{window.ramp_s * 1000:.0f}ms",
        "WINDOW_S": f"{(window.window_s or 0) * 1000:.0f}ms",
        "CPUS": str(boot.cpus),
        "FILE_MIB": str(chosen.files.size_for(boot.cpus) if chosen.files else 0),
        "FILES": str((chosen.job.total_files or 0) // boot.cpus),
    }
    is_stopped = chosen.stopped_after_s is not None and window.window_s is not None
    return {
        "name": step.name,
        "job": "direct.fio" if step.dirty_limit_mib is None else "job.fio",
        "settings": step.setting.bdi_files,
        "dirty_limit_mib": step.dirty_limit_mib,
        "stop_mib": window.between_mib[1] if window.between_mib else None,
        "stop_s": window.ramp_s + window.window_s if is_stopped and window.window_s else None,
        "env": env,
    }
