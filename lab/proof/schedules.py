# SPDX-License-Identifier: GPL-2.0
"""Schedules by the hundred: guests whose CPUs stall in and around our code, by seeds, and what was found."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from lab.bench import cluster
from lab.bench.cluster import SideBySide
from lab.machine import guest
from lab.machine.smp import Stalls
from lab.proof import places
from lab.result import provenance
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util import markdown
from lab.util.errors import GuestError, LabError
from lab.util.paths import REPO, cache_dir
from lab.util.progress import duration

NAME = "schedules"
MEM_MIB = 1536
FILESYSTEMS = ("xfs", "ext4", "f2fs")
# A program of tests.guest, and what it is run with.
LOADS = {
    "sync": "echo rotor > $PWB_BDI/wb_affinity; syncproof {fs} 2 --quick --resize",
    "resize": "resize {fs} 0.4 --quick",
    "cgroups": "cgroups {fs} 2",
    "workers": "echo 1 > $PWB_BDI/nwritebacks; echo 8 > $PWB_BDI/wb_workers; syncproof {fs} 2 --quick",
}
# On a busy host, with every check of the debug kernel, emulated one CPU at a time.
_TIMEOUT_S = 3600


@dataclass(frozen=True)
class Job:
    """A guest, and what it does while its CPUs stall.

    Attributes:
        kernel: path of its kernel.
        flavour: of the kernel.
        cpus: CPUs.
        load: one of :data:`LOADS`.
        seed: decides the filesystem, and where, when and for how long CPUs stall.
        places: file of the places where they may.
    """

    kernel: Path
    flavour: str
    cpus: int
    load: str
    seed: int
    places: Path

    @property
    def fs(self) -> str:
        """The filesystem."""
        return FILESYSTEMS[self.seed % len(FILESYSTEMS)]


@dataclass(frozen=True)
class Outcome:
    """What became of a guest.

    Attributes:
        load: what it did.
        fs: filesystem.
        kernel: flavour of the kernel.
        cpus: its CPUs.
        seed: of the stalls.
        stalls: how often a CPU stalled; 0 where the guest was ended.
        stalled_s: for how long, all CPUs together, in seconds of the guest.
        guest_s: seconds of the guest from its start to its end; 0 where it was ended.
        host_s: seconds of the host that it took.
        found: what was lost or wrong, or hung, or the kernel reported, a text; empty: nothing.
    """

    load: str
    fs: str
    kernel: str
    cpus: int
    seed: int
    stalls: int
    stalled_s: float
    guest_s: float
    host_s: float
    found: str

    @property
    def line(self) -> str:
        """Say it in one line; where something was found, in more, with the command that does it again."""
        of = f"{self.load}, {self.fs}, {self.cpus} CPUs, seed {self.seed}"
        if self.found:
            again = f"./pwb schedules --load {self.load} --seed {self.seed} --seeds 1 --cpus {self.cpus}"
            return f"{of}: FOUND ({duration(self.host_s)}); again: {again}\n{self.found}"
        stalled = f"{self.stalls:,} stalls, {self.stalled_s:.1f} s"
        return f"{of}: {stalled}, nothing found ({duration(self.host_s)})"


@contextmanager
def jobs(
    kernel: Kernel, source: Source, loads: Sequence[str], *, cpus: int, seeds: Sequence[int]
) -> Iterator[list[Job]]:
    """Hold jobs, and the file of places that they need: each load with each seed, the loads in turn.

    Args:
        kernel: what to boot, a kernel of the machine smp.
        source: what it was woven from.
        loads: names of :data:`LOADS`.
        cpus: CPUs of each guest.
        seeds: seeds of the stalls.
    """
    if kernel.symbols is None:
        raise LabError(f"CPUs stall on the machine smp: expected a kernel for it, not for {kernel.machine}")
    # Workers of a cluster see the cache.
    with tempfile.TemporaryDirectory(prefix=".schedules-", dir=cache_dir()) as folder:
        where = Path(folder) / "places"
        places.write(where, kernel.symbols, source)
        yield [Job(kernel.path, kernel.flavour, cpus, load, seed, where) for seed in seeds for load in loads]


def run(wanted: Sequence[Job], take: Callable[[Outcome], None], crew: SideBySide | None = None) -> None:
    """Run jobs side by side, and hand over what became of each as soon as it is known.

    Args:
        wanted: the jobs.
        take: is given each outcome.
        crew: runs them; None: this machine.

    Raises:
        LabError: a guest could not be set up, workers died on one, or the scheduler was lost.
    """
    cluster.hand_over(boot, wanted, take, mem_mib=MEM_MIB, runner=guest.run, crew=crew)


def boot(job: Job, *, stalls: bool = True) -> Outcome:
    """Boot a guest, and put the load on it.

    Args:
        job: what to do.
        stalls: whether its CPUs stall; without, to see what they are worth.
    """
    began = time.monotonic()
    clock: dict[str, float] = {}
    found = ""
    try:
        done = guest.run(
            job.kernel,
            ["sh", "-c", _script(job)],
            machine="smp",
            fs="none",
            device="nolat",
            cpus=job.cpus,
            mem_mib=MEM_MIB,
            # With several lanes it is up to the host what is first within a quantum.
            lanes=1,
            timeout_s=_TIMEOUT_S,
            stalls=Stalls(job.places, job.seed) if stalls else None,
        )
        clock = done.clock
        if done.status:
            found = f"the load ended with status {done.status}: {done.output[-2000:]}"
    except GuestError as error:
        found = str(error)
    return Outcome(
        load=job.load,
        fs=job.fs,
        kernel=job.flavour,
        cpus=job.cpus,
        seed=job.seed,
        stalls=int(clock.get("stalls", 0)),
        stalled_s=round(clock.get("stalled_ns", 0) / 1e9, 3),
        guest_s=round(clock.get("virtual_ns", 0) / 1e9, 3),
        host_s=round(time.monotonic() - began, 1),
        found=found,
    )


def _script(job: Job) -> str:
    """Return the load as a shell script: the last command's first word is a program of tests.guest."""
    *settings, program = LOADS[job.load].format(fs=job.fs).split("; ")
    python = ["env", f"PYTHONPATH={REPO}", "PYTHONHASHSEED=0", str(Path(sys.executable).resolve())]
    return "\n".join(["set -e", *settings, f"exec {shlex.join(python)} -S -m tests.guest.{program}"])


def keep(found: Sequence[Outcome], kernel: Kernel, folder: Path) -> None:
    """Add outcomes to those in a folder; one replaces that of the same guest and seed which found the same.

    Args:
        found: the outcomes, at least one.
        kernel: that of the guests.
        folder: of the result; what it has of another change is left behind.
    """
    provenance.add(folder, NAME, found, key=_key, kernels=[kernel], table=table)


def _key(one: Outcome) -> tuple[object, ...]:
    return *_guest_of(one), one.seed, one.found


def _guest_of(one: Outcome) -> tuple[str, str, int]:
    return one.kernel, one.load, one.cpus


def table(found: Sequence[Outcome]) -> str:
    """Return the table of schedules: a row for each load and number of CPUs."""
    rows = []
    for key, group in groupby(sorted(found, key=_guest_of), key=_guest_of):
        kernel, load, cpus = key
        each = list(group)
        seeds = sorted(one.seed for one in each)
        rows.append(
            [
                *(kernel, load, f"{seeds[0]} to {seeds[-1]}", str(cpus), str(len(seeds))),
                f"{sum(one.stalls for one in each):,}",
                f"{sum(one.stalled_s for one in each):.0f}",
                f"{sum(one.guest_s for one in each):.0f}",
                f"{sum(one.host_s for one in each) / 3600:.2f}",
                str(sum(bool(one.found) for one in each)),
            ]
        )
    columns = (
        *("kernel", "load", "seeds", "CPUs", "boots"),
        *("stalls", "stalled, s", "guest, s", "host, hours", "found"),
    )
    return markdown.table(columns, rows, left=3)
