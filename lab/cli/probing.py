# SPDX-License-Identifier: GPL-2.0
"""Commands that look at one thing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lab.cli.group import cli
from lab.cli.options import (
    Number,
    ToWrite,
    build_kernel,
    known_filesystem,
    listed_names,
    listed_numbers,
    output_folder,
    source_of,
    source_options,
)

if TYPE_CHECKING:
    from lab.probes.probe import Probe, R


def _measure(probe: Probe[R], output: Path | None, tree: Path | None, series: str | None) -> None:
    """Measure what a probe asks, show its table, and say where the result is."""
    from lab.probes import runner
    from lab.result import results

    runner.check(probe)
    source = source_of(tree, series)
    folder = output or results.RESULTS / probe.name
    runs = runner.measure(probe, lambda flavour: build_kernel(flavour, source, probe.machine), folder)
    click.echo(probe.table(runs), nl=False)
    for path in sorted(folder.glob("*.*")):
        click.echo(path)


@cli.command()
@click.option("--fs", default="xfs", show_default=True, metavar="xfs|ext4|f2fs", help="Fresh filesystem")
@click.option("--limit-mib", default=256, show_default=True, type=click.IntRange(1), help="Dirty limit")
@click.option("--contexts", default=2, show_default=True, type=click.IntRange(1), help="Contexts of parallel")
@output_folder("results/pauses", "Folder for the result")
@source_options
def pauses(
    *, fs: str, limit_mib: int, contexts: int, output: Path, tree: Path | None, series: str | None
) -> None:
    """Draw dirty pages and the pauses of writers over time.

    Those of stock stand beside those of parallel.
    """
    from lab.probes.pauses.probe import Pauses

    known_filesystem(fs)
    _measure(Pauses(fs, limit_mib, contexts), output, tree, series)


@cli.command()
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=listed_names, help="Filesystems")
@click.option(
    "--device", default="brd", show_default=True, metavar="NAME", help="Test device, see pwb devices"
)
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(2, 64), help="Guest CPUs")
@click.option("--limit-mib", default=128, show_default=True, type=click.IntRange(1), help="Dirty limit")
@output_folder("results/changes", "Folder for the result")
@source_options
def changes(
    *,
    fs: list[str],
    device: str,
    cpus: int,
    limit_mib: int,
    output: Path,
    tree: Path | None,
    series: str | None,
) -> None:
    """Draw the number of contexts while the load changes.

    The kernel finds it by itself: the load starts, doubles, narrows and stops.
    """
    from lab.probes.changes.probe import Changes

    for one in fs:
        known_filesystem(one)
    _measure(Changes(tuple(fs), device, cpus, limit_mib), output, tree, series)


@cli.command()
@click.option("--fs", default="xfs", show_default=True, metavar="xfs|ext4|f2fs", help="Fresh filesystem")
@click.option(
    "--contexts", default="1,2,4,8", show_default=True, callback=listed_numbers, help="Numbers of contexts"
)
@click.option(
    "--affinities",
    default="ino,fs",
    show_default=True,
    callback=listed_names,
    help="Values of wb_affinity to try where there is a choice",
)
@click.option(
    "--places",
    default="apart,together,full",
    show_default=True,
    callback=listed_names,
    help="apart: a directory, so on XFS an AG, for each file; together: one for all; full: the same, all "
    "other AGs full and the lock of that one often held",
)
@output_folder("results/waits", "Folder for the result")
@source_options
def waits(
    *,
    fs: str,
    contexts: list[int],
    affinities: list[str],
    places: list[str],
    output: Path,
    tree: Path | None,
    series: str | None,
) -> None:
    """Show what flushers wait for on a device that waits.

    A trace of the scheduler says it.
    """
    from lab.probes.waits.probe import Waits

    known_filesystem(fs)
    _measure(Waits(fs, tuple(contexts), tuple(affinities), tuple(places)), output, tree, series)


@cli.command()
@click.argument("tests", nargs=-1, metavar="[TEST]...")
@output_folder("results/clock", "Folder for the result")
@source_options
def clock(*, tests: tuple[str, ...], output: Path, tree: Path | None, series: str | None) -> int:
    """Show that the clock of the machine smp is right.

    The table says of each test what must hold, and whether it does; the exit status is 1 where it does not.
    TEST is one of repeat, load, loop, device, rate, sleep, lock, sensitivity, stream, uml and speed; all of
    them unless given. Lines of the same tests that are in the output folder are replaced.
    """
    from lab.probes.clock import probe

    chosen = probe.chosen(tests)
    source = source_of(tree, series)
    rows = probe.measure(
        chosen, lambda name, machine: build_kernel(name, source, machine), output, click.echo
    )
    return 0 if all(row.met is not False for row in rows) else 1


@cli.command()
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(1, 64), help="Guest CPUs")
@click.option("--possible-cpus", type=int, help="CPUs that the kernel prepares for  [default: --cpus]")
@output_folder("results/costs", "Folder for the result")
@source_options
def costs(
    *, cpus: int, possible_cpus: int | None, output: Path, tree: Path | None, series: str | None
) -> None:
    """Measure what contexts cost where they bring nothing.

    That is memory, time to dirty a page, a sync of a clean system.
    """
    from lab.probes.costs.probe import Costs

    _measure(Costs(cpus, possible_cpus), output, tree, series)


@cli.command()
@click.argument("question", type=click.Choice(["costs", "extents"]))
@click.option("--machine", default="smp", show_default=True, metavar="uml|smp", help="Machine of the guest")
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(1, 64), help="Guest CPUs")
@click.option("--rounds", default=24, show_default=True, type=click.IntRange(2), help="Turns of each mode")
@click.option(
    "--output",
    type=ToWrite(file_okay=False, path_type=Path),
    help="Folder for the result  [default: results/ag-QUESTION]",
)
@source_options
def ag(
    *,
    question: str,
    machine: str,
    cpus: int,
    rounds: int,
    output: Path | None,
    tree: Path | None,
    series: str | None,
) -> None:
    """Measure what AG-aware writeback costs, or does to extents."""
    from lab.probes.ag.probe import AgCosts, AgExtents

    if question == "costs":
        _measure(AgCosts(machine, cpus, rounds), output, tree, series)
    else:
        _measure(AgExtents(machine, cpus, rounds), output, tree, series)


@cli.command()
@output_folder("results/isolation", "Folder for the result")
@source_options
def isolation(*, output: Path, tree: Path | None, series: str | None) -> None:
    """Draw where XFS puts files that are written side by side.

    One picture is with write streams, one without.
    """
    from lab.probes.isolation.probe import Isolation

    _measure(Isolation(), output, tree, series)


@cli.command()
@output_folder("results/amplification", "Folder for the result")
@click.option(
    "--discard/--no-discard",
    default=True,
    show_default=True,
    help="Whether the flash is told what was deleted",
)
@click.option("--repetitions", default=3, show_default=True, type=click.IntRange(min=1), help="Rounds")
@source_options
def amplification(
    *, output: Path, discard: bool, repetitions: int, tree: Path | None, series: str | None
) -> None:
    """Measure how much RocksDB makes flash write.

    Without help, with hints of life times, and with write streams.
    """
    from lab.probes.amplification.probe import Amplification

    _measure(Amplification(discard, repetitions), output, tree, series)


@cli.command()
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=listed_names, help="Filesystems")
@click.option(
    "--hours",
    default=2.0,
    show_default=True,
    type=Number(min=0, min_open=True),
    help="Of this machine, all filesystems together",
)
@output_folder("results/endurance", "Folder for the result")
@source_options
def endurance(*, fs: list[str], hours: float, output: Path, tree: Path | None, series: str | None) -> None:
    """Show whether anything grows under a load of hours.

    What may grow are memory, kworkers, writebacks and latencies; the load is writers, syncs, freezes, cgroups
    that come and go, and changes of the contexts.
    """
    from lab.probes.endurance.probe import Endurance

    for one in fs:
        known_filesystem(one)
    _measure(Endurance(tuple(fs), hours), output, tree, series)
