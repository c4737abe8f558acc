# SPDX-License-Identifier: GPL-2.0
"""Commands that make something to install elsewhere."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from lab.cli.group import cli
from lab.cli.options import ToWrite, output_folder, packages_folder, source_of, source_options
from lab.util.errors import LabError, unknown_name


@cli.command()
@click.argument("names", nargs=-1, metavar="[wbctl|stock|parallel]...")
@output_folder("packages", "Folder for the packages")
@click.option(
    "--modules",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What lsmod printed on the server: of Debian's modules build these only  [default: all]",
)
@source_options
def deb(
    names: tuple[str, ...], output: Path, modules: Path | None, tree: Path | None, series: str | None
) -> None:
    """Make Debian packages of wbctl and of both kernels.

    All of them unless named. Prints where each is.
    """
    from lab.package import kernel, lintian, wbctl

    known = ("wbctl", *kernel.FRAGMENTS)
    for name in names:
        if name not in known:
            raise unknown_name("package", name, known)
    output.mkdir(parents=True, exist_ok=True)
    for name in names or known:
        if name == "wbctl":
            package = wbctl.make(output)
            lintian.check(package)
        else:
            package = kernel.make(
                name,
                source_of(tree, series),
                output,
                modules,
                show=lambda line: click.echo(line, err=True),
            )
            lintian.check(package, kernel.ACCEPTED)
        click.echo(package)


@cli.command()
@click.option(
    "--job",
    "jobs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.fio",
    help="fio job file of your own (again for more)  [default: random overwrites by a job on each CPU]",
)
@packages_folder("Where pwb deb has put packages; all .deb files there go along")
@click.option(
    "--output",
    default="pwb-field.tar.gz",
    show_default=True,
    type=ToWrite(dir_okay=False, path_type=Path),
    metavar="FILE.tar.gz",
    help="The archive",
)
def field(jobs: tuple[Path, ...], packages: Path, output: Path) -> None:
    """Make an archive that measures a job on a server of yours.

    It compares stock and parallel, and needs no network there; its README.md says what to do. Read what comes
    back by pwb report.
    """
    from lab.package import field as archive

    found = sorted(packages.glob("*.deb"))
    is_named = click.get_current_context().get_parameter_source("packages") is ParameterSource.COMMANDLINE
    if is_named and not found:
        raise LabError(f"--packages {packages} has no packages: expected .deb files, made by: ./pwb deb")
    click.echo(archive.make(output, jobs, found))
    click.echo(f"packages in it: {', '.join(path.name for path in found) or 'none, pwb deb makes them'}")
