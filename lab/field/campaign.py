# SPDX-License-Identifier: GPL-2.0
"""Rounds of a job on the kernel that runs: every number of contexts once a round, in random order."""

from __future__ import annotations

import datetime
import fcntl
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guest.sampler import MIB, Sampler, parse_vmstat
from guest.settings import dirty_settings, set_dirty_limit
from lab.field import record, signals, trial
from lab.field.job import Job
from lab.field.place import Place, System, machine, most_contexts
from lab.field.record import Record, Trial
from lab.field.undo import CONTEXTS, Work
from lab.util.errors import LabError

AUTO = "auto"
#: With fewer rounds there is no interval: one chooses the setting, the others judge it.
ROUNDS_JUDGED = 3
#: Less than this is what a filesystem writes of its own accord.
QUIET_MIB_S = 1.0
#: A run of fewer seconds has no steady state to measure: some are left out at its beginning.
LEAST_S = 10.0
# How long the device is looked at before anything runs.
LOOK_S = 2.0
# Settings of a device's contexts that stay as they are, and are recorded.
_LEFT_ALONE = ("wb_affinity", "wb_workers")


class BusyError(LabError):
    """Another run is going on."""


@dataclass(frozen=True)
class Options:
    """What an administrator asks for.

    Attributes:
        contexts: numbers of contexts to try, or ``auto``; None: powers of two up to the CPUs, and auto.
        rounds: at most so many.
        budget_s: no run begins that would end later, by the longest one so far; the first always does.
        dirty_limit_mib: for ``vm.dirty_bytes`` during the runs; None: ``vm.dirty_*`` stay as they are.
    """

    contexts: list[int | str] | None = None
    rounds: int = 5
    budget_s: float = 1800.0
    dirty_limit_mib: int | None = None


@dataclass(frozen=True)
class Campaign:
    """What to measure, where and how.

    Attributes:
        place: where to measure.
        job: what to run.
        options: how.
        system: where the kernel shows itself.
        results: folder of the records.
        commit: that the archive's kernel with contexts was made at, or else the archive; empty if not known.
        say: is told what happens, line by line.
    """

    place: Place
    job: Job
    options: Options
    system: System
    results: Path
    commit: str
    say: Callable[[str], None]

    @property
    def _asked(self) -> list[int | str]:
        return self.options.contexts or [*_powers(os.cpu_count() or 1), AUTO]

    @property
    def settings(self) -> list[int | str]:
        """Return the numbers of contexts to try, or ``auto``; on a stock kernel 1 alone."""
        return self._asked if self.place.is_parallel else [1]

    @property
    def most_s(self) -> float:
        """Return the seconds after which a run of the job is ended, on stock as on parallel.

        Three rounds on the parallel kernel fit into the budget.
        """
        return self.options.budget_s / (ROUNDS_JUDGED * len(self._asked))

    @property
    def sets_limits(self) -> bool:
        """Say whether ``vm.dirty_*`` are set."""
        return self.options.dirty_limit_mib is not None

    @property
    def dirty_limit_mib(self) -> int:
        """Return the MiB at which writers are held: what is asked for, or what the kernel has worked out."""
        if self.options.dirty_limit_mib is not None:
            return self.options.dirty_limit_mib
        vmstat = parse_vmstat((self.system.proc / "vmstat").read_text())
        return vmstat["nr_dirty_threshold"] * os.sysconf("SC_PAGE_SIZE") // MIB

    def check(self) -> None:
        """Check that a run can be made.

        Raises:
            LabError: there is too little room or time, contexts are more than a kernel takes, or a setting
                may not be written.
        """
        place, job = self.place, self.job
        if self.most_s < LEAST_S:
            raise LabError(
                f"a budget of {self.options.budget_s / 60:g} minutes leaves {self.most_s:.1f} s to each run: "
                f"expected at least {LEAST_S:g} s; raise --budget, or try less by --contexts"
            )
        most = most_contexts(self.system)
        # Also on a stock kernel: the same list gives its runs the time that those on the parallel one get.
        if too_many := [number for number in self._asked if isinstance(number, int) and number > most]:
            raise LabError(
                f"--contexts has {', '.join(map(str, too_many))}: expected at most {most}, which is four for "
                "each possible CPU of this machine; name fewer"
            )
        if job.files_mib > place.usable_mib:
            raise LabError(
                f"{place.folder} has {place.free_mib:.0f} MiB free, and the files of job {job.name} take "
                f"{job.files_mib:.0f} MiB: expected them to leave a twentieth of the filesystem free; lower "
                "size= in the job, or make room"
            )
        written = [place.bdi / CONTEXTS] if place.is_parallel else []
        written += [self.system.vm / "dirty_bytes"] if self.sets_limits else []
        for path in written:
            if not os.access(path, os.W_OK):
                raise LabError(f"{path} cannot be written: expected root; run this as root")

    def written_by_others_mib_s(self) -> float:
        """Return what reaches the device while nothing of ours runs, in MiB/s."""
        sampler = Sampler([self.place.sysfs], self.system.proc)
        sampler.sample()
        time.sleep(LOOK_S)
        sampler.sample()
        sampler.close()
        return round(sampler.written_mib() / LOOK_S, 1)

    def run(self) -> Path:
        """Measure on the kernel that runs, and put everything back.

        Returns:
            The record's file, which has every run that came to its end, also after an error.

        Raises:
            LabError: as for :meth:`check`; another run is going; a setting is refused.
            guest.plan.LoadError: fio failed.
        """
        with alone(self.system):
            clean(self.place, self.system, self.say)
            self.check()
            others = self.written_by_others_mib_s()
            work = Work(self.place, self.system)
            try:
                work.begin(limits=self.sets_limits)
                if self.options.dirty_limit_mib is not None:
                    self._limit(self.options.dirty_limit_mib)
                begun = record.resume(self._record(others), self.results)
                return self._rounds(begun, work.folder)
            finally:
                try:
                    self._put_back(work)
                except signals.Signalled:
                    # The first signal, just before it was ignored: there is no second one.
                    self._put_back(work)
                    raise

    def _put_back(self, work: Work) -> None:
        with signals.ignored():
            for line in work.end():
                self.say(line)

    def _rounds(self, begun: Record, work: Path) -> Path:
        first, path = begun.rounds + 1, self.results / begun.file_name
        end = time.monotonic() + self.options.budget_s
        longest_round_s, longest_run_s = 0.0, 0.0
        for number in range(first, first + self.options.rounds):
            round_began = time.monotonic()
            if round_began + longest_round_s > end:
                self.say(f"another round does not fit into the budget: {number - first} are done")
                break
            for contexts in random.sample(self.settings, len(self.settings)):
                run_began = time.monotonic()
                if run_began + longest_run_s > end:
                    self.say(f"another run does not fit into the budget: round {number} is not whole")
                    return path
                self._set(contexts)
                raw, fio = trial.measure(self.place, work, self.job, self.system, self.most_s)
                self._check_set(contexts)
                begun.runs.append(Trial(number, contexts, raw, fio))
                path = record.save(begun, self.results)
                name = f"contexts: {contexts}" if self.place.is_parallel else "stock"
                self.say(f"round {number}, {name}: {_rate(raw):.0f} MiB/s at the device, final sync included")
                longest_run_s = max(longest_run_s, time.monotonic() - run_began)
            longest_round_s = max(longest_round_s, time.monotonic() - round_began)
        return path

    def _limit(self, mib: int) -> None:
        try:
            set_dirty_limit(mib, self.system.vm)
        except OSError as error:
            raise LabError(
                f"the kernel refuses {mib} MiB for {self.system.vm / 'dirty_bytes'} ({error.strerror}): "
                "expected less than the machine's memory; name another limit by --dirty-limit-mib"
            ) from None

    def _set(self, contexts: int | str) -> None:
        if not self.place.is_parallel:
            return
        path = self.place.bdi / CONTEXTS
        try:
            path.write_text(str(contexts))
        except OSError as error:
            raise LabError(
                f"the kernel refuses {contexts} for {path} ({error.strerror}): expected auto, or 1 to 4 "
                "times the possible CPUs; name others by --contexts"
            ) from None

    def _check_set(self, contexts: int | str) -> None:
        """Raise LabError where somebody else has set the number during a run."""
        if not self.place.is_parallel:
            return
        path = self.place.bdi / CONTEXTS
        found = path.read_text().split()[0]
        if found != str(contexts):
            raise LabError(
                f"{path} is {found} after a run with {contexts}: expected nobody else to set it meanwhile; "
                "take the disk's line out of /etc/wbctl.conf for the time of the run"
            )

    def _record(self, others_mib_s: float) -> Record:
        place = self.place
        files = (place.bdi / name for name in _LEFT_ALONE)
        return Record(
            kind="parallel" if place.is_parallel else "stock",
            release=os.uname().release,
            version=os.uname().version,
            machine=machine(self.system),
            drive=place.drive,
            filesystem=place.filesystem,
            job=self.job.name,
            text=self.job.text,
            files_mib=self.job.files_mib,
            fio=_fio_version(),
            dirty_settings=dirty_settings(self.system.vm),
            dirty_limit_mib=self.dirty_limit_mib,
            bdi={path.name: path.read_text().strip() for path in files if path.exists()},
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            others_mib_s=others_mib_s,
            commit=self.commit,
        )


@contextmanager
def alone(system: System) -> Iterator[None]:
    """Hold the lock that one run on this machine may have: on a folder of the kernel's, nothing is written.

    Raises:
        BusyError: another run has it.
    """
    folder = os.open(system.sys / "class" / "bdi", os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "another ./field run is going on this machine: expected one at a time; wait until it ends, "
                "or stop it with Ctrl-C"
            ) from None
        yield
    finally:
        os.close(folder)


def clean(place: Place, system: System, say: Callable[[str], None]) -> None:
    """Put back what a run that was killed has left.

    Raises:
        LabError: what lies there is not from a run of this user.
    """
    work = Work(place, system)
    if work.is_left():
        with signals.ignored():
            said = work.end()
        for line in (f"an earlier run was killed: {work.folder} is removed", *said):
            say(line)


def _fio_version() -> str:
    done = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(
            f"fio --version fails ({done.stderr.strip() or done.returncode}): expected its version; install "
            "fio anew"
        )
    return done.stdout.strip()


def _powers(cpus: int) -> list[int | str]:
    """Return 1, 2, 4 and so on, and the number of CPUs."""
    return [*(1 << bit for bit in range(cpus.bit_length()) if 1 << bit < cpus), cpus]


def _rate(raw: dict[str, Any]) -> float:
    """Return the rate of a whole run, to show that something happens."""
    samples = raw["runs"][0]["samples"]
    sectors = sum(samples[-1]["sectors"]) - sum(samples[0]["sectors"])
    return float(sectors * 512 / MIB / (samples[-1]["t"] - samples[0]["t"]))
