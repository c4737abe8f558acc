# SPDX-License-Identifier: GPL-2.0
"""Measure every setting of a scenario on stock and parallel kernels in turn, with the bounds."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape

from lab.experiment import fiojob, schedule
from lab.experiment import scenario as scenarios
from lab.experiment.measure import Raw, RawRun, figures
from lab.experiment.scenario import Limit, Scenario, Window
from lab.experiment.schedule import Boot
from lab.machine import devices, guest, guest_memory, host, host_idle
from lab.result import plots, report, results
from lab.result.results import Key, Measured
from lab.tree import build
from lab.tree.source import Source
from lab.util.errors import GuestError, LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir
from lab.util.progress import duration

LOAD = REPO / "guest" / "load.py"
GUEST_RESULTS = Path("/results")
SAMPLE_S = 0.5
CPUS_SLEEP = (
    f"{host_idle.LATENCY} could not be opened, so the host's CPUs sleep when idle and rates vary more: "
    "expected to be run by root, or by a user who may write that file"
)
# Two BDIs bound anything only where both of them get work.
MIN_SHARE = 0.1


class Runner(Protocol):
    """What :func:`lab.machine.guest.run` does, so that a test can stand in for it."""

    def __call__(  # noqa: D102
        self,
        kernel: Path,
        command: list[str],
        *,
        fs: str,
        device: str,
        settings: dict[str, str] | None,
        timeout_s: float,
        mem_mib: int,
        cpus: int,
        possible_cpus: int | None,
        results: Path | None,
        device_count: int,
        device_size_mib: int | None,
        mkfs: list[str],
    ) -> guest.GuestResult: ...


@dataclass(frozen=True)
class Kernels:
    """The two kernels that are compared: same source, same config, same compiler."""

    stock: build.Kernel
    parallel: build.Kernel


@dataclass
class _Session:
    """One result in the making: what is measured, with what, and what came out so far."""

    chosen: Scenario
    text: str
    kernels: Kernels
    folder: Path
    runner: Runner
    total_s: float
    began: float = field(default_factory=time.monotonic)
    measured: list[Measured] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dirty_settings: dict[str, dict[str, int]] = field(default_factory=dict)
    releases: dict[str, str] = field(default_factory=dict)
    spent_s: float = 0.0
    estimated_s: float = 0.0

    @property
    def remaining_s(self) -> float:
        """Scale what is left of the estimate by how the estimate did so far."""
        pace = self.spent_s / self.estimated_s if self.estimated_s else 1.0
        return (self.total_s - self.estimated_s) * pace

    def note(self, text: str) -> None:
        """Keep a remark for the end, once."""
        if text not in self.notes:
            self.notes.append(text)

    def save(self) -> list[results.Cell]:
        """Write what was measured so far."""
        found = results.cells(self.chosen.name, self.measured)
        results.write(self.folder, found, _meta(self))
        return found


def bench(scenario: str = "headline", *, full: bool = False, source: Source) -> Path:
    """Run a scenario.

    Args:
        scenario: its name in ``scenarios/``.
        full: with the further devices, contexts and repetitions that the scenario lists.
        source: the kernel source to compare stock and parallel of.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, found before anything is built, or a guest that failed.
    """
    chosen = scenarios.load(scenario)
    return _build_and_measure(chosen.expanded() if full else chosen, source, scenarios.SCENARIOS)


def run_job(
    job: Path,
    *,
    fs: list[str],
    device: str,
    contexts: list[int],
    dirty_limits_mib: list[int],
    repetitions: int,
    source: Source,
) -> Path:
    """Run a user's own fio job file as it is, the way :func:`bench` runs a scenario; bounds run derived jobs.

    Args:
        job: fio job file; it runs with the filesystem under test as its working directory.
        fs: filesystems.
        device: name in the device table.
        contexts: numbers of contexts to try.
        dirty_limits_mib: dirty limits in MiB.
        repetitions: rounds.
        source: as in :func:`bench`.

    Returns:
        The results folder.

    Raises:
        LabError: bad input, such as a job that fio refuses (with fio's words), or a guest that failed.
    """
    chosen = scenarios.from_job(
        job,
        fs=fs,
        device=device,
        contexts=contexts,
        dirty_limits_mib=dirty_limits_mib,
        repetitions=repetitions,
    )
    return _build_and_measure(chosen, source, job.resolve().parent)


def _build_and_measure(chosen: Scenario, source: Source, job_folder: Path) -> Path:
    check(chosen, job_folder)
    with exclusive(cache_dir() / "bench.lock", f"measuring {chosen.name}"):
        kernels = Kernels(stock=build.build("stock", source), parallel=build.build("parallel", source))
        mib = chosen.guest.mem_mib
        report.terminal().print(f"filling {mib} MiB of memory for the guests", highlight=False)
        with guest_memory.filled(mib) as memory, host_idle.awake() as is_awake:
            runner = functools.partial(guest.run, memory=memory)
            notes = [] if is_awake else [CPUS_SLEEP]
            return measure(chosen, kernels, job_folder=job_folder, runner=runner, notes=notes)


def check(chosen: Scenario, job_folder: Path) -> None:
    """Check all that can be checked before anything expensive.

    Raises:
        LabError: an unknown device, a job that fio refuses, too few cores, too little memory, a missing tool.
    """
    for name in chosen.devices:
        devices.load(name)
    fiojob.check(chosen.name, chosen.job.text, job_folder)
    _tool("fio", "fio")
    _tool("filefrag", "e2fsprogs")
    host.check(host.Need(cpus=chosen.guest.cpus, guest_mem_bytes=chosen.guest.mem_mib << 20))


def measure(
    chosen: Scenario,
    kernels: Kernels,
    *,
    job_folder: Path,
    runner: Runner = guest.run,
    root: Path = results.RESULTS,
    console: Console | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Run every boot of a scenario and write the result.

    Args:
        chosen: the scenario, checked.
        kernels: the kernels to compare.
        job_folder: where the job's included files are.
        runner: boots a guest.
        root: where results go.
        console: where tables and progress go; None: standard output.
        notes: remarks on the circumstances, for the end.

    Returns:
        The results folder; ``latest`` beside it points to it.

    Raises:
        LabError: a guest or fio failed. What was measured until then stays in a folder whose name ends in
            ``.incomplete``.
    """
    out = console or report.terminal()
    boots = schedule.boots(chosen)
    session = _Session(
        chosen=chosen,
        text=fiojob.inlined(chosen.name, chosen.job.text, job_folder),
        kernels=kernels,
        folder=results.create(root),
        runner=runner,
        total_s=sum(boot.estimate_s for boot in boots),
        notes=list(notes),
    )
    out.print(f"{chosen.title}: {len(boots)} boots, about {duration(session.total_s)}", markup=False)
    with _kept_when_interrupted(session):
        for number, boot in enumerate(boots):
            started = time.monotonic()
            place = f"[{number + 1}/{len(boots)}] {boot.label}, round {boot.round}"
            with out.status(escape(f"{place}, {duration(session.remaining_s)} left")):
                new = _run_boot(boot, session)
            session.spent_s += time.monotonic() - started
            session.estimated_s += boot.estimate_s
            session.measured += new
            rates = " / ".join(f"{one.figures.mib_s:.0f}" for one in new)
            line = f"{place}: {rates or 'no'} MiB/s, {duration(session.remaining_s)} left"
            out.print(line, markup=False, highlight=False)
        found = session.save()
        (session.folder / "table.md").write_text(report.markdown(found, session.notes), encoding="utf-8")
        plots.draw(session.folder, found)
    final = results.publish(session.folder)
    report.show(out, found, session.notes, final)
    return final


@contextmanager
def _kept_when_interrupted(session: _Session) -> Iterator[None]:
    """Save what was measured when a run breaks off, and say where."""
    try:
        yield
    except LabError as error:
        session.save()
        raise type(error)(f"{error}\nwhat was measured until then is in {session.folder}") from error
    except KeyboardInterrupt:
        session.save()
        raise


def _run_boot(boot: Boot, session: _Session) -> list[Measured]:
    """Run one guest and return its figures."""
    where = session.folder / "raw" / boot.folder
    where.mkdir(parents=True)
    _write_plan(where, boot, session)
    raw = _boot(boot, session, where)
    windows: dict[str, Window] = {_run_name(limit): limit for limit in boot.limits}
    if boot.direct:
        windows["direct"] = boot.direct
    two = boot.setting.variant == "two_bdi"
    if raw.failure:
        if not two and len(raw.runs) < len(boot.limits):
            raise LabError(f"{boot.label}: {raw.failure}")
        # A user's job may not work with direct I/O or over two devices: that costs the bound, not the result.
        missing = "two BDIs" if two else "direct I/O"
        session.note(f"{boot.device} {boot.fs}: no bound from {missing}: {raw.failure}")
    found: list[Measured] = []
    for run in raw.runs:
        if two and not _spread_over_both(run):
            session.note(f"{boot.device} {boot.fs}: no bound from two BDIs: the job's files cannot be spread")
            continue
        if run.dirty_settings:
            session.dirty_settings[run.name] = run.dirty_settings
        found.append(_measured(boot, raw, run, windows[run.name], where=where))
    return found


def _boot(boot: Boot, session: _Session, where: Path) -> Raw:
    """Boot the guest on its plan and return what guest/load.py read."""
    size = session.chosen.guest
    variant = boot.setting.variant
    count = 2 if variant == "two_bdi" else 1
    kernel = session.kernels.parallel if variant == "parallel" else session.kernels.stock
    # Isolated and without site packages: the guest has the host's Python, and nothing of ours for it.
    command = [str(Path(sys.executable).resolve()), "-I", "-S", str(LOAD), str(GUEST_RESULTS / "plan.json")]
    try:
        done = session.runner(
            kernel.path,
            command,
            fs=boot.fs,
            device=boot.device,
            settings=boot.setting.bdi_files,
            timeout_s=session.chosen.timeout_s,
            mem_mib=size.mem_mib,
            cpus=size.cpus,
            possible_cpus=size.possible_cpus,
            results=where,
            device_count=count,
            device_size_mib=size.device_mib // count,
            mkfs=session.chosen.mkfs.get(boot.fs, []),
        )
    except GuestError as error:
        raise GuestError(f"{boot.label}, round {boot.round}: {error}") from error
    (where / "console.txt").write_text(done.console, encoding="utf-8")
    if not (where / "raw.json").exists():
        raise LabError(
            f"{boot.label}: {LOAD.name} ended with status {done.status}, no figures: {done.output}"
        )
    raw = results.read_raw(where)
    session.releases[kernel.flavour] = raw.kernel
    return raw


def _measured(boot: Boot, raw: Raw, run: RawRun, window: Window, *, where: Path) -> Measured:
    """Work out the figures of one run, and make fio's file small."""
    fio_path = where / run.fio_json
    fio = results.read_fio(fio_path)
    fio_path.write_text(json.dumps(fio, separators=(",", ":")), encoding="utf-8")
    try:
        got = figures(
            raw,
            run,
            fio,
            ramp_s=window.ramp_s,
            window_s=window.window_s,
            between_mib=window.between_mib,
        )
    except LabError as error:
        raise LabError(f"{boot.label}: {error}") from error
    direct = run.name == "direct"
    change = {"variant": "direct", "contexts": None} if direct else {}
    key = Key(
        **dict(boot.setting) | change,
        device=boot.device,
        fs=boot.fs,
        dirty_limit_mib=None if direct else int(run.name.removeprefix("limit-")),
    )
    return Measured(key=key, round=boot.round, raw=f"raw/{where.name}/{run.fio_json}", figures=got)


def _write_plan(where: Path, boot: Boot, session: _Session) -> None:
    """Write what guest/load.py needs into the folder that the guest sees as its results folder."""
    chosen, text = session.chosen, session.text
    (where / "job.fio").write_text(text, encoding="utf-8")
    layout = None
    if not chosen.files:
        layout = "layout.fio"
        (where / layout).write_text(fiojob.layout_only(text), encoding="utf-8")
    runs = [_run(_run_name(limit), "job.fio", limit, limit.mib) for limit in boot.limits]
    if boot.direct:
        (where / "direct.fio").write_text(fiojob.direct(text), encoding="utf-8")
        runs.append(_run("direct", "direct.fio", boot.direct, None))
    plan = {
        "fio": _tool("fio", "fio"),
        "filefrag": _tool("filefrag", "e2fsprogs"),
        "sample_s": SAMPLE_S,
        "directories": fiojob.directories(text),
        "files": chosen.files.names if chosen.files else [],
        "size_mib": chosen.files.size_mib if chosen.files else 0,
        "empty": chosen.files.empty if chosen.files else False,
        "inodes": None if boot.setting.layout == "as-made" else boot.setting.layout,
        "modulus": chosen.files.modulus if chosen.files else None,
        "placement": boot.setting.placement,
        "layout_job": layout,
        "prepare": boot.setting.mounted + (chosen.prepare or "") or None,
        "spread": boot.setting.variant == "two_bdi",
        "runs": runs,
    }
    (where / "plan.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")


def _run(name: str, job: str, window: Window, limit_mib: int | None) -> dict[str, Any]:
    # fio takes no fractions of a second, but milliseconds.
    env = {"RAMP_S": f"{window.ramp_s * 1000:.0f}ms", "WINDOW_S": f"{(window.window_s or 0) * 1000:.0f}ms"}
    stop_mib = window.between_mib[1] if window.between_mib else None
    return {"name": name, "job": job, "dirty_limit_mib": limit_mib, "stop_mib": stop_mib, "env": env}


def _run_name(limit: Limit) -> str:
    return f"limit-{limit.mib}"


def _spread_over_both(run: RawRun) -> bool:
    written = [
        last - first for first, last in zip(run.samples[0].sectors, run.samples[-1].sectors, strict=True)
    ]
    return len(written) > 1 and min(written) >= MIN_SHARE * sum(written)


def _tool(name: str, package: str) -> str:
    """Find a program that the guest runs from the host's files."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")
    if found is None:
        raise LabError(f"{name} is not installed: install the Debian package {package}")
    return found


def _meta(session: _Session) -> dict[str, Any]:
    """Collect what the cells were measured with."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - session.began, 1),
        "host": {
            "cpus": len(os.sched_getaffinity(0)),
            "machine": platform.machine(),
            "kernel": platform.release(),
        },
        "kernels": {
            kernel.flavour: {
                "version": kernel.version,
                "release": session.releases.get(kernel.flavour),
                "identity": kernel.identity,
                "config_sha256": hashlib.sha256(kernel.config.read_bytes()).hexdigest(),
            }
            for kernel in (session.kernels.stock, session.kernels.parallel)
        },
        "fio": _output([_tool("fio", "fio"), "--version"]),
        "commit": _output(["git", "-C", str(REPO), "rev-parse", "--verify", "--quiet", "HEAD"]),
        "changed_files": len(_output(["git", "-C", str(REPO), "status", "--porcelain"]).splitlines()),
        "dirty_settings": session.dirty_settings,
        "notes": session.notes,
        "scenario": session.chosen.model_dump(mode="json"),
    }


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
