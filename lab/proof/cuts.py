# SPDX-License-Identifier: GPL-2.0
"""Power cuts by the thousand: guests that cut the power of their devices, and what they found."""

from __future__ import annotations

import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from lab.bench import cluster
from lab.bench.cluster import SideBySide
from lab.machine import guest
from lab.result import provenance
from lab.tree.build import Kernel
from lab.util import markdown
from lab.util.errors import GuestError
from lab.util.paths import REPO
from lab.util.progress import duration

NAME = "cuts"
# A boot costs as much as a few cuts, and one that fails is what has to be run again.
CUTS_PER_BOOT = 50
MEM_MIB = 1536
# On a busy host, with every check of the debug kernel, emulated.
_SLOWEST_CUT_S = 60


@dataclass(frozen=True)
class Job:
    """A guest, and how often it cuts the power.

    Attributes:
        kernel: path of its kernel.
        flavour: of the kernel.
        machine: as for :func:`lab.machine.guest.run`.
        cpus: CPUs.
        fs: filesystem.
        seed: decides what the writers do, the settings, and what the device keeps.
        cuts: how many cuts.
    """

    kernel: Path
    flavour: str
    machine: str
    cpus: int
    fs: str
    seed: int
    cuts: int


@dataclass(frozen=True)
class Outcome:
    """What became of a guest's cuts.

    Attributes:
        fs: filesystem.
        kernel: flavour of the kernel.
        machine: the guest's machine.
        cpus: its CPUs.
        seed: replays what it did.
        cuts: how many cuts were done.
        promised: sectors and names that had to be there, over all cuts.
        longer: files that held what was promised, and more behind it.
        lost: what was lost, a text each; also a report of the kernel.
        host_s: seconds of the host that it took.
        mended: filesystems whose superblock had to be mended before they could be mounted.
        passes: passes of the workers of AG-aware writeback, over all cuts.
        settings: how many cuts had each setting in force at the start of their load, such as
            ``nwritebacks auto``; empty where the kernel has none, or it was not noted.
        taken: how often the filesystem took each thing that it may refuse, such as a write stream; empty
            where it was not noted.
    """

    fs: str
    kernel: str
    machine: str
    cpus: int
    seed: int
    cuts: int
    promised: int
    longer: int
    lost: list[str]
    host_s: float
    mended: int = 0
    passes: int = 0
    settings: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Say it in one line."""
        of = f"{self.fs}, {self.kernel} kernel, {self.machine}, {self.cpus} CPUs, seed {self.seed}"
        lost = f"LOST {len(self.lost)}: {self.lost[0]}" if self.lost else "nothing lost"
        return f"{of}: {self.cuts} cuts, {self.promised:,} promises, {lost} ({duration(self.host_s)})"

    @property
    def cuts_with_a_loss(self) -> int:
        """Return after how many cuts something was missing; a guest that failed counts as one."""
        return len({_cut_of(what) for what in self.lost})


def _cut_of(what: str) -> int | None:
    """Return the number of the cut that lost something; None: the guest itself failed."""
    try:
        found = json.loads(what)
    except ValueError:
        return None
    return int(found["cut"])


def jobs(
    kernel: Kernel,
    filesystems: Sequence[str],
    *,
    cpus: int,
    cuts: int,
    seed: int,
    per_boot: int = CUTS_PER_BOOT,
) -> list[Job]:
    """Deal cuts out to boots, the filesystems in turn.

    Args:
        kernel: what to boot, on its machine.
        filesystems: each gets so many cuts.
        cpus: CPUs of each guest.
        cuts: cuts for each filesystem.
        seed: of the first boot of each filesystem; the next one has the next.
        per_boot: cuts of a boot.
    """
    sizes = [min(per_boot, cuts - done) for done in range(0, cuts, per_boot)]
    return [
        Job(kernel.path, kernel.flavour, kernel.machine, cpus, fs, seed + number, size)
        for number, size in enumerate(sizes)
        for fs in filesystems
    ]


def run(
    wanted: Sequence[Job],
    take: Callable[[Outcome], None],
    crew: SideBySide | None = None,
    go_on: Callable[[], bool] | None = None,
) -> None:
    """Run jobs side by side, and hand over what became of each as soon as it is known.

    Args:
        wanted: the jobs.
        take: is given each outcome.
        crew: runs them; None: this machine.
        go_on: asked whether another guest may begin; None: all of them are wanted.

    Raises:
        LabError: a guest could not be set up, workers died on one, or the scheduler was lost.
    """
    # User-mode Linux has its CPUs at once only on as many cores; in virtual time one core does for all.
    own_cores = all(job.machine == "smp" for job in wanted)
    cluster.hand_over(
        boot, wanted, take, go_on, mem_mib=MEM_MIB, runner=guest.run, crew=crew, own_cores=own_cores
    )


def boot(job: Job, *, lie: bool = False) -> Outcome:
    """Boot a guest and have it cut the power.

    Args:
        job: what to do.
        lie: have it promise what it does not sync, to see that the check sees that.
    """
    python = str(Path(sys.executable).resolve())
    command = ["env", f"PYTHONPATH={REPO}", python, "-S", "-m", "tests.guest.cuts"]
    command += [job.fs, str(job.seed), str(job.cuts), *(["--lie"] if lie else [])]
    began = time.monotonic()
    said = io.StringIO()
    failed = []
    try:
        done = guest.run(
            job.kernel,
            command,
            machine=job.machine,
            fs="none",
            device="nolat",
            cpus=job.cpus,
            mem_mib=MEM_MIB,
            timeout_s=300 + _SLOWEST_CUT_S * job.cuts,
            stream=said,
        )
        if done.status:
            failed = [f"the guest's program ended with status {done.status}: {done.output[-2000:]}"]
    except GuestError as error:
        failed = [str(error)]
    each = _told(said.getvalue())
    if not failed and len(each) < job.cuts:
        failed = [f"the guest told of {len(each)} cuts, expected {job.cuts}"]
    settings: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for one in each:
        settings.update(f"{name} {value}" for name, value in one["way"].items())
        taken.update(one["taken"])
    return Outcome(
        fs=job.fs,
        kernel=job.flavour,
        machine=job.machine,
        cpus=job.cpus,
        seed=job.seed,
        cuts=len(each),
        promised=sum(one["promised"] for one in each),
        longer=sum(one["longer"] for one in each),
        mended=sum(one["mended"] for one in each),
        passes=sum(one["passes"] for one in each),
        settings=dict(settings),
        taken=dict(taken),
        lost=[*_lost(each), *failed],
        host_s=round(time.monotonic() - began, 1),
    )


def _told(said: str) -> list[dict[str, Any]]:
    """Return what a guest has told of each cut, whatever became of it amid the next one."""
    lines = [line for line in said.splitlines(keepends=True) if line.startswith('{"cut":')]
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _lost(each: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what was lost by cuts, with the number and the settings of each."""
    return [
        json.dumps({"cut": one["cut"], "way": one["way"], "what": what})
        for one in each
        for what in one["lost"]
    ]


def keep(found: Sequence[Outcome], kernel: Kernel, folder: Path) -> None:
    """Add outcomes to those in a folder; one replaces that of the same guest and seed which lost the same.

    With another timing a seed may lose nothing, which does not undo what it has lost.

    Args:
        found: the outcomes, at least one.
        kernel: that of the guests.
        folder: of the result; what it has of another change is left behind.
    """
    provenance.add(folder, NAME, found, key=_key, kernels=[kernel], table=table)


def _key(one: Outcome) -> tuple[object, ...]:
    return *_guest_of(one), one.seed, tuple(one.lost)


def _guest_of(one: Outcome) -> tuple[str, str, int, str]:
    return one.kernel, one.machine, one.cpus, one.fs


def table(found: Sequence[Outcome]) -> str:
    """Return the table of cuts, a row for each kind of guest; below it the settings, and what was taken."""
    settings = _counts_table("setting", found, lambda one: one.settings)
    taken = _counts_table("taken", found, lambda one: one.taken)
    return (
        _cuts_table(found)
        + (f"\nCuts with each setting in force:\n\n{settings}" if settings else "")
        + (f"\nHow often a filesystem took what it may refuse:\n\n{taken}" if taken else "")
    )


def _counts_table(
    title: str, found: Sequence[Outcome], counts_of: Callable[[Outcome], Mapping[str, int]]
) -> str:
    every = {fs: Counter[str]() for fs in sorted({one.fs for one in found})}
    for one in found:
        every[one.fs].update(counts_of(one))
    names = sorted({name for counts in every.values() for name in counts})
    rows = [[name, *(f"{counts[name]:,}" for counts in every.values())] for name in names]
    return markdown.table((title, *every), rows, left=1) if rows else ""


def _cuts_table(found: Sequence[Outcome]) -> str:
    rows = []
    for key, group in groupby(sorted(found, key=_guest_of), key=_guest_of):
        kernel, machine, cpus, fs = key
        each = list(group)
        seeds = sorted(one.seed for one in each)
        rows.append(
            [
                *(kernel, machine, fs, f"{seeds[0]} to {seeds[-1]}", str(cpus)),
                f"{sum(one.cuts for one in each):,}",
                f"{sum(one.promised for one in each):,}",
                str(sum(one.cuts_with_a_loss for one in each)),
                str(sum(len(one.lost) for one in each)),
                str(sum(one.longer for one in each)),
                str(sum(one.mended for one in each)),
                f"{sum(one.passes for one in each):,}",
                f"{sum(one.host_s for one in each) / 3600:.2f}",
            ]
        )
    columns = (
        "kernel",
        "machine",
        "filesystem",
        "seeds",
        "CPUs",
        "cuts",
        "promises",
        "cuts with a loss",
        "things lost",
        "longer files",
        "superblocks mended",
        "passes of workers",
        "hours",
    )
    return markdown.table(columns, rows, left=4)
