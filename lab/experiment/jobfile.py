# SPDX-License-Identifier: GPL-2.0
"""The scenario of a user's own fio job file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.experiment import fiojob, ownjob, pace, scenario, schedule
from lab.experiment.axes import Contexts
from lab.experiment.scenario import LEAST_LIMIT_MIB, Machine, Scenario, wrong_keys
from lab.experiment.setting import AUTO
from lab.machine import devices
from lab.util.errors import LabError, unknown_name

#: How much longer a user's job is measured where a head seeks: one writes some MiB/s, not hundreds.
SEEKING = 50
#: What mkfs.xfs makes a filesystem of, at least.
LEAST_DEVICE_MIB = 300


def scenario_of(job: Path, **settings: Any) -> Scenario:
    """Return the scenario of a user's job.

    Args:
        job: the fio job file.
        settings: as for :func:`from_job`.

    Raises:
        LabError: as :func:`from_job`; or a job that fio refuses (with fio's words), that would say nothing of
            writeback, or that does not fit.
    """
    chosen = from_job(job, **settings)
    name, text, folder = chosen.name, chosen.job.text, job.resolve().parent
    # What makes a job none for this bench comes before what a line less would mend.
    fiojob.check_taken(name, text, folder)
    fiojob.check_globals(name, text)
    fiojob.check_buffered(name, text, folder)
    ownjob.check(name, text, stopped_after_s=chosen.stopped_after_s)
    fiojob.check_paths(name, text, folder)
    ownjob.check_sizes(name, text)
    ownjob.check_room(name, text, chosen.guest.device_mib)
    if _unspread(chosen):
        return chosen.model_copy(update={"bounds": [one for one in chosen.bounds if one != "bdis"]})
    return chosen


def hopeless(chosen: Scenario) -> str:
    """Say why more contexts cannot bring a job anything; empty if they may."""
    if fiojob.written_files(chosen.job.text) != 1:
        return ""
    return (
        "the job writes one file, and a file has one flusher at a time: where nothing else is written, "
        "more contexts bring it nothing"
    )


def notes(chosen: Scenario) -> list[str]:
    """Say what a user's job can gain, what of it is not run as it is, and what bound it does not have."""
    said = [why] if (why := hopeless(chosen)) else []
    said += _circumstances(chosen)
    if chosen.stopped_after_s is not None:
        climbs = any(limit.ramp_s < schedule.CLIMB_S for limit in chosen.limits)
        later = f"with {AUTO} contexts {schedule.CLIMB_S:g} s later, " if climbs else ""
        said.append(
            f"the job is stopped {chosen.stopped_after_s:.1f} s of the guest after its first write to the "
            f"device, {later}whatever its runtime; --machine uml runs it to its end"
        )
    if why := _unspread(chosen):
        said.append(f"no bound from separate BDIs: {why}")
    elif "bdis" not in chosen.bounds:
        said.append(
            f"no bound from separate BDIs: {chosen.guest.device_mib} MiB are less than "
            f"{LEAST_DEVICE_MIB} for each of {chosen.guest.cpus} CPUs; raise --memory for it"
        )
    return said


def _circumstances(chosen: Scenario) -> list[str]:
    """Say what decides whether there is anything to gain, where it was not the user who chose it."""
    said = []
    for name in chosen.devices:
        if isinstance(devices.load(name), devices.Brd):
            said.append(
                f"device {name} is a RAM disk, where more flushers bring most: --device takes others "
                "(./pwb devices), ./pwb calibrate makes one of a drive of yours"
            )
    limits = " and ".join(str(limit.mib) for limit in chosen.limits)
    said.append(
        f"writers are throttled by a dirty limit of {limits} MiB: with much more memory a job may never be "
        "(vm.dirty_ratio, a fifth of it by default); --dirty-limits-mib takes yours"
    )
    return said


def from_job(
    job: Path,
    *,
    fs: list[str],
    device: str,
    contexts: list[Contexts],
    dirty_limits_mib: list[int],
    machine: Machine,
    cpus: int | None,
    memory_mib: int,
) -> Scenario:
    """Make the scenario that runs a user's own fio job file as it is, with both bounds.

    On ``uml`` how long the job runs is its own affair: figures start 4 s after fio does (steady from there)
    and go on until it ends. On ``smp``, where a second of 8 busy CPUs takes half a minute of the host, they
    start 0.3 s after the device is first written to, and the job is stopped 0.4 s later; on a device with a
    head both are :data:`SEEKING` times as long. A job that ends before that is measured as a whole, final
    sync included.

    Separate BDIs are no bound where a share of the device is too small for a filesystem.

    Args:
        job: the fio job file.
        fs: filesystems.
        device: name in the device table.
        contexts: numbers of contexts to try, or ``auto``.
        dirty_limits_mib: dirty limits in MiB.
        machine: ``uml`` or ``smp``.
        cpus: the guest's CPUs; None: 8, on ``uml`` as many as this machine gives.
        memory_mib: the guest's memory.

    Raises:
        LabError: a value that no scenario may have, named, or a job file that cannot be read.
    """
    for one in fs:
        if one not in scenario.FILESYSTEMS:
            raise unknown_name("filesystem", one, scenario.FILESYSTEMS)
    devices.load(device)
    if set(contexts) == {1}:
        raise LabError(
            f"run {job.name}: one context runs stock's code, so there is nothing to choose from: "
            f"expected a number above 1 among --contexts, or {AUTO}"
        )
    for mib in dirty_limits_mib:
        if mib < LEAST_LIMIT_MIB:
            raise LabError(
                f"run {job.name}: a dirty limit of {mib} MiB: expected {LEAST_LIMIT_MIB} MiB or more; raise "
                "--dirty-limits-mib"
            )
        if mib >= memory_mib:
            raise LabError(
                f"run {job.name}: a dirty limit of {mib} MiB is never reached in {memory_mib} MiB of memory: "
                "expected less; lower --dirty-limits-mib, or raise --memory"
            )
    try:
        if job.exists() and not job.is_file():
            raise LabError(
                f"job file {job}: read more than once, as no pipe can be: expected a regular file; write the "
                "job into one"
            )
        text = fiojob.inlined(job.name, job.read_text(encoding="utf-8"), job.resolve().parent)
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"job file {job}: cannot be read as text: {error}") from error
    if cpus is None:
        cpus = 8 if machine == "smp" else len(os.sched_getaffinity(0))
    device_mib = memory_mib * 5 // 8
    has_shares = device_mib // max(cpus, 1) >= LEAST_DEVICE_MIB
    try:
        return Scenario.model_validate(
            {
                "name": re.sub(r"[^A-Za-z0-9._-]+", "-", job.stem).strip("-._") or "job",
                "title": f"fio job file {job.name}",
                "devices": [device],
                "filesystems": fs,
                "contexts": contexts,
                "bounds": ["bdis", "direct"] if has_shares else ["direct"],
                "repetitions": 1,
                **_times(machine, device, dirty_limits_mib),
                "guest": {
                    "machine": machine,
                    "cpus": cpus,
                    "mem_mib": memory_mib,
                    "device_mib": device_mib,
                },
                "job": {"text": ownjob.expanded(job.name, text, os.environ, cpus)},
                "timeout_s": 3600,
            }
        )
    except ValidationError as error:
        raise LabError(f"run {job.name}: {wrong_keys(error)}") from error


def _times(machine: Machine, device: str, dirty_limits_mib: list[int]) -> dict[str, Any]:
    if machine == "uml":
        return {"limits": [{"mib": mib, "ramp_s": 4} for mib in dirty_limits_mib], "direct": {"ramp_s": 1}}
    times = SEEKING if pace.seeks(device) else 1
    return {
        "limits": [{"mib": mib, "ramp_s": 0.3 * times, "window_s": 0.4 * times} for mib in dirty_limits_mib],
        "direct": {"ramp_s": 0.1 * times, "window_s": 0.2 * times},
        "parts": 8,
        "sample_s": 0.02 * times,
    }


def _unspread(chosen: Scenario) -> str:
    """Say why a job's writes are not spread over a device for each CPU; empty if they are."""
    cpus, text = chosen.guest.cpus, chosen.job.text
    files = fiojob.written_files(text)
    if files < cpus:
        return f"of {cpus} devices only {files} would have a file that the job writes"
    return ""
