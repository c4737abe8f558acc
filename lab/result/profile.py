# SPDX-License-Identifier: GPL-2.0
"""The profile of a guest: flame graphs, tables and figures, from what ``vtime.so`` recorded."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from lab.machine.smp import SYMBOLS
from lab.profile import flamegraph, offcpu, oncpu, stacks, table
from lab.profile.offcpu import Sleep
from lab.profile.oncpu import Sample
from lab.profile.record import Record
from lab.profile.stacks import Departure
from lab.profile.summary import PIECES, Profile, summed_up, windows
from lab.profile.symbols import Symbols
from lab.util.errors import LabError

_Result = TypeVar("_Result")

SVG, SLEEP_SVG, MARKDOWN, JSON = "profile.svg", "profile-sleep.svg", "profile.md", "profile.json"


def report(record: Path, symbols: Path, folder: Path, names: Sequence[str] = ()) -> Profile:
    """Write profile.svg, profile-sleep.svg, profile.md and profile.json.

    Where the command marked several times to look at, or one that has a name, each of them has such files
    too, in a folder below.

    Args:
        record: what ``vtime.so`` wrote.
        symbols: System.map of the kernel that ran.
        folder: where to write, made if missing.
        names: of the folders for several times, in order; those without a name are numbered.

    Raises:
        LabError: a file is not what it should be, or has no sample in it.
    """
    read = Record.read(record)
    if not len(read.kind):
        raise LabError(f"{record}: expected samples, found none: the guest ended before it ran anything")
    addresses = Symbols(symbols)
    named = [stacks.frames(stack, addresses) for stack in read.stacks]
    absent, why = offcpu.absences(read), offcpu.waits(read, named)
    chosen = windows(offcpu.marks(absent, why), int(read.time_ns.min()), int(read.time_ns.max()))
    parts = {folder: chosen}
    if names or len(chosen) > 1:
        called = [*names, *(f"{number + 1}" for number in range(len(names), len(chosen)))]
        parts |= {folder / name: [window] for name, window in zip(called, chosen, strict=False)}
    found = {}
    for where, part in parts.items():
        ran = oncpu.samples(read, named, part)
        slept = offcpu.sleeps(absent, named, why, part)
        throttled = offcpu.asleep(absent, why, stacks.THROTTLE, part, PIECES)
        found[where] = summed_up(read, part, ran, slept, throttled=throttled, gaps=absent.gaps)
        _write(where, found[where], ran, slept)
    return found[folder]


def _write(folder: Path, found: Profile, ran: Sequence[Sample], slept: Sequence[Sleep]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    times = f"{found.cpus} CPUs, {found.seconds:.3f} s of virtual time"
    waited = [one.drawn() for one in slept if one.wait.departure is Departure.WAITS]
    for name, title, graph in (
        (SVG, "On a CPU", [one.drawn() for one in ran]),
        (SLEEP_SVG, "Waiting", waited),
    ):
        picture = flamegraph.draw(flamegraph.tree(graph), f"{title}: {times}", "ms")
        (folder / name).write_text(picture, encoding="utf-8")
    (folder / MARKDOWN).write_text(table.markdown(found), encoding="utf-8")
    (folder / JSON).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")


def profiled(
    run: Callable[..., _Result], kernel: Path, command: list[str], *, results: Path, **options: Any
) -> _Result:
    """Run a guest and write its profile into its results folder, and one of each run of guest/load.py below.

    Args:
        run: what runs it: :func:`lab.machine.guest.run`, or something like it.
        kernel: as for ``run``, with its System.map beside it.
        command: as for ``run``.
        results: as for ``run``.
        options: as for ``run``, of the machine smp in virtual time.

    Raises:
        LabError: as ``run`` and :func:`report` do.
    """
    with tempfile.TemporaryDirectory(prefix="pwb-profile-") as folder:
        record = Path(folder) / "samples"
        result = run(kernel, command, results=results, samples=record, **options)
        report(record, kernel.parent / SYMBOLS, results, _runs(results / "plan.json"))
    return result


def _runs(plan: Path) -> list[str]:
    """Return the names of the runs in a plan of guest/load.py, which marks each; none without a plan."""
    if not plan.exists():
        return []
    return [run["name"] for run in json.loads(plan.read_text(encoding="utf-8"))["runs"]]


def show(console: Console, folder: Path) -> None:
    """Print the profile in a folder, and where its pictures are."""
    table.show(console, Profile.model_validate_json((folder / JSON).read_text(encoding="utf-8")))
    for name in (SVG, SLEEP_SVG, MARKDOWN, JSON):
        console.print(f"  {folder / name}", markup=False, highlight=False, soft_wrap=True)
