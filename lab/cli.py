# SPDX-License-Identifier: GPL-2.0
"""The command line: parses, calls, and turns a LabError into one sentence and an exit status.

Exit status: 0 done, 1 an error that a sentence on standard error names, 2 wrong usage, 128 + signal when a
signal ended it; ``pwb guest`` and ``pwb shell`` return the status of the command in the guest.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from lab.util.errors import LabError, unknown_name
from lab.util.paths import cache_dir

if TYPE_CHECKING:
    from lab.experiment.published import Contexts
    from lab.result.results import Cell
    from lab.tree.build import Kernel
    from lab.tree.source import Source

_F = TypeVar("_F", bound=Callable[..., Any])
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# One packaged tree, two woven trees and the objects of three kernels, all in the cache.
_DISK_BYTES = 10 << 30


class _Signalled(KeyboardInterrupt):
    """A signal that asks us to end: cleans up as Ctrl-C does, and keeps the number for the exit status."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: without the program's name; None: this process's own.
    """
    for number in _SIGNALS:
        # What the caller ignores, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise_signalled)
    sys.exit(_run(arguments))


def _raise_signalled(number: int, frame: FrameType | None) -> NoReturn:
    raise _Signalled(number)


def _run(arguments: list[str] | None) -> int:
    """Run the command line; return the exit status."""
    try:
        status: int | None = cli.main(arguments, prog_name="pwb", standalone_mode=False)
    except click.Abort as abort:
        return abort.__cause__.status if isinstance(abort.__cause__, _Signalled) else 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LabError as error:
        click.echo(f"pwb: error: {error}", err=True)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or cache_dir()
        click.echo(
            f"pwb: error: no room left for {where}: free some, or choose another cache folder with: "
            "export PWB_CACHE=FOLDER",
            err=True,
        )
        return 1
    return status or 0


def _output_folder(default: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that names the folder to write to."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option("--output", default=default, show_default=True, type=kind, help=what)


def _picture(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that names the picture to write."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option("--output", default=default, show_default=True, type=kind, help="Picture to write")


def _source_options(command: _F) -> _F:
    """Add the options that name the kernel source."""
    series = click.option(
        "--series", metavar="X.Y", help="Packaged kernel series to fetch  [default: the newest known]"
    )
    source = click.option(
        "--source",
        "tree",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Linux source tree of your own to use",
    )
    return series(source(command))


def _source(tree: Path | None, series: str | None) -> Source:
    from lab.tree import source

    if tree is not None and series is not None:
        raise click.UsageError("--source and --series exclude each other: the tree has its own version")
    if tree is not None:
        return source.user_tree(tree)
    return source.fetch(series) if series is not None else source.fetch()


def _guest_options(command: _F) -> _F:
    """Add the options that describe a guest."""
    for option in reversed(
        [
            click.option(
                "--kernel",
                default="parallel",
                show_default=True,
                metavar="stock|parallel|debug|PATH",
                help="Kernel to boot, built first where missing",
            ),
            click.option(
                "--machine",
                default="uml",
                show_default=True,
                metavar="uml|smp",
                help="User-mode Linux, or an emulated x86-64 of up to 64 CPUs",
            ),
            click.option(
                "--fs",
                default="xfs",
                show_default=True,
                metavar="xfs|ext4|f2fs|none",
                help="Fresh filesystem, mounted at /mnt/test",
            ),
            click.option(
                "--device",
                default="nolat",
                show_default=True,
                metavar="NAME",
                help="Test device, see devices/",
            ),
            click.option(
                "--device-count",
                default=1,
                show_default=True,
                help="Up to 64; the second one is at /mnt/test2",
            ),
            click.option(
                "--device-size-mib", type=int, help="Size of each device  [default: the device's own]"
            ),
            click.option(
                "--set",
                "settings",
                multiple=True,
                callback=_settings,
                metavar="PATH=VALUE",
                help="Written before the mount; a bare name is a file of the device's bdi",
            ),
            click.option(
                "--mem-mib", default=2048, show_default=True, help="Guest memory, device contents included"
            ),
            click.option(
                "--cpus", default=2, show_default=True, help="Guest CPUs; on uml no more than the host has"
            ),
            click.option(
                "--results",
                type=click.Path(file_okay=False, path_type=Path),
                help="Host folder that is writable in the guest, at /results",
            ),
        ]
    ):
        command = option(command)
    return _source_options(command)


def _clock(default: str) -> Callable[[_F], _F]:
    """Return the option that names the clock of the machine smp."""
    return click.option(
        "--clock",
        default=default,
        show_default=True,
        metavar="virtual|host",
        help="Time on smp: what its CPUs have executed, or the host's",
    )


def _settings(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse each ``PATH=VALUE``; the last one of a path counts."""
    settings = {}
    for value in values:
        path, equals, written = value.partition("=")
        if not path or not equals:
            raise click.BadParameter(f"{value!r}: expected PATH=VALUE, such as nwritebacks=4")
        settings[path] = written
    return settings


def _machine_options(*, machine: str | None, cpus: int | None) -> Callable[[_F], _F]:
    """Return the options that choose the machine to measure on; None: what the scenario says."""
    own = "  [default: what the scenario says]"

    def add(command: _F) -> _F:
        chosen = click.option(
            "--machine",
            default=machine,
            show_default=machine is not None,
            type=click.Choice(["uml", "smp"]),
            help="User-mode Linux, or emulated x86-64 in virtual time" + ("" if machine else own),
        )
        count = click.option(
            "--cpus",
            default=cpus,
            show_default=cpus is not None,
            type=int,
            help="Guest CPUs" + ("" if cpus else own),
        )
        return chosen(count(command))

    return add


def _where_options(command: _F) -> _F:
    """Add the options that say where guests in virtual time run."""
    scheduler = click.option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="Cluster of dask.distributed to run the guests on  [default: one on this machine]",
    )
    fresh = click.option("--fresh", is_flag=True, help="Measure again what was measured before")
    return scheduler(fresh(command))


def _profile_option(command: _F) -> _F:
    """Add the option for a profile of each run."""
    return click.option(
        "--profile",
        "profiled",
        is_flag=True,
        help="Show who runs, spins and waits: tables and flame graphs in the result's folder raw/",
    )(command)


def _names(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    """Parse a comma-separated list of names."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise click.BadParameter(f"{value!r}: expected names with commas between them")
    return names


def _numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Parse a comma-separated list of whole numbers."""
    try:
        return [int(number) for number in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: expected whole numbers with commas between them") from None


def _contexts(context: click.Context, parameter: click.Parameter, value: str) -> list[Contexts]:
    """Parse a comma-separated list of numbers of contexts, of which one may be ``auto``."""
    try:
        return ["auto" if number == "auto" else int(number) for number in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: expected whole numbers, or auto, with commas between them"
        ) from None


def _cells_of(folder: Path) -> list[Cell]:
    """Return the cells of a result.

    Raises:
        LabError: the folder holds none.
    """
    from lab.result import results

    try:
        return results.read(folder)[0]
    except (OSError, ValueError) as error:
        raise LabError(f"{folder} is no result of a bench ({error}): name a folder below results/") from None


def _kernel(kernel: str, tree: Path | None, series: str | None, options: dict[str, Any]) -> Path:
    """Return the kernel that ``--kernel`` names, built where it is missing.

    What the guest cannot be given is refused first, not after the minutes that a build takes.
    """
    from lab.machine import guest
    from lab.machine.hardware import Hardware
    from lab.tree import config

    size = ("machine", "clock", "mem_mib", "cpus", "possible_cpus", "mips", "quantum_ns", "lanes")
    hardware = Hardware(**{name: options[name] for name in size if name in options})
    flavours = config.FRAGMENTS[hardware.machine]
    is_path = "/" in kernel
    if not is_path and kernel not in flavours:
        raise unknown_name("kernel", kernel, [*flavours, "PATH"])
    made = ("fs", "device", "device_count", "device_size_mib")
    guest.check(hardware, **{name: options[name] for name in made if name in options})
    return Path(kernel) if is_path else _build(kernel, _source(tree, series), hardware.machine).path


def _known_filesystem(fs: str) -> None:
    """Refuse what is not the name of a filesystem."""
    from lab.machine import guest

    known = [name for name in guest.FILESYSTEMS if name != "none"]
    if fs not in known:
        raise unknown_name("filesystem", fs, known)


def _build(flavour: str, source: Source, machine: str = "uml") -> Kernel:
    from lab.tree.build import build

    return build(flavour, source, machine)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Build stock and parallel-writeback Linux, and compare them on real fio jobs.

    Kernels run as User-mode Linux or in QEMU: ordinary programs, no root, no image.  What is fetched and
    built is kept in $PWB_CACHE, or else ~/.cache/pwb.
    """


@cli.command()
def check() -> None:
    """Check that this machine has all that building and measuring need."""
    from lab.experiment import scenario
    from lab.machine import host
    from lab.machine.hardware import QEMU_MIB

    size = scenario.load("headline").guest
    host.check(host.Need(disk_bytes=_DISK_BYTES, memory_bytes=(size.mem_mib + QEMU_MIB) << 20))
    click.echo("this machine has all that building and measuring need")


@cli.command()
@_source_options
def fetch(tree: Path | None, series: str | None) -> None:
    """Fetch the kernel source; print its version and place."""
    source = _source(tree, series)
    click.echo(f"Linux {source.version}: {source.path}")


@cli.command()
@_source_options
def weave(tree: Path | None, series: str | None) -> None:
    """Weave our change onto the kernel source; print where."""
    from lab.tree import weave as weaver

    source = _source(tree, series)
    woven = weaver.weave(source)
    click.echo(f"Linux {source.version} with parallel writeback: {woven.path}")


@cli.command()
@_output_folder("series", "New or empty folder for the patches")
@_source_options
def series(output: Path, tree: Path | None, series: str | None) -> None:
    """Write our change as patches for git am."""
    from lab.tree.series import write_series

    for patch in write_series(_source(tree, series), output):
        click.echo(patch)


@cli.command()
@click.option("--machine", metavar="uml|smp", help="Machine to build for  [default: uml; without names both]")
@click.argument("flavours", nargs=-1, metavar="[stock|parallel|debug|nocgroup|traced|lockstat|kcsan]...")
@_source_options
def build(flavours: tuple[str, ...], machine: str | None, tree: Path | None, series: str | None) -> None:
    """Build kernels, all that the tests need unless named; print where each is."""
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
    source = _source(tree, series)
    for flavour, each in wanted:
        click.echo(f"{each} {flavour}: {_build(flavour, source, each).path}")


@cli.command(context_settings={"allow_interspersed_args": False})
@_guest_options
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Seconds of the host until the guest must be off  [default: 300, in virtual time 1800]",
)
@_clock("virtual")
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
    if is_profiled and (options["machine"], options["clock"]) != ("smp", "virtual"):
        raise click.UsageError("--profile is of virtual time: it needs --machine smp without --clock host")
    path = _kernel(kernel, tree, series, options)
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
@_guest_options
@_clock("host")
def shell(kernel: str, tree: Path | None, series: str | None, **options: Any) -> int:
    """Boot a kernel and give a shell in it.

    On smp it lives in the host's time unless asked otherwise: in virtual time a second of many busy CPUs
    takes half a minute.
    """
    from lab.machine import guest as guests

    return guests.shell(_kernel(kernel, tree, series, options), **options).status


@cli.command()
@click.option("--fs", default="xfs", show_default=True, metavar="xfs|ext4|f2fs", help="Fresh filesystem")
@click.option("--limit-mib", default=256, show_default=True, type=click.IntRange(1), help="Dirty limit")
@click.option("--contexts", default=2, show_default=True, type=click.IntRange(1), help="Contexts of parallel")
@_picture("pauses.png")
@_source_options
def pauses(
    *, fs: str, limit_mib: int, contexts: int, output: Path, tree: Path | None, series: str | None
) -> None:
    """Draw dirty pages and the pauses of writers over time, stock beside parallel."""
    from lab.probes import pauses

    _known_filesystem(fs)
    source = _source(tree, series)
    recorded = {
        "stock": pauses.record(_build("stock", source), fs, limit_mib, None),
        f"{contexts} contexts": pauses.record(_build("parallel", source), fs, limit_mib, contexts),
    }
    pauses.draw(recorded, f"{fs}, dirty limit {limit_mib} MiB, 4 writers of 4k at random", output)
    click.echo(output)


@cli.command()
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=_names, help="Filesystems")
@click.option(
    "--device", default="brd", show_default=True, metavar="NAME", help="Test device, see pwb devices"
)
@click.option("--cpus", default=8, show_default=True, type=click.IntRange(2, 64), help="Guest CPUs")
@click.option("--limit-mib", default=128, show_default=True, type=click.IntRange(1), help="Dirty limit")
@_picture("changes.png")
@_source_options
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
        _known_filesystem(one)
        changes.check(one, device, cpus)
    kernel = _build("parallel", _source(tree, series), "smp")
    recorded = {one: changes.record(kernel, one, device, cpus, limit_mib) for one in fs}
    changes.draw(recorded, f"{device}, {cpus} CPUs, dirty limit {limit_mib} MiB, contexts found", output)
    click.echo(output)


@cli.command()
@click.option("--fs", default="xfs", show_default=True, metavar="xfs|ext4|f2fs", help="Fresh filesystem")
@click.option(
    "--contexts", default="1,2,4,8", show_default=True, callback=_numbers, help="Numbers of contexts"
)
@click.option(
    "--affinities",
    default="ino,fs",
    show_default=True,
    callback=_names,
    help="Values of wb_affinity to try where there is a choice",
)
@click.option(
    "--places",
    default="apart,together,full",
    show_default=True,
    callback=_names,
    help="apart: a directory, so on XFS an AG, for each file; together: one for all; full: the same, all "
    "other AGs full and the lock of that one often held",
)
@_output_folder("waits", "Folder for table.md, summary.json and waits.png")
@_source_options
def waits(*, fs: str, output: Path, tree: Path | None, series: str | None, **choices: Any) -> None:
    """Show what the flushers wait for, on a device that waits, by a trace of the scheduler."""
    from lab.probes import waits

    _known_filesystem(fs)
    settings = waits.settings(fs, **choices)
    kernel = _build("traced", _source(tree, series))
    waits.report([waits.record(kernel, fs, *setting) for setting in settings], fs, output)
    click.echo((output / "table.md").read_text(), nl=False)


@cli.command()
@click.argument("tests", nargs=-1, metavar="[TEST]...")
@_output_folder("results/clock", "Folder for table.md and summary.json")
@_source_options
def clock(*, tests: tuple[str, ...], output: Path, tree: Path | None, series: str | None) -> int:
    """Show that the clock of the machine smp is right, with a table of what must hold.

    TEST is one of repeat, load, loop, device, rate, sleep, lock, sensitivity, uml and speed; all of them
    unless given. Lines of the same tests that are in the output folder are replaced. The exit status is 1
    when a bound is not met.
    """
    from lab.probes import clock, trial

    chosen = clock.chosen(tests)
    source = _source(tree, series)
    run = clock.once(lambda one: trial.boot(one, _build(one.kernel, source, one.machine).path))
    met = True
    for name in chosen:
        rows = clock.rows(name, run)
        met &= all(row.met is not False for row in rows)
        clock.keep(rows, output)
        click.echo(clock.table(rows), nl=False)
    return 0 if met else 1


@cli.command()
@_output_folder("isolation", "Folder for summary.json and isolation.png")
@_source_options
def isolation(*, output: Path, tree: Path | None, series: str | None) -> None:
    """Draw where XFS puts files that are written side by side, with and without write streams."""
    from lab.probes import isolation

    kernel = _build("parallel", _source(tree, series))
    recorded = {
        "without streams": isolation.record(kernel, streams=False),
        "a stream for each file": isolation.record(kernel, streams=True),
    }
    isolation.report(recorded, output)
    click.echo(output / "isolation.png")


@cli.command()
@_output_folder("amplification", "Folder for summary.json and amplification.png")
@click.option(
    "--discard/--no-discard",
    default=True,
    show_default=True,
    help="Whether the flash is told what was deleted",
)
@click.option("--repetitions", default=3, show_default=True, type=click.IntRange(min=1), help="Rounds")
@_source_options
def amplification(
    *, output: Path, discard: bool, repetitions: int, tree: Path | None, series: str | None
) -> None:
    """Measure what RocksDB makes flash write: without help, with life time hints, with write streams."""
    from lab.probes import amplification
    from lab.result import report

    kernel = _build("parallel", _source(tree, series))
    runs = amplification.measure(kernel, discard=discard, repetitions=repetitions)
    report.terminal().print(amplification.table(amplification.report(runs, output)))
    click.echo(output / "amplification.png")


@cli.command()
@click.argument("folder", default="results/latest", type=click.Path(path_type=Path), metavar="[RESULT]")
def throttle(folder: Path) -> None:
    """Print how a result of "pwb bench throttle-even" compares with stock, cell by cell.

    RESULT is its folder; results/latest unless given.
    """
    from lab.result import throttle

    cells = _cells_of(folder)
    click.echo(f"{throttle.means(cells)}\n\n{throttle.table(cells)}")


@cli.command()
@click.argument("scenario", default="headline", metavar="[SCENARIO]")
@click.option("--full", is_flag=True, help="More devices, CPUs and repetitions, as the scenario lists")
@_machine_options(machine=None, cpus=None)
@_where_options
@_profile_option
@_source_options
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
    """Measure stock against parallel, with the bounds, in one run.

    SCENARIO is the name of a file in scenarios/; "headline" unless given.
    """
    from lab.experiment import bench as benches
    from lab.experiment import scenario as scenarios

    scenarios.load(scenario)
    where = benches.Where(scheduler, fresh, profiled)
    benches.bench(scenario, full=full, source=_source(tree, series), where=where, **rest)


@cli.command()
@click.option(
    "--job",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.fio",
    help="fio job file of your own, run as it is",
)
@click.option("--fs", default="xfs,ext4,f2fs", show_default=True, callback=_names, help="Filesystems")
@click.option(
    "--device", default="brd", show_default=True, metavar="NAME", help="Test device, see pwb devices"
)
@click.option(
    "--contexts",
    default="1,2,4,8",
    show_default=True,
    callback=_contexts,
    help="Numbers of contexts, or auto: the kernel finds one",
)
@click.option(
    "--dirty-limits-mib",
    default="128",
    show_default=True,
    callback=_numbers,
    help="Values for vm.dirty_bytes",
)
@click.option(
    "--memory",
    "memory_mib",
    default=8192,
    show_default=True,
    metavar="MIB",
    help="Memory of the guest, of which the device has 5 GiB",
)
@click.option(
    "--budget",
    "budget_min",
    default=15.0,
    show_default=True,
    type=click.FloatRange(min=1),
    metavar="MINUTES",
    help="How long to measure, once kernels are there",
)
@click.option("--dry-run", is_flag=True, help="Say what would be booted and how long it takes; boot nothing")
@_machine_options(machine="smp", cpus=8)
@_where_options
@_profile_option
@_source_options
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
    from lab.experiment.bench import Where, plan_job, run_job

    if dry_run:
        click.echo(plan_job(job, **rest))
        return
    run_job(job, source=_source(tree, series), where=Where(scheduler, fresh, profiled), **rest)


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
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where table.md, summary.json and plots go  [default: results/published]",
)
@_machine_options(machine=None, cpus=None)
@_where_options
@_source_options
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
    """Measure published claims, and show published and measured side by side.

    SCENARIO is a scenario with published numbers or bars in it; all of them unless given.
    """
    from lab.experiment.bench import Where
    from lab.result import published_table as tables

    if folders and (scenarios or full):
        raise click.UsageError("--results takes what was measured: it excludes SCENARIO and --full")
    if not folders:
        names = tables.known(list(scenarios))
        where = Where(scheduler, fresh)
        folders = tuple(tables.measure(names, full=full, source=_source(tree, series), where=where, **rest))
    tables.compare(list(folders), output or tables.OUTPUT)


@cli.command("report")
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="[RESULT]...",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.html",
    help="Write one page of all these results, and nothing else",
)
def make_report(*, folders: tuple[Path, ...], output: Path | None) -> None:
    """Make table, plots and index.html of results again, of interrupted ones too.

    RESULT is a folder below results/; results/latest unless given.
    """
    from lab.result import page, results

    chosen = [folder.resolve() for folder in folders or (results.RESULTS / "latest",)]
    for folder in chosen:
        _cells_of(folder)
    try:
        if output is not None:
            output.write_text(page.render(chosen) + "\n", encoding="utf-8")
            click.echo(output)
            return
        for folder in chosen:
            page.remake(folder)
            click.echo(folder / page.NAME)
    except FileNotFoundError as error:
        raise LabError(
            f"{error.filename} is not there: a result is drawn again from its raw data, and a page goes "
            "into a folder that exists"
        ) from None


@cli.command("diff")
@click.argument("before", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="A")
@click.argument("after", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="B")
def show_diff(*, before: Path, after: Path) -> None:
    """Show results A and B side by side, and which settings differ by more than their spread."""
    from lab.result import diff

    click.echo(diff.markdown(_cells_of(before), _cells_of(after)), nl=False)


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
    """Make a test device of what fio measured on a drive of yours.

    FILE.json is what fio wrote with --output-format=json of the job devices/calibrate.fio.
    """
    from lab.machine import calibrate as calibration

    points = calibration.read(measured)
    found = calibration.fit(points)
    path = calibration.write(name, calibration.device_file(name, found, points))
    click.echo(calibration.table(found, points))
    click.echo(f"{path}: for ./pwb run --device {name}")


@cli.command()
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@_output_folder("results/scaling", "Folder for table.md, and a JSON file and a plot for each workload")
@_where_options
@_source_options
def scaling(
    *,
    workloads: tuple[str, ...],
    output: Path,
    scheduler: str | None,
    fresh: bool,
    tree: Path | None,
    series: str | None,
) -> None:
    """Show how workloads scale from 2 to 64 CPUs, and what limits each, with profiles.

    WORKLOAD is one of allocate, append, mmap, overwrite and small; all of them unless given: hours on two
    cores. A run that was interrupted goes on where it was.
    """
    from lab.experiment.bench import Where
    from lab.result import scaling as scalings

    source = _source(tree, series)
    for name in scalings.chosen(workloads):
        scalings.keep(name, scalings.measure(name, source, Where(scheduler, fresh, profiled=True)), output)
    click.echo(f"{output / scalings.TABLE}")


@cli.command()
@click.argument("names", nargs=-1, metavar="[MUTANT]...")
@_output_folder("results/mutants", "Folder for mutants.md and mutants.json, beside what is there already")
def mutants(*, names: tuple[str, ...], output: Path) -> int:
    """Build kernels that are broken on purpose, and see that a test catches each.

    MUTANT is the name of a file in tests/mutants/; all of them unless given: about an hour on two cores.
    Fails if one survives.
    """
    from lab.proof import mutants as proof

    found = []

    def show(outcome: proof.Outcome) -> None:
        found.append(outcome)
        proof.keep([outcome], output)

    proof.run(names, click.echo, show)
    click.echo(f"{output / proof.TABLE}")
    return 0 if all(one.verdict == "caught" for one in found) else 1


@cli.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def python(arguments: tuple[str, ...]) -> NoReturn:
    """Run the lab's own Python."""
    os.execv(sys.executable, [sys.executable, *arguments])
