# SPDX-License-Identifier: GPL-2.0
"""The command that checks the series patch by patch."""

from __future__ import annotations

from pathlib import Path

import click

from lab.cli.group import cli
from lab.cli.options import listed_names, output_folder, source_of, source_options
from lab.util.errors import LabError


@cli.command("check-series")
@click.option("--patches", metavar="N|FROM..TO", help="Only these  [default: all of the series]")
@click.option(
    "--checks",
    metavar="NAME,...",
    callback=lambda context, option, value: value if value is None else listed_names(context, option, value),
    help="Only these: checkpatch,um,x86-64,no-cgroup,no-block,i386,arm64,strict,coccinelle,docs,kunit,load  "
    "[default: all but kunit and load]",
)
@click.option("--boot", is_flag=True, help="Boot each patch too: checks kunit and load")
@click.option("--fresh", is_flag=True, help="Check again what was checked before")
@click.option(
    "--show", "shows", is_flag=True, help="Check nothing: show what is known, also of a run under way"
)
@output_folder("results/series", "Folder for the table of all that is known")
@source_options
def check_series(
    *,
    patches: str | None,
    checks: list[str] | None,
    boot: bool,
    fresh: bool,
    shows: bool,
    output: Path,
    tree: Path | None,
    series: str | None,
) -> None:
    """Check our change patch by patch, and say which patch fails.

    Each has to compile for x86-64, arm64 and User-mode Linux, without cgroup writeback and without block
    devices too, and without a new warning of compiler, sparse, Coccinelle and checkpatch; the documentation,
    with the last one, without a new warning of Sphinx. What has passed is checked again only when it has
    changed. Fails if a patch does.
    """
    from lab.check import result, table
    from lab.check import series as checking
    from lab.result import report

    if shows and (fresh or boot):
        raise click.UsageError("--show checks nothing: it goes without --fresh and --boot")
    source = source_of(tree, series)
    if shows:
        found = checking.known(source, checks or checking.NAMES, patches)
    else:
        found = checking.check(
            source,
            [*(checks or checking.USUAL), *(checking.BOOTED if boot else [])],
            patches,
            fresh=fresh,
            show=lambda checked: click.echo(table.line(checked), err=True),
        )
    table.show(report.terminal(), found)
    wrong = table.verdict(found)
    try:
        result.keep(result.rows(source.version, checking.known(source)), output)
    except LabError as error:
        # After hours what was found has to be said, whatever else runs by now.
        raise LabError(f"{wrong or 'no patch fails'}; but the table was not written: {error}") from None
    if wrong:
        raise LabError(wrong)
