# SPDX-License-Identifier: GPL-2.0
"""A result in the making: boots are run, or taken from the store, and their figures written down."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from lab.bench import boot_task
from lab.bench.boot_task import Kernels, Task, tool
from lab.bench.cluster import Crew
from lab.bench.search import Search, first_answer_first
from lab.bench.store import Store
from lab.experiment import fiojob, jobfile, schedule
from lab.experiment.measure import figures
from lab.experiment.raw import Raw, RawRun
from lab.experiment.scenario import Scenario
from lab.experiment.schedule import Boot, Step
from lab.profile.bottleneck import Bottleneck, bottleneck
from lab.profile.summary import Profile
from lab.result import page, plots, profile, provenance, report, results, verdict
from lab.result.provenance import TABLE
from lab.result.results import Clock, Key, Measured
from lab.result.verdict import Group
from lab.util.errors import LabError
from lab.util.process import output
from lab.util.progress import duration

# Figures of a whole run, whatever part of it counts for the others.
OF_THE_WHOLE_RUN = (
    "latency_mean_us",
    "latency_p99_us",
    "read_latency_p99_us",
    "read_mib_s",
    "slowest_job_mib_s",
    "sync_s",
    "seconds",
    "extents",
    "extents_sum",
)
# Separate BDIs bound anything only where all of them get work: of an even share at least this.
MIN_SHARE = 0.2


@dataclass
class _Session:
    """One result in the making: what is measured, with what, and what came out so far."""

    chosen: Scenario
    kernels: Kernels
    folder: Path
    job: str
    crew: Crew
    out: Console
    store: Store | None = None
    is_fresh: bool = False
    budget_s: float | None = None
    boots: list[Boot] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    measured: dict[Boot, list[Measured]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    dirty_settings: dict[str, dict[str, int]] = field(default_factory=dict)
    releases: dict[str, str] = field(default_factory=dict)
    found: list[Boot] = field(default_factory=list)

    @property
    def remaining_s(self) -> float:
        """Scale what is left of the estimate by how the estimate did so far."""
        missing = [boot for boot in self.boots if boot not in self.found]
        done_s = sum(boot.estimate_s for boot in missing if boot in self.measured)
        left_s = sum(boot.estimate_s for boot in missing if boot not in self.measured)
        pace = (time.monotonic() - self.began) / done_s if done_s else 1 / self.crew.size
        return left_s * pace if self.budget_s is None else min(left_s * pace, self.budget_left_s)

    @property
    def budget_left_s(self) -> float:
        """Return the seconds that are left of the budget; without one there is no end."""
        return math.inf if self.budget_s is None else max(0.0, self.began + self.budget_s - time.monotonic())

    def has_time(self) -> bool:
        """Say whether another boot may begin."""
        return self.budget_left_s > 0

    def note(self, text: str) -> None:
        """Keep a remark for the end, once."""
        if text not in self.notes:
            self.notes.append(text)

    def save(self) -> list[results.Cell]:
        """Write what was measured so far."""
        listed = [one for boot in self.boots for one in self.measured.get(boot, [])]
        found = results.cells(self.chosen.name, listed)
        results.write(self.folder, found, _meta(self))
        results.write_runs(self.folder, listed)
        return found


def measure(
    chosen: Scenario,
    kernels: Kernels,
    *,
    job_folder: Path,
    crew: Crew,
    store: Store | None = None,
    fresh: bool = False,
    root: Path = results.RESULTS,
    console: Console | None = None,
    notes: Sequence[str] = (),
    budget_s: float | None = None,
    profiled: bool = False,
) -> Path:
    """Run every boot of a scenario and write the result.

    Args:
        chosen: the scenario, checked.
        kernels: the kernels to compare.
        job_folder: where the job's included files are.
        crew: runs the boots.
        store: where boots are kept that need not be measured again; None: nowhere.
        fresh: whether to measure again what is kept.
        root: where results go.
        console: where tables and progress go; None: standard output.
        notes: remarks on the circumstances, for the end.
        budget_s: seconds after which no further boot begins; what runs then ends. With them rounds are added
            for what is open. None: what the scenario lists, and no more.
        profiled: whether every run gets a profile; with a budget stock and the best setting get one anyway.

    Returns:
        The results folder; ``latest`` beside it points to it.

    Raises:
        LabError: a guest or fio failed. What was measured until then stays in a folder whose name ends in
            ``.incomplete``.
    """
    out = console or report.terminal()
    job = fiojob.for_the_guest(chosen.name, chosen.job.text, job_folder)
    folder = results.create(root)
    boots = [replace(boot, is_profiled=profiled) for boot in schedule.boots(chosen)]
    search = None
    if budget_s is not None:
        boots = first_answer_first(boots)
        search = Search(boots, jobfile.hopeless(chosen), crew.size)
    session = _Session(
        chosen, kernels, folder, job, crew, out, store, fresh, budget_s=budget_s, notes=list(notes)
    )
    with _kept_when_interrupted(session):
        while boots:
            session.boots += boots
            _measure_boots(session, boots)
            judged = _judged(session.save())
            boots = search.further(judged) if search and session.budget_left_s else []
        for text in search.untried(judged) if search else []:
            session.note(text)
        found = session.save()
        (session.folder / TABLE).write_text(report.markdown(found, session.notes), encoding="utf-8")
        plots.draw(session.folder, found)
    final = results.publish(session.folder)
    # Last, for a page says of a folder without its final name that the run was interrupted.
    page.write(final)
    report.show(out, found, session.notes, final)
    return final


def _measure_boots(session: _Session, boots: list[Boot]) -> None:
    """Take boots that are known already, and run the others until the budget is used up."""
    tasks = [
        boot_task.task(
            boot, session.chosen, session.kernels, session.job, session.folder / "raw" / boot.folder
        )
        for boot in boots
    ]
    by_folder = {task.folder: boot for task, boot in zip(tasks, boots, strict=True)}
    missing = []
    out, store = session.out, session.store
    for task in tasks:
        if store is not None and not session.is_fresh and store.fetch(task):
            session.found.append(by_folder[task.folder])
            _take(session, by_folder[task.folder], task)
        else:
            missing.append(task)
    out.print(_beginning(session, boots), markup=False, highlight=False)
    with out.status("") as status:
        status.update(escape(f"{duration(session.remaining_s)} left"))
        # What runs elsewhere is ended here and now, whatever goes wrong.
        go_on = None if session.budget_s is None else session.has_time
        with closing(session.crew.run(missing, go_on)) as ended:
            for task in ended:
                boot = by_folder[task.folder]
                new = _take(session, boot, task)
                if store is not None:
                    store.keep(task)
                place = f"[{len(session.measured)}/{len(session.boots)}] {task.label}"
                line = f"{place}: {_rates(new) or 'no'} MiB/s, {duration(session.remaining_s)} left"
                out.print(line, markup=False, highlight=False)
                # After each boot: nothing may be left to do it later, as when memory runs out.
                found = session.save()
                if session.budget_s is not None:
                    for said in _so_far(_judged(found), boot):
                        out.print(said, markup=False, highlight=False)
                status.update(escape(f"{duration(session.remaining_s)} left"))
    left = [boot for boot in boots if boot not in session.measured]
    if left:
        session.boots = [boot for boot in session.boots if boot not in left]
        for text in _left_out(left):
            session.note(text)


def _left_out(boots: list[Boot]) -> list[str]:
    """Say what the time did not suffice for: of each filesystem and round."""
    found: dict[str, list[str]] = {}
    for boot in boots:
        rig = report.Rig(boot.device, boot.machine, boot.cpus)
        where = f"on {boot.fs} in round {boot.round}, device {rig.label}"
        found.setdefault(where, []).extend(step.setting.label for step in boot.steps)
    return [
        f"left out {where}, for the time was up (--budget gives more): {'; '.join(dict.fromkeys(labels))}"
        for where, labels in found.items()
    ]


def _judged(found: list[results.Cell]) -> dict[Group, verdict.Verdict]:
    return verdict.verdicts(report.in_order(found))


def _so_far(judged: dict[Group, verdict.Verdict], boot: Boot) -> list[str]:
    """Say what is known by now of the filesystem of a boot, where there is something to compare."""
    return [
        f"  so far, {group.fs} at {group.dirty_limit_mib} MiB: {one.text}"
        for group, one in judged.items()
        if group.fs == boot.fs and one.stock
    ]


def _beginning(session: _Session, boots: list[Boot]) -> str:
    found = [boot for boot in boots if boot in session.found]
    count = len(boots) - len(found)
    again = "" if boots[0].round == 1 else f", round {boots[0].round}"
    text = f"{session.chosen.title}{again}: {count} boots, about {duration(session.remaining_s)}"
    if session.crew.size > 1:
        text += f", {session.crew.size} side by side"
    if found:
        text += (
            f"; {len(found)} of {len(boots)} were measured before and are taken from the cache "
            "(--fresh measures them again)"
        )
    return text


def _rates(measured: list[Measured]) -> str:
    return " / ".join(f"{one.figures.mib_s:.0f}" for one in measured)


@contextmanager
def _kept_when_interrupted(session: _Session) -> Iterator[None]:
    """Save what was measured when a run breaks off, and say where."""
    try:
        yield
    except LabError as error:
        session.save()
        raise type(error)(f"{error}\nwhat was measured until then is in {session.folder}") from error
    except BaseException:
        session.save()
        raise


def _take(session: _Session, boot: Boot, task: Task) -> list[Measured]:
    """Work out the figures of a boot that was run, and add them to the session."""
    raw = results.read_raw(task.folder)
    clock = Clock.read(json.loads((task.folder / boot_task.CLOCK).read_text(encoding="utf-8")))
    session.releases[boot.setting.flavour] = raw.kernel
    steps = {step.name: step for step in boot.steps}
    is_bound = boot.setting.variant == "bdis"
    if raw.failure:
        wanted = sum(step.dirty_limit_mib is not None for step in boot.steps)
        if not is_bound and len(raw.runs) < wanted:
            raise LabError(f"{task.label}: {raw.failure}")
        # A user's job may not work with direct I/O or over several devices: that costs the bound only.
        missing = "separate BDIs" if is_bound else "direct I/O"
        session.note(f"{boot.device} {boot.fs}: no bound from {missing}: {raw.failure}")
    found: list[Measured] = []
    for run in raw.runs:
        if is_bound and not _spread_over_all(run):
            session.note(
                f"{boot.device} {boot.fs}: no bound from separate BDIs: the job's files cannot be spread"
            )
            continue
        if run.dirty_settings:
            session.dirty_settings[f"limit-{steps[run.name].dirty_limit_mib}"] = run.dirty_settings
        _make_small(task.folder / run.fio_json)
        found.append(
            _measured(
                boot,
                steps[run.name],
                raw,
                run,
                parts=session.chosen.parts,
                is_stopped=session.chosen.stopped_after_s is not None,
                clock=clock,
                folder=task.folder,
            )
        )
    session.measured[boot] = found
    return found


def _make_small(fio_json: Path) -> None:
    """Write fio's JSON anew, without the spaces that are half of it."""
    text = json.dumps(results.read_fio(fio_json), separators=(",", ":"))
    fio_json.write_text(text, encoding="utf-8")


def _measured(
    boot: Boot,
    step: Step,
    raw: Raw,
    run: RawRun,
    *,
    parts: int,
    is_stopped: bool,
    clock: Clock | None,
    folder: Path,
) -> Measured:
    """Work out the figures of one run."""
    fio = results.read_fio(folder / run.fio_json)
    window = step.window
    try:
        got = figures(
            raw,
            run,
            fio,
            ramp_s=window.ramp_s,
            window_s=window.window_s,
            between_mib=window.between_mib,
            from_device=is_stopped and window.window_s is not None,
            parts=parts,
        )
    except LabError as error:
        raise LabError(f"{boot.label}: {error}") from error
    if is_stopped and step.is_later:
        # The others are stopped earlier: a run that is longer has written more.
        got = got.model_copy(update=dict.fromkeys(OF_THE_WHOLE_RUN))
    key = Key(
        **dict(step.setting),
        machine=boot.machine,
        cpus=boot.cpus,
        device=boot.device,
        fs=boot.fs,
        dirty_limit_mib=step.dirty_limit_mib,
    )
    raw_path = f"raw/{folder.name}/{run.fio_json}"
    limit = _bottleneck(folder / run.name / profile.JSON)
    return Measured(key=key, round=boot.round, raw=raw_path, figures=got, clock=clock, bottleneck=limit)


def _bottleneck(path: Path) -> Bottleneck | None:
    """Pick what limits a run from its profile; None if it has none."""
    if not path.exists():
        return None
    return bottleneck(Profile.model_validate_json(path.read_text(encoding="utf-8")))


def _spread_over_all(run: RawRun) -> bool:
    written = [
        last - first for first, last in zip(run.samples[0].sectors, run.samples[-1].sectors, strict=True)
    ]
    if len(written) < len(run.written_kib):  # RAM disks count together.
        written = run.written_kib
    return min(written) >= MIN_SHARE * statistics.fmean(written)


def _meta(session: _Session) -> dict[str, Any]:
    """Collect what the cells were measured with."""
    kernels = session.kernels.values()
    return provenance.collect(session.chosen.view, kernels, session.releases) | {
        "seconds": round(time.monotonic() - session.began, 1),
        "side_by_side": session.crew.size,
        "boots_from_cache": len(session.found),
        "fio": output([tool("fio", "fio"), "--version"]),
        "dirty_settings": session.dirty_settings,
        "budget_s": session.budget_s,
        "notes": session.notes,
        "scenario": session.chosen.model_dump(mode="json"),
    }
