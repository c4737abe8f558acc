# SPDX-License-Identifier: GPL-2.0
"""Options that several commands share, and what their values become."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lab.util.errors import LabError, unknown_name
from lab.util.invalid import in_short

if TYPE_CHECKING:
    from lab.experiment.axes import Contexts
    from lab.result.results import Cell
    from lab.tree.build import Kernel
    from lab.tree.source import Source

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


class ToWrite(click.Path):
    """A file or a folder to write to, which is looked at before anything runs; nothing is made yet."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path.

        Raises:
            LabError: nothing can be written there.
        """
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        whole = path.absolute()
        # Folders are made where they are missing, for a file none is.
        above = (whole, *whole.parents) if self.dir_okay else (whole.parent,)
        there = next((one for one in above if one.exists()), whole.parent)
        try:
            with tempfile.TemporaryFile(dir=there):
                return path
        except OSError as error:
            raise LabError(
                f"--output {path} cannot be written ({there}: {error.strerror}): expected a place below a "
                "folder of yours; name another"
            ) from None


def output_folder(default: str, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that names the folder to write to."""
    kind = ToWrite(file_okay=False, path_type=Path)
    return click.option("--output", default=default, show_default=True, type=kind, help=what)


def packages_folder(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that names the folder with packages."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option(
        "--packages", default="packages", show_default=True, type=kind, metavar="FOLDER", help=what
    )


def source_options(command: _F) -> _F:
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


def source_of(tree: Path | None, series: str | None) -> Source:
    """Return the source that the options of :func:`source_options` name, fetched when it is missing."""
    from lab.tree import source

    if tree is not None and series is not None:
        raise click.UsageError("--source and --series exclude each other: the tree has its own version")
    if tree is not None:
        return source.user_tree(tree)
    return source.fetch(series) if series is not None else source.fetch()


def guest_options(command: _F) -> _F:
    """Add the options that describe a guest."""
    for option in reversed(
        [
            click.option(
                "--kernel",
                default="parallel",
                show_default=True,
                metavar="stock|prepared|parallel|debug|nocgroup|traced|kcsan|PATH",
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
                callback=written_settings,
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
    return source_options(command)


def clock_option(default: str) -> Callable[[_F], _F]:
    """Return the option that names the clock of the machine smp."""
    return click.option(
        "--clock",
        default=default,
        show_default=True,
        metavar="virtual|host",
        help="Time on smp: what its CPUs have executed, or the host's",
    )


def written_settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse each ``PATH=VALUE``; the last one of a path counts."""
    settings = {}
    for value in values:
        path, equals, written = value.partition("=")
        if not path or not equals:
            raise click.BadParameter(f"{value!r}: expected PATH=VALUE, such as nwritebacks=4")
        settings[path] = written
    return settings


def machine_options(
    *, machine: str | None, cpus: str = "  [default: what the scenario says]"
) -> Callable[[_F], _F]:
    """Return the options that choose the machine to measure on.

    Args:
        machine: where no other is asked for; None: what the scenario says.
        cpus: what the help says of the CPUs where none are asked for.
    """
    own = "  [default: what the scenario says]"

    def add(command: _F) -> _F:
        chosen = click.option(
            "--machine",
            default=machine,
            show_default=machine is not None,
            type=click.Choice(["uml", "smp"]),
            help="User-mode Linux, or emulated x86-64 in virtual time" + ("" if machine else own),
        )
        count = click.option("--cpus", type=click.IntRange(1, 64), help=f"Guest CPUs{cpus}")
        return chosen(count(command))

    return add


def scheduler_option(command: _F) -> _F:
    """Add the option that names a cluster to run guests on."""
    return click.option(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="Cluster of dask.distributed to run the guests on  [default: one on this machine]",
    )(command)


def where_options(command: _F) -> _F:
    """Add the options that say where guests in virtual time run."""
    fresh = click.option("--fresh", is_flag=True, help="Measure again what was measured before")
    return scheduler_option(fresh(command))


def profile_option(command: _F) -> _F:
    """Add the option for a profile of each run."""
    return click.option(
        "--profile",
        "profiled",
        is_flag=True,
        help="Show who runs, spins and waits: tables and flame graphs in the result's folder raw/",
    )(command)


class Number(click.FloatRange):
    """A number within a range; ``nan`` is none, though click takes it: every comparison of it is false."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail("nan: expected a number", param, ctx)
        return number


def _each_once(values: list[_T]) -> list[_T]:
    """Refuse a list that names something twice: it would be measured twice, or replace itself."""
    for value in values:
        if values.count(value) > 1:
            raise click.BadParameter(f"{value} is there twice: expected each once")
    return values


def listed_names(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    """Parse a comma-separated list of names."""
    names = [name.strip() for name in value.split(",")]
    if not all(names):
        raise click.BadParameter(f"{value!r}: expected names with commas between them")
    return _each_once(names)


def listed_numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Parse a comma-separated list of whole numbers."""
    try:
        return _each_once([int(number) for number in value.split(",")])
    except ValueError:
        raise click.BadParameter(f"{value!r}: expected whole numbers with commas between them") from None


def listed_contexts(context: click.Context, parameter: click.Parameter, value: str) -> list[Contexts]:
    """Parse a comma-separated list of numbers of contexts, of which one may be ``auto``."""
    try:
        return _each_once(["auto" if number == "auto" else int(number) for number in value.split(",")])
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: expected whole numbers, or auto, with commas between them"
        ) from None


def cells_of(folder: Path) -> list[Cell]:
    """Return the cells of a result.

    Raises:
        LabError: the folder holds none.
    """
    from lab.result import results

    try:
        return results.read(folder)[0]
    except (OSError, ValueError) as error:
        raise LabError(
            f"{folder} is no result of a bench ({in_short(error)}): name a folder below results/"
        ) from None


def kernel_of(kernel: str, tree: Path | None, series: str | None, options: dict[str, Any]) -> Path:
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
    return Path(kernel) if is_path else build_kernel(kernel, source_of(tree, series), hardware.machine).path


def known_filesystem(fs: str) -> None:
    """Refuse what is not the name of a filesystem."""
    from lab.machine import guest

    known = [name for name in guest.FILESYSTEMS if name != "none"]
    if fs not in known:
        raise unknown_name("filesystem", fs, known)


def build_kernel(flavour: str, source: Source, machine: str = "uml") -> Kernel:
    """Return a kernel, built when it is missing; what builds it is imported only here."""
    from lab.tree.build import build

    return build(flavour, source, machine)
