# SPDX-License-Identifier: GPL-2.0
"""Commands that read results, and describe devices."""

from __future__ import annotations

from pathlib import Path

import click

from lab.cli.group import cli
from lab.cli.options import ToWrite, cells_of
from lab.util.errors import LabError


@cli.command()
@click.argument("folder", default="results/latest", type=click.Path(path_type=Path), metavar="[RESULT]")
def throttle(folder: Path) -> None:
    """Print how a result on throttling compares with stock.

    The result is one of "pwb bench throttle-even" or "throttle-skewed"; each cell has a line.

    RESULT is its folder; results/latest unless given.
    """
    from lab.result import throttle

    cells = cells_of(folder)
    click.echo(f"{throttle.means(cells)}\n{throttle.table(cells)}", nl=False)


@cli.command("report")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[RESULT]...")
@click.option(
    "--output",
    type=ToWrite(dir_okay=False, path_type=Path),
    metavar="FILE.html",
    help="Write one page of all these results, and nothing else",
)
def make_report(*, paths: tuple[Path, ...], output: Path | None) -> None:
    """Make table, plots and page of results again.

    Interrupted results have them, too.

    RESULT is a folder below results/, or what the archive of pwb field has brought back from a server, of
    which results are made there; results/latest unless given.
    """
    from lab.result import field, page, results

    try:
        chosen = [
            (path, folder)
            for path in paths or (results.RESULTS / "latest",)
            for folder in field.result_folders(path)
        ]
        for _, folder in chosen:
            cells_of(folder)
        if output is not None:
            output.write_text(page.render([folder for _, folder in chosen]) + "\n", encoding="utf-8")
            click.echo(output)
            return
        for path, folder in chosen:
            # A result that has just been made of what came from a server has its page.
            if folder == path.resolve():
                page.remake(folder)
            click.echo(folder / page.NAME)
    except FileNotFoundError as error:
        raise LabError(
            f"{error.filename} is not there: expected a whole result, which is drawn again from its raw data"
        ) from None
    except OSError as error:
        raise LabError(
            f"{error.filename}: {error.strerror}: expected a folder that may be written to"
        ) from None


@cli.command("diff")
@click.argument("before", type=click.Path(exists=True, path_type=Path), metavar="A")
@click.argument("after", type=click.Path(exists=True, path_type=Path), metavar="B")
def show_diff(*, before: Path, after: Path) -> None:
    """Show which settings differ between results A and B.

    A difference has its 95% interval, and beside it what else differs.

    Each is a folder below results/, or what the archive of pwb field has brought back from a server.
    """
    from lab.result import diff, field, results

    # Of two archives of one campaign the second takes the place of what the first has left in results/.
    a, b = (
        [(cells_of(folder), results.read(folder)[1]) for folder in field.result_folders(path)]
        for path in (before, after)
    )
    click.echo(diff.text(a, b), nl=False)


@cli.command()
@click.argument(
    "folder",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="[RESULT]",
)
@click.option(
    "--name", help="Short name, which the docs know it by  [default: that of its scenario or folder]"
)
def keep(*, folder: Path | None, name: str | None) -> None:
    """Keep a result for the docs, and renew what pages show.

    RESULT is a folder below results/; what is kept of it goes to measurements/. Without one only tables,
    pictures and pages are made again.
    """
    from lab.docs import measurements, pages, pictures

    if folder is None and name is not None:
        raise click.UsageError("--name is of what is kept: it needs RESULT")
    if folder is not None:
        click.echo(measurements.keep(folder.resolve(), name or measurements.name_of(folder.resolve())))
    for kept in measurements.names():
        measurements.write_table(kept)
    pictures.write()
    for page in pages.pages():
        page.write_text(pages.renewed(page), encoding="utf-8")


@cli.command("devices")
def list_devices() -> None:
    """List the test devices, and what each is like."""
    from lab.machine import devices

    known = devices.names()
    width = max(map(len, known))
    for name in known:
        click.echo(f"{name:{width}}  {devices.load(name).description}")


@cli.command()
@click.argument("measured", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.json")
@click.option("--name", default="own", show_default=True, help="Name of the new device")
def calibrate(*, measured: Path, name: str) -> None:
    """Make a test device that is like a drive of yours, by fio.

    FILE.json is what fio wrote with --output-format=json of the job devices/calibrate.fio.
    """
    from lab.machine import calibrate as calibration

    points = calibration.read(measured)
    found = calibration.fit(points)
    path = calibration.write(name, calibration.device_file(name, found, points))
    click.echo(calibration.table(found, points))
    click.echo(f"{path}: for ./pwb run --device {name}")
