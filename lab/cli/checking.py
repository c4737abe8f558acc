# SPDX-License-Identifier: GPL-2.0
"""The command that checks the series patch by patch."""

from __future__ import annotations

from pathlib import Path

import click

from lab.cli.group import cli
from lab.cli.options import listed_names, source_of, source_options
from lab.util.errors import LabError


@cli.command("check-series")
@click.option("--patches", metavar="N|FROM..TO", help="Only these  [default: all of the series]")
@click.option(
    "--checks",
    metavar="NAME,...",
    callback=lambda context, option, value: value and listed_names(context, option, value),
    help="Only these: checkpatch,um,x86-64,no-cgroup,no-block,arm64,strict,coccinelle,kunit  "
    "[default: all but kunit]",
)
@click.option("--kunit", is_flag=True, help="Boot each patch too, and run its KUnit suites")
@click.option("--fresh", is_flag=True, help="Check again what was checked before")
@source_options
def check_series(
    *,
    patches: str | None,
    checks: list[str] | None,
    kunit: bool,
    fresh: bool,
    tree: Path | None,
    series: str | None,
) -> None:
    """Check our change patch by patch, and say which patch fails.

    Each has to compile for x86-64, arm64 and User-mode Linux, without cgroup writeback and without block
    devices too, and without a new warning of compiler, sparse, Coccinelle and checkpatch. What has
    passed is checked again only when it has changed. Fails if a patch does.
    """
    from lab.check import series as checking
    from lab.check import table
    from lab.result import report

    names = [*(checks or checking.USUAL), *(["kunit"] if kunit else [])]
    found = checking.check(
        source_of(tree, series),
        names,
        patches,
        fresh=fresh,
        show=lambda checked: click.echo(table.line(checked), err=True),
    )
    table.show(report.terminal(), found)
    if wrong := table.verdict(found):
        raise LabError(wrong)
