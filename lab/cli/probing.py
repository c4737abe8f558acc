# SPDX-License-Identifier: GPL-2.0
"""Commands that look at one thing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from lab.cli.group import cli
from lab.cli.options import (
    build_kernel,
    known_filesystem,
    listed_names,
    listed_numbers,
    output_folder,
    picture,
    source_of,
    source_options,
)


@cli.command()
@click.option("--fs", default="xfs", show_default=True, metavar="xfs|ext4|f2fs", help="Fresh filesystem")
@click.option("--limit-mib", default=256, show_default=True, type=click.IntRange(1), help="Dirty limit")
@click.option("--contexts", default=2, show_default=True, type=click.IntRange(1), help="Contexts of parallel")
@picture("pauses.png")
@source_options
def pauses(
    *, fs: str, limit_mib: int, contexts: int, output: Path, tree: Path | None, series: str | None
) -> None:
    """Draw dirty pages and the pauses of writers over time, stock beside parallel."""
    from lab.probes import pauses

    known_filesystem(fs)
    source = source_of(tree, series)
    recorded = {
        "stock": pauses.record(build_kernel("stock", source), fs, limit_mib, None),
        f"{contexts} contexts": pauses.record(build_kernel("parallel", source), fs, limit_mib, contexts),
    }
    pauses.draw(recorded, f"{fs}, dirty limit {limit_mib} MiB, 4 writers of 4k at random", output)
    click.echo(output)


@cli.command()
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=listed_names, help="Filesystems")
@click.option(
    "--device", default="brd", show_default=True, metavar="NAME", help="Test device, see pwb devices"
)
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(2, 64), help="Guest CPUs")
@click.option("--limit-mib", default=128, show_default=True, type=click.IntRange(1), help="Dirty limit")
@picture("changes.png")
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
    """Draw the number of contexts that the kernel finds while the load starts, doubles, narrows and stops."""
    from lab.probes import changes

    for one in fs:
        known_filesystem(one)
        changes.check(one, device, cpus)
    kernel = build_kernel("parallel", source_of(tree, series), "smp")
    recorded = {one: changes.record(kernel, one, device, cpus, limit_mib) for one in fs}
    changes.draw(recorded, f"{device}, {cpus} CPUs, dirty limit {limit_mib} MiB, contexts found", output)
    click.echo(output)


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
@output_folder("waits", "Folder for table.md, summary.json and waits.png")
@source_options
def waits(*, fs: str, output: Path, tree: Path | None, series: str | None, **choices: Any) -> None:
    """Show what the flushers wait for, on a device that waits, by a trace of the scheduler."""
    from lab.probes import waits

    known_filesystem(fs)
    settings = waits.settings(fs, **choices)
    kernel = build_kernel("traced", source_of(tree, series))
    waits.report([waits.record(kernel, fs, *setting) for setting in settings], fs, output)
    click.echo((output / "table.md").read_text(), nl=False)


@cli.command()
@click.argument("tests", nargs=-1, metavar="[TEST]...")
@output_folder("results/clock", "Folder for table.md and summary.json")
@source_options
def clock(*, tests: tuple[str, ...], output: Path, tree: Path | None, series: str | None) -> int:
    """Show that the clock of the machine smp is right, with a table of what must hold.

    TEST is one of repeat, load, loop, device, rate, sleep, lock, sensitivity, uml and speed; all of them
    unless given. Lines of the same tests that are in the output folder are replaced. The exit status is 1
    when a bound is not met.
    """
    from lab.probes import clock, trial

    chosen = clock.chosen(tests)
    source = source_of(tree, series)
    run = clock.once(lambda one: trial.boot(one, build_kernel(one.kernel, source, one.machine).path))
    met = True
    for name in chosen:
        rows = clock.rows(name, run)
        met &= all(row.met is not False for row in rows)
        clock.keep(rows, output)
        click.echo(clock.table(rows), nl=False)
    return 0 if met else 1


@cli.command()
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(1, 64), help="Guest CPUs")
@click.option("--possible-cpus", type=int, help="CPUs that the kernel prepares for  [default: --cpus]")
@output_folder("results/costs", "Folder for costs.md and costs.json")
@source_options
def costs(
    *, cpus: int, possible_cpus: int | None, output: Path, tree: Path | None, series: str | None
) -> None:
    """Measure what contexts cost where they bring nothing: memory, pages, a sync of a clean system."""
    from lab.probes import costs as probe

    probe.check(cpus, possible_cpus)
    source = source_of(tree, series)
    stock, parallel = (build_kernel(name, source, "smp") for name in ("stock", "parallel"))
    found = probe.measure(stock, parallel, sorted({1, cpus}), probe.in_guest(cpus, possible_cpus))
    probe.keep(found, output)
    click.echo(probe.table(found), nl=False)


@cli.command()
@click.argument("question", type=click.Choice(["costs", "extents"]))
@click.option("--machine", default="smp", show_default=True, metavar="uml|smp", help="Machine of the guest")
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(1, 64), help="Guest CPUs")
@click.option("--rounds", default=24, show_default=True, type=click.IntRange(2), help="Turns of each mode")
@source_options
def ag(*, question: str, machine: str, cpus: int, rounds: int, tree: Path | None, series: str | None) -> None:
    """Measure what AG-aware writeback costs where it brings nothing, or what it does to extents."""
    from lab.probes import ag as probe

    kernel = build_kernel("parallel", source_of(tree, series), machine)
    probe.measure(kernel, question, rounds, cpus, sys.stdout)


@cli.command()
@output_folder("isolation", "Folder for summary.json and isolation.png")
@source_options
def isolation(*, output: Path, tree: Path | None, series: str | None) -> None:
    """Draw where XFS puts files that are written side by side, with and without write streams."""
    from lab.probes import isolation

    kernel = build_kernel("parallel", source_of(tree, series))
    recorded = {
        "without streams": isolation.record(kernel, streams=False),
        "a stream for each file": isolation.record(kernel, streams=True),
    }
    isolation.report(recorded, output)
    click.echo(output / "isolation.png")


@cli.command()
@output_folder("amplification", "Folder for summary.json and amplification.png")
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
    """Measure what RocksDB makes flash write: without help, with life time hints, with write streams."""
    from lab.probes import amplification
    from lab.result import report

    kernel = build_kernel("parallel", source_of(tree, series))
    runs = amplification.measure(kernel, discard=discard, repetitions=repetitions)
    report.terminal().print(amplification.table(amplification.report(runs, output)))
    click.echo(output / "amplification.png")
