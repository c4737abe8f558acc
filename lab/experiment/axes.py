# SPDX-License-Identifier: GPL-2.0
"""What settings can differ by: each axis is declared once, in :class:`Choice`, with all there is to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, PlainValidator

from guest.layout import GENERIC_AGS

#: Stock, our kernel, and that with the first patches of ours only; and two bounds, which run stock.
Variant = Literal["stock", "prepared", "parallel", "bdis", "direct"]
Flavour = Literal["stock", "prepared", "parallel"]
Filesystem = Literal["xfs", "ext4", "f2fs"]
Affinity = Literal["fs", "ino", "rotor", "least-loaded"]
AgMode = Literal["off", "ag-hint", "rotor", "generic"]
Layout = Literal["as-made", "even", "skewed"]
Placement = Literal["base", "generic", "stream"]
Workers = Annotated[int, Field(ge=1, le=8)]

MOST_CONTEXTS = 64
AS_MADE: Layout = "as-made"
#: Where a mounted XFS has its switches.
XFS = "/sys/fs/xfs/DEVICE"


def _number_or_auto(value: object) -> int | Literal["auto"]:
    if value == "auto":
        return "auto"
    if isinstance(value, int) and 1 <= value <= MOST_CONTEXTS:
        return value
    raise ValueError(f"expected auto, or a number from 1 to {MOST_CONTEXTS}, got {value!r}")


#: Of writeback contexts: a number, or what the kernel finds.
Contexts = Annotated[int | Literal["auto"], PlainValidator(_number_or_auto)]


@dataclass(frozen=True)
class Axis:
    """One thing that settings can differ by, beside the kernel and the number of contexts.

    Attributes:
        listed: key of a scenario that lists the values to try.
        of: what has it: the ``files``, with any kernel; the parallel ``kernel``; its ``contexts``, if there
            are several.
        usual: values that leave stock's path as it is; the first of them is not worth a word.
        said: how a value is named in words.
        named: how it is named in a file name.
        bdi_file: file of the device's backing_dev_info that sets it, at any time.
        typed: what sets a value that is no file of the BDI, as a line of a shell on the mounted filesystem;
            names and numbers in capitals are to fill in.
        values: all of them in their order; empty: numbers.
    """

    listed: str
    of: Literal["files", "kernel", "contexts"]
    usual: tuple[object, ...] = (None,)
    said: str = "{}"
    named: str = "{}"
    bdi_file: str | None = None
    typed: Mapping[object, str] = field(default_factory=dict, hash=False)
    values: tuple[object, ...] = ()

    def applies(self, variant: Variant, contexts: object) -> bool:
        """Say whether a setting of this kernel and number of contexts has a choice of it."""
        if self.of == "files":
            return True
        return variant == "parallel" and (self.of == "kernel" or contexts != 1)

    def rank(self, value: object) -> Any:
        """Return what to sort values by."""
        return self.values.index(value) if value in self.values else value or 0


class Choice(BaseModel, frozen=True):
    """A value of each axis; None where the kernel's own default is left alone."""

    affinity: Annotated[
        Affinity | None,
        Axis("affinities", of="contexts", bdi_file="wb_affinity", values=get_args(Affinity)),
    ] = None
    workers: Annotated[
        Workers | None,
        Axis(
            "workers",
            of="kernel",
            usual=(None, 1),
            said="{} workers",
            named="workers{}",
            bdi_file="wb_workers",
        ),
    ] = None
    ag_mode: Annotated[
        AgMode | None,
        Axis(
            "ag_modes",
            of="kernel",
            usual=(None, "off"),
            said="mode {}",
            named="mode-{}",
            typed={
                mode: f"for kind in overwrite delalloc; do echo {mode} > {XFS}/writeback/$kind; done"
                for mode in get_args(AgMode)
            },
            values=get_args(AgMode),
        ),
    ] = None
    placement: Annotated[
        Placement | None,
        Axis(
            "placements",
            of="kernel",
            usual=(None, "base"),
            said="{} placement",
            typed={
                "generic": f"echo {GENERIC_AGS} > {XFS}/write_streams/generic_ags",
                "stream": f"echo STREAMS > {XFS}/write_streams/software; wbctl stream set FILE STREAM",
            },
            values=get_args(Placement),
        ),
    ] = None
    layout: Annotated[Layout, Axis("layouts", of="files", usual=(AS_MADE,), values=get_args(Layout))] = (
        AS_MADE
    )

    @property
    def choice(self) -> dict[str, Any]:
        """Return the value of each axis."""
        return {name: getattr(self, name) for name in AXES}

    def said(self) -> list[str]:
        """Name in words what is not as usual."""
        words = [AXES[name].said.format(value) for name, value in self._told()]
        return [word.removesuffix("s") if word == "1 workers" else word for word in words]

    def named(self) -> list[str]:
        """Name for a file name what is not as usual."""
        return [AXES[name].named.format(value) for name, value in self._told()]

    def _told(self) -> list[tuple[str, object]]:
        return [(name, value) for name, value in self.choice.items() if value != AXES[name].usual[0]]


def _declared() -> dict[str, Axis]:
    """Return the axes of :class:`Choice` by the names of their fields."""
    fields = Choice.model_fields.items()
    return {name: one for name, field in fields for one in field.metadata if isinstance(one, Axis)}


AXES = _declared()


def axes_of(*kinds: str) -> Iterable[tuple[str, Axis]]:
    """Yield the axes of these kinds, with their names."""
    return ((name, axis) for name, axis in AXES.items() if axis.of in kinds)
