# SPDX-License-Identifier: GPL-2.0
"""What a probe is: the guests that it boots, the record that each leaves, and what is made of the records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pandas as pd
from pydantic import BaseModel

from lab.experiment.figure import Figure
from lab.util import markdown

#: A line of the table of all runs: what tells it from the others, and its figures.
Row = dict[str, str | float | None]
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Boot:
    """One guest of a probe.

    Attributes:
        name: of the guest within the probe, and of the folder of its raw data.
        script: module that runs in it, and leaves a record (guest/record.py).
        arguments: of the script.
        kernel: flavour of its kernel.
        axes: what tells its rows from those of other guests.
        environment: variables of the script.
        options: the guest, as for :func:`lab.machine.guest.run`.
    """

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    kernel: str = "parallel"
    axes: Row = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


class Probe(ABC, Generic[R]):
    """One question with a measurement of its own.

    Attributes:
        name: of its command, of its folder of results, and of what makes its table.
        machine: of its guests.
        record: type of what its scripts leave.
        axes: columns that tell rows apart, and their headings.
        figures: columns of figures.
    """

    name: ClassVar[str]
    machine: str
    record: type[R]
    axes: ClassVar[Mapping[str, str]] = {}
    figures: ClassVar[Mapping[str, Figure]] = {}

    @abstractmethod
    def boots(self) -> list[Boot]:
        """List the guests, in order."""

    @abstractmethod
    def rows(self, boot: Boot, record: R) -> list[Row]:
        """Return the figures of a guest, a row for each run; those of the table have its axes, too."""

    def prepare(self) -> None:
        """Make what the guests need beside a kernel."""

    def draw(self, runs: pd.DataFrame, records: Mapping[str, R], folder: Path) -> None:
        """Draw pictures into a folder.

        Args:
            runs: the table of all runs.
            records: those of the guests, by their names.
            folder: where to draw.
        """

    def objections(self, records: Mapping[str, R]) -> list[str]:
        """Say what must not be of what the guests left, by their names; most probes only measure."""
        return []

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return the table of all runs as Markdown."""
        rows = [
            [
                *(str(run[axis]) for axis in cls.axes),
                *(one.text(run[name]) for name, one in cls.figures.items()),
            ]
            for run in runs.to_dict("records")
        ]
        columns = [*cls.axes.values(), *(one.column for one in cls.figures.values())]
        return markdown.table(columns, rows, left=len(cls.axes))
