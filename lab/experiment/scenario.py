# SPDX-License-Identifier: GPL-2.0
"""Scenarios: what is measured, as data: a TOML file in scenarios/, or a user's own fio job file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from lab.experiment.axes import (
    AXES,
    Affinity,
    AgMode,
    Axis,
    Choice,
    Contexts,
    Filesystem,
    Layout,
    Placement,
    Variant,
    Workers,
)
from lab.experiment.published import Bar, Published, Strict
from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

SCENARIOS = REPO / "scenarios"
FILESYSTEMS = ("xfs", "ext4", "f2fs")
LEAST_LIMIT_MIB = 8

Machine = Literal["uml", "smp"]
Bound = Literal["bdis", "direct"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
FilePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")]


class Window(Strict):
    """When figures are taken: ``ramp_s`` after fio starts, for ``window_s`` (None: until fio ends).

    Where what is already written decides how fast the rest goes, as with files that get their blocks, equal
    times are not equal work. With ``between_mib`` figures are taken from when the first amount has reached
    the device until the second has, which ends the run; ``ramp_s`` and ``window_s`` together are how long
    that may take.
    """

    ramp_s: float = Field(ge=0)
    window_s: float | None = Field(default=None, gt=0)
    between_mib: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(gt=0)]] | None = None

    @model_validator(mode="after")
    def _check_amounts(self) -> Self:
        if self.between_mib and self.between_mib[0] >= self.between_mib[1]:
            raise ValueError(f"between_mib {list(self.between_mib)}: expected the smaller amount first")
        return self

    def longer(self, times: float) -> Self:
        """Return a window that is so many times as long; one that ends with an amount stays as it is."""
        if self.between_mib or self.window_s is None:
            return self
        return self.model_copy(update={"ramp_s": self.ramp_s * times, "window_s": self.window_s * times})

    def after(self, seconds: float) -> Self:
        """Return the window so many seconds later; one between two amounts stays as it is."""
        if self.between_mib:
            return self
        return self.model_copy(update={"ramp_s": self.ramp_s + seconds})


class Limit(Window):
    """One dirty limit: ``vm.dirty_bytes``; ``vm.dirty_background_bytes`` is half of it."""

    mib: int = Field(ge=LEAST_LIMIT_MIB)


class GuestSize(Strict):
    """The guest's machine, CPUs and memory, and the size of its device, whose blocks live in that memory too.

    ``machine`` is ``uml``, User-mode Linux, in the host's time, or ``smp``, emulated x86-64 in virtual time;
    all seconds of a scenario are those of the guest. ``possible_cpus`` beyond ``cpus`` are never there, but a
    device may have four contexts for each.
    """

    machine: Machine = "uml"
    cpus: int = Field(default=2, ge=1, le=64)
    possible_cpus: int | None = Field(default=None, ge=1)
    mem_mib: int = Field(default=8192, ge=512)
    device_mib: int = Field(default=5120, ge=512)


class Files(Strict):
    """Files that are there before the first job starts, written out in full.

    Either ``names``, of ``size_mib`` each, or ``total_mib``: then there is a file for each CPU, ``data.0``,
    ``data.1`` and so on, which share that size; with ``own_directories`` they are ``d.0/data`` and so on.

    ``empty`` leaves them sparse instead, of that size and without a block: whatever the jobs write has to be
    allocated. ``names`` may lie in directories, which are made in the order of the names (XFS puts each into
    the next AG, and a file into that of its directory).

    ``layouts`` are tried one by one. ``as-made`` takes the inodes that the filesystem gives. With ``even``
    the inode number of file i leaves i as the remainder by ``modulus``, so that ``i_ino % n`` spreads the
    files evenly for every n that divides it. With ``skewed`` every one leaves 0, and all inodes come from
    the directory of the first file (one AG on XFS): ``i_ino % n`` puts them all into one context.
    """

    names: list[FilePath] = Field(default_factory=list)
    size_mib: int | None = Field(default=None, ge=1)
    total_mib: int | None = Field(default=None, ge=1)
    own_directories: bool = False
    empty: bool = False
    layouts: list[Layout] = Field(default=["as-made"], min_length=1)
    modulus: int | None = Field(default=None, ge=2)

    @model_validator(mode="after")
    def _modulus_where_needed(self) -> Self:
        if (self.modulus is None) != (self.layouts == ["as-made"]):
            raise ValueError("modulus goes with the layouts even and skewed, and only with them")
        return self

    @model_validator(mode="after")
    def _named_or_for_each_cpu(self) -> Self:
        named = bool(self.names) and self.size_mib is not None and self.total_mib is None
        if not named and (self.names or self.size_mib is not None or self.total_mib is None):
            raise ValueError("expected names and size_mib, or total_mib without either")
        if named and self.own_directories:
            raise ValueError("own_directories goes with total_mib: names say themselves where they are")
        return self

    def names_for(self, cpus: int) -> list[str]:
        """Return the names of the files on a guest with so many CPUs."""
        name = "d.{}/data" if self.own_directories else "data.{}"
        return list(self.names) or [name.format(cpu) for cpu in range(cpus)]

    def size_for(self, cpus: int) -> int:
        """Return the size of each file in MiB on a guest with so many CPUs."""
        return self.size_mib or max(1, (self.total_mib or 0) // cpus)


class Job(Strict):
    """A fio job file, by its text.

    ``${RAMP_S}`` and ``${WINDOW_S}`` are those of the current limit, ``${CPUS}`` are the guest's CPUs, and
    ``${FILE_MIB}`` is the size of each of the scenario's files. ``total_files`` is for a job that makes its
    own as it runs: ``${FILES}`` is the share of each CPU, for fio takes time and memory for every file.
    """

    text: str = Field(min_length=1)
    total_files: int | None = Field(default=None, ge=64)


class Full(Strict):
    """What ``--full`` changes."""

    devices: list[Name] | None = None
    contexts: list[Contexts] | None = None
    scaling: list[int] | None = None
    repetitions: int | None = Field(default=None, ge=1)


class Scenario(Strict):
    """One experiment: a job on devices x filesystems x contexts x dirty limits, and the bounds beside it.

    ``files`` is None for a job that lays out its own files; then every dirty limit gets a fresh filesystem,
    because what the first limit wrote would be the second one's starting point; so it does with empty files.
    ``contexts`` are numbers, or ``auto`` where the kernel is to find one.
    ``affinities`` are values of ``wb_affinity`` to try with every number of contexts above 1, ``workers``
    values of ``wb_workers`` to try with each, ``ag_modes`` modes of XFS's AG-aware writeback, for overwrites
    and delayed allocation alike; none of them: the kernel's own default. ``placements`` say where XFS begins
    to look for blocks of a file: ``base`` in the AG of its inode, ``generic`` in a window of AGs, ``stream``
    in those of a write stream of its own. ``scaling`` are further numbers of CPUs, at which the first
    device, stock and ``scaling_contexts`` are measured, where ``cpus`` is as many contexts as CPUs, and what
    is more is left out; and the bounds in ``scaling_bounds``, each up to so many CPUs. Fewer CPUs than the
    guest's have ramps and windows longer by as much, and do the same work in them. ``parts`` are pieces of
    the steady window, to tell how much the rate varies within it. ``sample_s`` is the time between two looks
    at the counters. ``mkfs`` has further arguments of a filesystem's mkfs, in which ``{cpus}`` stands
    for the guest's CPUs to each of its devices, at least 2. ``prepare`` is a shell script that runs in the
    filesystem before every fio run; what it leaves running in the background gets a SIGTERM after that run.
    ``own_boots`` gives each setting a guest of its own where several could share one: what the kernel has
    learnt in one run, as of a cgroup, is known to the next.
    ``prepared`` adds a third kernel, with those patches of ours that come before the first that changes what
    a kernel does.
    ``view`` is what makes the table of a result that is kept (lab/docs/measurements.py).
    ``published`` and ``bars`` are what ``pwb compare`` puts beside the result.
    ``timeout_s`` is for one boot, in seconds of the host.
    """

    name: Name
    title: str
    devices: list[Name] = Field(min_length=1)
    filesystems: list[Filesystem] = Field(min_length=1)
    contexts: list[Contexts] = Field(min_length=1)
    affinities: list[Affinity] = Field(default_factory=list)
    workers: list[Workers] = Field(default_factory=list)
    ag_modes: list[AgMode] = Field(default_factory=list)
    placements: list[Placement] = Field(default_factory=list)
    prepared: bool = False
    bounds: list[Bound] = Field(default_factory=list)
    scaling: list[Annotated[int, Field(ge=1, le=64)]] = Field(default_factory=list)
    scaling_contexts: tuple[Contexts | Literal["cpus"], ...] = ("cpus",)
    scaling_bounds: dict[Bound, Annotated[int, Field(ge=1, le=64)]] = Field(default_factory=dict)
    repetitions: int = Field(ge=1)
    parts: int = Field(default=1, ge=1)
    sample_s: float = Field(default=0.5, gt=0)
    limits: list[Limit] = Field(min_length=1)
    direct: Window = Window(ramp_s=0.5, window_s=2.5)
    guest: GuestSize = GuestSize()
    mkfs: dict[Filesystem, list[str]] = Field(default_factory=dict)
    files: Files | None = None
    prepare: str | None = None
    own_boots: bool = False
    job: Job
    timeout_s: float = Field(default=300, gt=0)
    full: Full = Full()
    view: Literal["cells", "throttle"] = "cells"
    published: list[Published] = Field(default_factory=list)
    bars: list[Bar] = Field(default_factory=list)

    @property
    def flavours(self) -> tuple[str, ...]:
        """Return those of the kernels to compare."""
        return ("stock", "prepared", "parallel") if self.prepared else ("stock", "parallel")

    @property
    def layouts(self) -> list[Layout]:
        """Return the layouts of the files to try."""
        return self.files.layouts if self.files else ["as-made"]

    def values_of(self, axis: Axis) -> list[Any]:
        """Return the values of an axis to try; none: the kernel's own default alone."""
        return list(getattr(self, axis.listed))

    @property
    def reusable_files(self) -> bool:
        """Say whether one dirty limit after the other may run on the same files."""
        return self.files is not None and not self.files.empty

    @property
    def virtual(self) -> bool:
        """Say whether the guests live in virtual time, where neither the host's speed nor its load counts."""
        return self.guest.machine == "smp"

    @property
    def stopped_after_s(self) -> float | None:
        """Seconds after its first write that a job is stopped which knows nothing of windows; None: never."""
        longest = max((limit.ramp_s + (limit.window_s or 0) for limit in self.limits), default=0.0)
        return longest if self.files is None and self.virtual and longest else None

    def on(self, machine: Machine | None, cpus: int | None) -> Scenario:
        """Return the same scenario on another machine, or with other CPUs; None: as it says itself.

        Raises:
            LabError: with these values it is none.
        """
        asked = {"machine": machine, "cpus": cpus}
        changed = self.guest.model_dump() | {key: value for key, value in asked.items() if value is not None}
        return self._changed(guest=changed)

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        mib = [limit.mib for limit in self.limits]
        listed: list[tuple[str, Sequence[object]]] = [
            ("devices", self.devices),
            ("filesystems", self.filesystems),
            ("contexts", self.contexts),
            ("scaling", [self.guest.cpus, *self.scaling]),
            ("limits", mib),
            *((axis.listed, self.values_of(axis)) for axis in AXES.values()),
        ]
        for what, values in listed:
            if len(set(values)) != len(values):
                raise ValueError(f"{what}: each value once, got {values}")
        if "bdis" in self.bounds and self.layouts != ["as-made"]:
            raise ValueError("bounds: bdis has several filesystems, whose inode numbers share no layout")
        if self.ag_modes and self.filesystems != ["xfs"]:
            raise ValueError("ag_modes are XFS's: the only filesystem has to be xfs")
        return self

    @model_validator(mode="after")
    def _placed_where_blocks_are_wanted(self) -> Self:
        placeable = self.files is not None and self.files.empty and self.filesystems == ["xfs"]
        if self.placements and not placeable:
            raise ValueError("placements go with empty files on xfs, whose blocks are yet to be allocated")
        return self

    @model_validator(mode="after")
    def _claims_are_measured(self) -> Self:
        for row in self.published:
            if row.fs not in self.filesystems:
                raise ValueError(f"published {row.id}: {row.fs} is none of the scenario's filesystems")
            self._check_choice(f"published {row.id}", row, "parallel", row.contexts or None)
        for bar in self.bars:
            for pick in (bar.cell, bar.of):
                self._check_choice(f"bar {bar.claim!r}", pick, pick.variant, pick.contexts)
        return self

    def _check_choice(self, what: str, choice: Choice, variant: Variant, contexts: object) -> None:
        """Refuse a choice that the scenario does not measure."""
        for name, value in choice.choice.items():
            axis = AXES[name]
            has_choice = axis.applies(variant, contexts) or value is not None
            if has_choice and value not in (self.values_of(axis) or [None]):
                raise ValueError(f"{what}: {name} {value} is none of the scenario's, {self.values_of(axis)}")

    def up_to(self, most_cpus: int) -> Scenario:
        """Return the same scenario without its further numbers of CPUs above this one.

        Raises:
            LabError: with these values it is none.
        """
        return self._changed(scaling=[cpus for cpus in self.scaling if cpus <= most_cpus])

    def expanded(self) -> Scenario:
        """Return the scenario that ``--full`` runs.

        Raises:
            LabError: with these values it is none.
        """
        return self._changed(**self.full.model_dump(exclude_none=True))

    def _changed(self, **changes: Any) -> Scenario:
        """Return the scenario with other values.

        CPUs that its guest has anyway are no further ones, and User-mode Linux has no more than its host.

        Raises:
            LabError: with these values it is none.
        """
        values = self.model_dump() | changes
        guest = values["guest"]
        scaling = [cpus for cpus in values["scaling"] if cpus != guest["cpus"] and guest["machine"] != "uml"]
        try:
            return Scenario.model_validate(values | {"scaling": scaling})
        except ValidationError as error:
            raise LabError(f"scenario {self.name!r}: {wrong_keys(error)}") from error


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.toml"))


def load(name: str) -> Scenario:
    """Read a scenario by its name.

    Args:
        name: the name of a file in ``scenarios/``, without ``.toml``.

    Raises:
        LabError: there is none of that name, or its file does not say what a scenario must.
    """
    if name not in names():
        raise unknown_name("scenario", name, names())
    return parse(name, (SCENARIOS / f"{name}.toml").read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Scenario:
    """Make a scenario from the text of its file.

    Raises:
        LabError: naming every key that is wrong.
    """
    try:
        return Scenario.model_validate({"name": name} | tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"scenario {name!r} is not valid TOML: {error}") from error
    except ValidationError as error:
        raise LabError(f"scenario {name!r}: {wrong_keys(error)}") from error


def wrong_keys(error: ValidationError) -> str:
    """Put pydantic's findings into one sentence."""
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'the whole'}: {one['msg']}" for one in error.errors()
    )
