# SPDX-License-Identifier: GPL-2.0
"""Commands about kernels: fetch, weave, build, and run something in one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from lab.cli.group import cli
from lab.cli.options import (
    Number,
    build_kernel,
    clock_option,
    guest_options,
    kernel_of,
    output_folder,
    source_of,
    source_options,
)
from lab.util.errors import unknown_name

# One packaged tree, two woven trees and the objects of three kernels, all in the cache.
_DISK_BYTES = 10 << 30


@cli.command()
def check() -> None:
    """Check that this machine has all that is needed."""
    from lab.experiment import scenario
    from lab.machine.hardware import QEMU_MIB
    from lab.util import host

    size = scenario.load("headline").guest
    host.check(host.Need(disk_bytes=_DISK_BYTES, memory_bytes=(size.mem_mib + QEMU_MIB) << 20))
    click.echo("this machine has all that building and measuring need")


@cli.command()
@source_options
def fetch(tree: Path | None, series: str | None) -> None:
    """Fetch the kernel source; print its version and place."""
    source = source_of(tree, series)
    click.echo(f"Linux {source.version}: {source.path}")


@cli.command()
@click.option(
    "--everywhere", is_flag=True, help="Try each packaged series, and --source; print where it weaves"
)
@output_folder("results/weaves", "Folder for the table of --everywhere")
@source_options
def weave(*, everywhere: bool, output: Path, tree: Path | None, series: str | None) -> int:
    """Weave our change onto the kernel source; print where."""
    from lab.tree import weave as weaver

    if everywhere:
        if series is not None:
            raise click.UsageError("--everywhere takes each series: it goes without --series")
        return _weave_everywhere(tree, output)
    source = source_of(tree, series)
    woven = weaver.weave(source)
    click.echo(f"Linux {source.version} with parallel writeback: {woven.path}")
    return 0


def _weave_everywhere(tree: Path | None, output: Path) -> int:
    """Print and keep the table of where our change weaves; return 1 if it does not somewhere."""
    from lab.check import everywhere

    kernels = everywhere.try_all(
        [] if tree is None else [tree], show=lambda kernel: click.echo(everywhere.line(kernel), err=True)
    )
    everywhere.keep(kernels, output)
    click.echo(everywhere.table(kernels), nl=False)
    return 1 if any(one.refused for one in kernels) else 0


@cli.command()
@output_folder("series", "New or empty folder for the patches")
@source_options
def series(output: Path, tree: Path | None, series: str | None) -> None:
    """Write our change as patches for git am."""
    from lab.docs.pages import figures
    from lab.tree.series import write_series

    for patch in write_series(source_of(tree, series), output, figures=figures):
        click.echo(patch)


@cli.command()
@click.option("--machine", metavar="uml|smp", help="Machine to build for  [default: uml; without names both]")
@click.argument("flavours", nargs=-1, metavar="[stock|prepared|parallel|debug|nocgroup|traced|kcsan]...")
@source_options
def build(flavours: tuple[str, ...], machine: str | None, tree: Path | None, series: str | None) -> None:
    """Build kernels and print where they are.

    Unless named all that the tests need are built.
    """
    from lab.tree import config

    if machine is not None and machine not in config.FRAGMENTS:
        raise unknown_name("machine", machine, config.FRAGMENTS)
    if flavours:
        wanted = [(flavour, machine or "uml") for flavour in flavours]
    else:
        machines = [machine] if machine else config.TESTED
        wanted = [(flavour, each) for each in machines for flavour in config.TESTED[each]]
    for flavour, each in wanted:
        config.fragments(flavour, each)
    source = source_of(tree, series)
    for flavour, each in wanted:
        click.echo(f"{each} {flavour}: {build_kernel(flavour, source, each).path}")


@cli.command(context_settings={"allow_interspersed_args": False})
@guest_options
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(min=0, min_open=True),
    metavar="S",
    help="Seconds of the host until the guest must be off  [default: 300, in virtual time 1800]",
)
@clock_option("virtual")
@click.option(
    "--possible-cpus",
    type=int,
    help="CPUs that the kernel prepares for, which are not started; on smp up to 255  [default: --cpus]",
)
@click.option(
    "--mips", type=int, help="In virtual time: million instructions a CPU does a second  [default: 1000]"
)
@click.option(
    "--quantum-ns",
    type=int,
    help="In virtual time: how far a CPU may be ahead of another  [default: see docs/machine.md]",
)
@click.option("--lanes", type=int, help="In virtual time: CPUs that run at once  [default: the host's cores]")
@click.option(
    "--profile",
    "is_profiled",
    is_flag=True,
    help="In virtual time: show who runs, spins and waits; flame graphs go to --results  "
    "[default: results/profile]",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def guest(
    *,
    command: tuple[str, ...],
    kernel: str,
    tree: Path | None,
    series: str | None,
    is_profiled: bool,
    **options: Any,
) -> int:
    """Boot a kernel, run COMMAND in it, exit with its status.

    COMMAND starts on a fresh filesystem, /mnt/test.  The guest sees this machine's files and cannot change
    them; what it writes to /results stays.  A kernel report (oops, WARN, lockdep, hung task, ...), the end
    of the time or an early exit is an error.
    """
    from lab.machine import guest as guests

    options = {name: value for name, value in options.items() if value is not None}
    if (options["machine"], options["clock"]) != ("smp", "virtual"):
        asked = [f"--{name}" for name in ("mips", "quantum_ns", "lanes") if name in options]
        asked += ["--profile"] if is_profiled else []
        if asked:
            name = asked[0].replace("_", "-")
            raise click.UsageError(f"{name} is of virtual time: it needs --machine smp without --clock host")
    path = kernel_of(kernel, tree, series, options)
    if not is_profiled:
        return guests.run(path, list(command), stream=sys.stdout, **options).status
    return _profiled_guest(path, list(command), options)


def _profiled_guest(kernel: Path, command: list[str], options: dict[str, Any]) -> int:
    """Run a guest and show its profile; return the status of the command."""
    from lab.machine import guest as guests
    from lab.result import profile, report, results

    folder = options.pop("results", results.RESULTS / "profile")
    done = profile.profiled(guests.run, kernel, command, results=folder, stream=sys.stdout, **options)
    profile.show(report.terminal(), folder)
    return done.status


@cli.command()
@guest_options
@clock_option("host")
def shell(kernel: str, tree: Path | None, series: str | None, **options: Any) -> int:
    """Boot a kernel and give a shell in it.

    On smp it lives in the host's time unless asked otherwise: in virtual time a second of many busy CPUs
    takes half a minute.
    """
    from lab.machine import guest as guests

    guests.check_terminal()
    return guests.shell(kernel_of(kernel, tree, series, options), **options).status


@cli.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def python(arguments: tuple[str, ...]) -> NoReturn:
    """Run the lab's own Python."""
    os.execv(sys.executable, [sys.executable, *arguments])
