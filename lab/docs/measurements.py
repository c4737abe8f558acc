# SPDX-License-Identifier: GPL-2.0
"""Results that are kept in git, in measurements/<id>/: figures, what they were measured with, a table.

``summary.json`` holds the figures, ``meta.json`` what they were measured with, ``table.md`` is made of both.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from lab.check import everywhere
from lab.check import result as checked
from lab.machine.server_console import Line
from lab.probes.ag.probe import AgCosts, AgExtents
from lab.probes.amplification.probe import Amplification
from lab.probes.changes.probe import Changes
from lab.probes.clock import row as clock
from lab.probes.costs.probe import Costs
from lab.probes.endurance.probe import Endurance
from lab.probes.isolation.probe import Isolation
from lab.probes.pauses.probe import Pauses
from lab.probes.probe import Probe
from lab.probes.waits.probe import Waits
from lab.proof import cuts, installed, mutants, schedules, tested
from lab.result import published_table, report, results, throttle
from lab.result.provenance import META, SUMMARY, TABLE
from lab.result.results import Cell
from lab.tree import change
from lab.tree.source import SERIES
from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

MEASUREMENTS = REPO / "measurements"
PICTURES = (".png", ".svg")
#: What is larger does not belong into git.
MOST_BYTES = 200_000
PROBES: tuple[type[Probe[Any]], ...] = (
    AgCosts,
    AgExtents,
    Amplification,
    Changes,
    Costs,
    Endurance,
    Isolation,
    Pauses,
    Waits,
)
#: What earlier changes have otherwise than the present one, by their identities, where that is so little that
#: a reader can judge it.
SMALL_DIFFERENCES = {
    "fa0c8d2399be475217ddae0d8fbd3bcf": (
        "corner cases (which worker takes a sync, cgroups that go, memory that runs out, errors of AG-aware "
        "writeback), the looks of `auto` outside its windows, how long it waits for inodes to move, and what "
        "it doubts"
    ),
    "307458419acbaf6bf974ef52aa95e4fe": "how long `auto` waits for inodes to move, and what it doubts",
    "8118757807c488ed570fd6079bcca0b8": "what `auto` doubts",
}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_CELLS = TypeAdapter(list[Cell])


class Booted(BaseModel):
    """A kernel: the version of the source that it was built from."""

    version: str


class Host(BaseModel):
    """A host: how many of its cores a measurement had."""

    cpus: int


class Meta(BaseModel):
    """What a result was measured with, as far as the docs ask.

    Attributes:
        view: name in :data:`VIEWS` of what makes its table; None for a result without one.
        command: what measures it again.
        date: when it was measured, ISO 8601.
        change: identity of the change in its kernel (:func:`lab.tree.change.identity`); None if not known.
        kernels: those that were booted, by their flavours; none if not known.
        notes: remarks on the circumstances.
        scenario: of a result of the bench, by its keys.
        seconds: of the host that it took; None if not known.
        boots_from_cache: how many boots of it had been measured before.
        host: where it was measured; None if not known.
    """

    view: str | None = None
    command: str
    date: str
    change: str | None = None
    kernels: dict[str, Booted] = {}
    notes: list[str] = []
    scenario: dict[str, Any] = {}
    seconds: float | None = None
    boots_from_cache: int = 0
    host: Host | None = None

    @property
    def is_of_this_kernel(self) -> bool:
        """Say whether it was measured with the change as it is now, on the series that it is for."""
        return self.change == _present_change() and self._is_of_series

    @property
    def small_difference(self) -> str | None:
        """Say what its kernel has otherwise than the present one; None if nothing or much."""
        return SMALL_DIFFERENCES.get(self.change or "") if self._is_of_series else None

    @property
    def _is_of_series(self) -> bool:
        return all(kernel.version.startswith(f"{SERIES}.") for kernel in self.kernels.values())


View = Callable[[bytes, Meta], str]


@functools.cache
def _present_change() -> str:
    return change.identity()


def _cells(data: bytes, meta: Meta) -> str:
    return report.markdown(report.in_order(_CELLS.validate_json(data)), meta.notes)


def _throttle(data: bytes, meta: Meta) -> str:
    cells = _CELLS.validate_json(data)
    return f"{throttle.means(cells)}\n{throttle.table(cells)}"


def _published(data: bytes, meta: Meta) -> str:
    return published_table.markdown(published_table.Summary.model_validate_json(data))


def _clock(data: bytes, meta: Meta) -> str:
    return clock.page(TypeAdapter(list[clock.Row]).validate_json(data))


def _cuts(data: bytes, meta: Meta) -> str:
    return cuts.table(TypeAdapter(list[cuts.Outcome]).validate_json(data))


def _installed(data: bytes, meta: Meta) -> str:
    return installed.table(TypeAdapter(list[Line]).validate_json(data))


def _tested(data: bytes, meta: Meta) -> str:
    return tested.table(TypeAdapter(list[tested.Outcome]).validate_json(data))


def _mutants(data: bytes, meta: Meta) -> str:
    return mutants.table(TypeAdapter(list[mutants.Outcome]).validate_json(data))


def _schedules(data: bytes, meta: Meta) -> str:
    return schedules.table(TypeAdapter(list[schedules.Outcome]).validate_json(data))


def _series(data: bytes, meta: Meta) -> str:
    return checked.table(TypeAdapter(list[checked.Row]).validate_json(data))


def _weaves(data: bytes, meta: Meta) -> str:
    return everywhere.table(TypeAdapter(list[everywhere.Kernel]).validate_json(data))


def _probe(probe: type[Probe[Any]]) -> View:
    return lambda data, meta: probe.table(pd.DataFrame(json.loads(data)))


#: What makes a table of a ``summary.json``.
VIEWS: dict[str, View] = {
    "cells": _cells,
    "clock": _clock,
    "cuts": _cuts,
    "installed": _installed,
    "mutants": _mutants,
    "published": _published,
    "schedules": _schedules,
    "series": _series,
    "tested": _tested,
    "throttle": _throttle,
    "weaves": _weaves,
    **{probe.name: _probe(probe) for probe in PROBES},
}

#: Those whose summary lists cells of the bench.
VIEWS_OF_CELLS = ("cells", "throttle")


def names() -> list[str]:
    """List the measurements that are kept."""
    return sorted(path.parent.name for path in MEASUREMENTS.glob(f"*/{META}"))


def meta(name: str) -> Meta:
    """Return what a measurement was made with."""
    return _read_meta(MEASUREMENTS / name)


def _read_meta(folder: Path) -> Meta:
    try:
        return Meta.model_validate_json((folder / META).read_bytes())
    except (OSError, ValidationError) as error:
        raise LabError(f"{folder} is no result that can be kept: {error}") from None


def cells(name: str) -> list[Cell]:
    """Return the cells of a measurement of the bench."""
    return _CELLS.validate_json((MEASUREMENTS / name / SUMMARY).read_bytes())


def table(name: str) -> str | None:
    """Make the table of a measurement; None for one without."""
    about = meta(name)
    if about.view is None:
        return None
    if about.view not in VIEWS:
        raise unknown_name("view", about.view, VIEWS)
    return VIEWS[about.view]((MEASUREMENTS / name / SUMMARY).read_bytes(), about)


def name_of(folder: Path) -> str:
    """Return the name under which a result is kept unless it is given another."""
    return str(_read_meta(folder).scenario.get("name", folder.name))


def keep(folder: Path, name: str) -> Path:
    """Keep a result in place of what was kept under this name, and make its table.

    Args:
        folder: the result.
        name: short name, which the docs know it by.

    Returns:
        The folder in ``measurements/``.

    Raises:
        LabError: a bad name, no result, one that broke off, or one that is too large for git.
    """
    if not _NAME.fullmatch(name):
        raise LabError(
            f"{name!r} names no measurement: expected small letters, digits and hyphens; name it by --name"
        )
    if not results.is_complete(folder):
        raise LabError(
            f"{folder.name} is of a run that broke off or still goes on: expected a whole result; the same "
            "command again measures only what is missing"
        )
    about = _read_meta(folder)
    kept = {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.name in (SUMMARY, META) or path.suffix in PICTURES
    }
    if name in names():
        kept_one = meta(name)
        mine, theirs = ((one.view, one.scenario.get("name")) for one in (about, kept_one))
        if mine != theirs:
            expected, found = (" of ".join(map(str, filter(None, one))) for one in (theirs, mine))
            raise LabError(
                f"measurements/{name} is of another kind: expected {expected}, and {folder.name} is {found}; "
                "name it by --name"
            )
    if about.view not in {None, *VIEWS}:
        raise unknown_name("view", str(about.view), VIEWS)
    if SUMMARY not in kept:
        raise LabError(f"{folder} has no {SUMMARY}: expected a whole result; measure it again")
    if about.view in VIEWS_OF_CELLS:
        cells = _CELLS.validate_json(kept[SUMMARY])
        kept[SUMMARY] = results.text(results.without_raw(cells)).encode()
    for file, data in kept.items():
        if len(data) > MOST_BYTES:
            raise LabError(f"{file} has {len(data):,} bytes: expected at most {MOST_BYTES:,} in git")
    home = MEASUREMENTS / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for file, data in kept.items():
        (home / file).write_bytes(data)
    write_table(name)
    return home


def write_table(name: str) -> None:
    """Write the table of a measurement, where it has one."""
    made = table(name)
    if made is not None:
        (MEASUREMENTS / name / TABLE).write_text(made, encoding="utf-8")
