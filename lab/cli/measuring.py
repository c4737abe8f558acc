# SPDX-License-Identifier: GPL-2.0
"""Commands that measure stock against parallel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lab.cli.group import cli
from lab.cli.options import (
    Number,
    ToWrite,
    listed_contexts,
    listed_names,
    listed_numbers,
    machine_options,
    output_folder,
    profile_option,
    source_of,
    source_options,
    where_options,
)


@cli.command()
@click.argument("scenario", default="headline", metavar="[SCENARIO]")
@click.option("--full", is_flag=True, help="More devices, CPUs and repetitions, as the scenario lists")
@machine_options(machine=None)
@where_options
@profile_option
@source_options
def bench(
    *,
    scenario: str,
    full: bool,
    scheduler: str | None,
    fresh: bool,
    profiled: bool,
    tree: Path | None,
    series: str | None,
    **rest: Any,
) -> None:
    """Measure stock, parallel and the bounds in one run.

    SCENARIO is the name of a file in scenarios/; "headline" unless given.
    """
    from lab.bench import bench as benches
    from lab.experiment import scenario as scenarios

    scenarios.load(scenario)
    where = benches.Where(scheduler, fresh, profiled)
    benches.bench(scenario, full=full, source=source_of(tree, series), where=where, **rest)


@cli.command()
@click.option(
    "--job",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.fio",
    help="fio job file of your own, run as it is",
)
@click.option(
    "--fs",
    default="xfs,ext4,f2fs",
    show_default=True,
    callback=listed_names,
    help="Filesystems, with commas between them",
)
@click.option(
    "--device", default="brd", show_default=True, metavar="NAME", help="Test device, see pwb devices"
)
@click.option(
    "--contexts",
    default="1,2,4,8",
    show_default=True,
    callback=listed_contexts,
    help="Numbers of contexts with commas between them, or auto: the kernel finds one",
)
@click.option(
    "--dirty-limits-mib",
    default="128",
    show_default=True,
    callback=listed_numbers,
    help="Dirty limits in MiB, with commas between them",
)
@click.option(
    "--memory",
    "memory_mib",
    default=8192,
    show_default=True,
    metavar="MIB",
    help="Memory of the guest, of which the device gets five eighths",
)
@click.option(
    "--budget",
    "budget_min",
    default=15.0,
    show_default=True,
    type=Number(min=1, max=7 * 24 * 60),
    metavar="MINUTES",
    help="How long to measure, once kernels are there",
)
@click.option("--dry-run", is_flag=True, help="Say what would be booted and how long it takes; boot nothing")
@machine_options(machine="smp", cpus="  [default: 8; on uml as many as this machine gives]")
@where_options
@profile_option
@source_options
def run(
    *,
    job: Path,
    dry_run: bool,
    scheduler: str | None,
    fresh: bool,
    profiled: bool,
    tree: Path | None,
    series: str | None,
    **rest: Any,
) -> None:
    """Compare stock and parallel on a fio job file of your own."""
    from lab.bench.bench import Where, run_job
    from lab.bench.plan import plan, source_at_hand

    where = Where(scheduler, fresh, profiled)
    # Refuses a bad job before a kernel's source is fetched.
    click.echo(plan(job, source=source_at_hand(tree, series), where=where, **rest), err=not dry_run)
    if not dry_run:
        run_job(job, source=source_of(tree, series), where=where, **rest)


@cli.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--results",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Measure nothing: take this finished result (again for more)",
)
@click.option("--full", is_flag=True, help="More contexts and repetitions, as each scenario lists")
@click.option(
    "--output",
    type=ToWrite(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where table.md, summary.json and plots go  [default: results/published]",
)
@machine_options(machine=None)
@where_options
@source_options
def compare(
    *,
    scenarios: tuple[str, ...],
    folders: tuple[Path, ...],
    full: bool,
    output: Path | None,
    scheduler: str | None,
    fresh: bool,
    tree: Path | None,
    series: str | None,
    **rest: Any,
) -> None:
    """Measure published claims, and show both side by side.

    SCENARIO is a scenario with published numbers or bars in it; all of them unless given.
    """
    from lab.bench.bench import Where, bench_all
    from lab.result import published_table as tables

    if folders and any([scenarios, full, scheduler, fresh, tree, series, *rest.values()]):
        raise click.UsageError("--results takes what was measured: only --output goes with it")
    if not folders:
        names = tables.known(list(scenarios))
        where = Where(scheduler, fresh)
        folders = tuple(bench_all(names, full=full, source=source_of(tree, series), where=where, **rest))
    tables.compare(list(folders), output or tables.OUTPUT)


@cli.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--most-cpus",
    type=click.IntRange(8, 64),
    metavar="CPUS",
    help="Leave out larger numbers of CPUs, which take most of the time; a later run without this adds them",
)
@output_folder("results/scaling", "Folder for table.md, and a JSON file and a plot for each workload")
@where_options
@source_options
def scaling(
    *,
    workloads: tuple[str, ...],
    most_cpus: int | None,
    output: Path,
    scheduler: str | None,
    fresh: bool,
    tree: Path | None,
    series: str | None,
) -> None:
    """Show how workloads scale from 2 to 64 CPUs.

    Profiles say what limits each.

    WORKLOAD is one of allocate, append, mmap, overwrite and small; all of them unless given: hours on two
    cores. A run that was interrupted goes on where it was.
    """
    from lab.bench import bench as benches
    from lab.result import provenance
    from lab.result import scaling as scalings

    source = source_of(tree, series)
    where = benches.Where(scheduler, fresh, profiled=True)
    for name in scalings.chosen(workloads):
        measured = benches.bench(scalings.PREFIX + name, source=source, most_cpus=most_cpus, where=where)
        scalings.keep(name, measured, output)
    click.echo(f"{output / provenance.TABLE}")
