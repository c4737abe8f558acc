# SPDX-License-Identifier: GPL-2.0
"""Commands that prove something by trying it often."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lab.cli.group import cli
from lab.cli.options import (
    Number,
    build_kernel,
    known_filesystem,
    listed_names,
    output_folder,
    packages_folder,
    scheduler_option,
    source_of,
    source_options,
)
from lab.util.errors import unknown_name
from lab.util.lock import whole_machine
from lab.util.paths import REPO, cache_dir

if TYPE_CHECKING:
    from lab.bench.cluster import SideBySide


def _workers(scheduler: str | None) -> AbstractContextManager[SideBySide | None]:
    """Hold a connection to the cluster that ``--scheduler`` names; None where it names none.

    To be held before a kernel is built: that takes minutes, and a cluster that is not there is said at once.
    """
    from lab.bench import cluster
    from lab.machine import guest

    if scheduler is None:
        return nullcontext()
    return cluster.existing(scheduler, [REPO / "tests" / "guest", cache_dir()], guest.run)


@cli.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@output_folder("results/mutants", "Folder for the result, beside what is there already")
def mutants(*, names: tuple[str, ...], output: Path) -> int:
    """See that a test catches each kernel broken on purpose.

    MUTANT is the name of a file in tests/mutants/; all of them unless given: an hour on two cores.
    Fails if one survives.
    """
    from lab.proof import mutants as proof
    from lab.result import provenance

    found = []

    def show(outcome: proof.Outcome) -> None:
        found.append(outcome)
        proof.keep([outcome], output)

    proof.run(names, click.echo, show)
    click.echo(output / provenance.TABLE)
    return 0 if all(one.verdict == "caught" for one in found) else 1


@cli.command()
@click.argument("proofs", nargs=-1, metavar="[PROOF]...")
@output_folder("results/tested", "Folder for the result, beside what is there already")
def prove(*, proofs: tuple[str, ...], output: Path) -> int:
    """Run all tests of a proof, and count what they tried.

    The long cases are run, too.

    PROOF is one of sync, resize, mapped, memory, faults, races and hostile; all of them unless given: hours
    on two cores. Fails if a case fails or is left out.
    """
    from lab.proof import tested as proof
    from lab.result import provenance

    is_whole = True

    def show(found: list[proof.Outcome]) -> None:
        nonlocal is_whole
        is_whole = is_whole and not any(one.failed or one.skipped for one in found)
        proof.keep(found, output)

    proof.run(proofs, lambda line: click.echo(line, nl=False), show)
    click.echo(output / provenance.TABLE)
    return 0 if is_whole else 1


@cli.command()
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=listed_names, help="Filesystems")
@click.option("--kernel", default="parallel", show_default=True, metavar="NAME", help="Kernel to boot")
@click.option("--machine", default="uml", show_default=True, metavar="uml|smp", help="Machine of the guests")
@click.option("--cpus", default=2, show_default=True, help="Guest CPUs; on uml no more than the host has")
@click.option("--cuts", default=100, show_default=True, type=click.IntRange(1), help="For each filesystem")
@click.option(
    "--minutes",
    type=Number(0, min_open=True),
    help="Begin no guest after so many  [default: all are run]",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the first guest")
@output_folder("results/cuts", "Folder for the result, beside what is there already")
@scheduler_option
@source_options
def cuts(
    *,
    fs: list[str],
    kernel: str,
    machine: str,
    cpus: int,
    cuts: int,
    minutes: float | None,
    seed: int,
    output: Path,
    scheduler: str | None,
    tree: Path | None,
    series: str | None,
) -> int:
    """Cut a device's power, and look for what was promised.

    Each guest cuts it 50 times, each time with other contexts, workers, affinities and modes. Fails if
    anything is lost, whatever the kernel.
    """
    from lab.machine.hardware import Hardware
    from lab.proof import cuts as proof
    from lab.result import provenance
    from lab.tree import config

    for name in fs:
        known_filesystem(name)
    Hardware(machine=machine, cpus=cpus)
    config.fragments(kernel, machine)
    lost, done = False, 0

    def show(outcome: proof.Outcome) -> None:
        nonlocal lost, done
        lost = lost or bool(outcome.lost)
        done += 1
        proof.keep([outcome], built, output)
        click.echo(outcome.line)

    with whole_machine("cutting the power of guests"), _workers(scheduler) as crew:
        built = build_kernel(kernel, source_of(tree, series), machine)
        wanted = proof.jobs(built, fs, cpus=cpus, cuts=cuts, seed=seed)
        latest = time.monotonic() + 60 * (inf if minutes is None else minutes)
        proof.run(wanted, show, crew, None if minutes is None else lambda: time.monotonic() < latest)
    if minutes is not None:
        click.echo(f"{done} of {len(wanted)} guests were run: none began after {minutes:g} minutes")
    click.echo(output / provenance.TABLE)
    return 1 if lost else 0


@cli.command()
@click.option(
    "--load",
    "loads",
    multiple=True,
    metavar="NAME",
    help="sync, resize, cgroups or workers (again for more)  [default: all]",
)
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="For each load")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The first seed")
@click.option("--cpus", default=8, show_default=True, help="CPUs of each guest, which are emulated")
@output_folder("results/schedules", "Folder for the result, beside what is there already")
@scheduler_option
@source_options
def schedules(
    *,
    loads: tuple[str, ...],
    seeds: int,
    seed: int,
    cpus: int,
    output: Path,
    scheduler: str | None,
    tree: Path | None,
    series: str | None,
) -> int:
    """Let CPUs stall in our code, and see that nothing breaks.

    Seeds say where, when and for how long.

    Each seed is a boot of the debug kernel in virtual time for each load. Fails if anything is lost, wrong
    or hangs, or the kernel reports.
    """
    from lab.machine.hardware import Hardware
    from lab.proof import schedules as proof
    from lab.result import provenance

    for name in loads:
        if name not in proof.LOADS:
            raise unknown_name("load", name, list(proof.LOADS))
    Hardware(machine="smp", cpus=cpus)
    found = False

    def show(outcome: proof.Outcome) -> None:
        nonlocal found
        found = found or bool(outcome.found)
        proof.keep([outcome], built, output)
        click.echo(outcome.line)

    chosen = range(seed, seed + seeds)
    with whole_machine("trying schedules"), _workers(scheduler) as crew:
        source = source_of(tree, series)
        built = build_kernel("debug", source, "smp")
        with proof.jobs(built, source, loads or list(proof.LOADS), cpus=cpus, seeds=chosen) as wanted:
            proof.run(wanted, show, crew)
    click.echo(output / provenance.TABLE)
    return 1 if found else 0


@cli.command()
@packages_folder("Where pwb deb has put packages")
@output_folder("results/installed", "Folder for the result")
def installed(*, packages: Path, output: Path) -> None:
    """Install, use and remove the packages on a Debian server.

    The server runs in QEMU.

    Prints the session at the server's console. Fails if anything is not as it should be.
    """
    from lab.machine.server_console import Line
    from lab.package import folder
    from lab.proof import installed as proof
    from lab.result import provenance

    def show(line: Line) -> None:
        click.echo(proof.shown(line), nl=False)

    found = sorted(packages.glob("*.deb"))
    made = folder.ours(found)
    with whole_machine("trying the packages"):
        proof.keep(proof.prove(found, output, show), made, output)
    click.echo(output / provenance.TABLE)
