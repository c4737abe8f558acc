# SPDX-License-Identifier: GPL-2.0
"""What AG-aware writeback of XFS costs, and what it does to extents: one mode after the other in one boot.

Two boots of one kernel differ by more than what is asked for here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd
from pydantic import BaseModel, RootModel

from lab.probes.probe import Boot, Probe, Row
from lab.util import markdown

# Of the host, a guard only.
TIMEOUT_S = 4 * 3600
BASE = "off"
_R = TypeVar("_R", bound=BaseModel)


@dataclass(frozen=True)
class _Ag(Probe[_R]):
    """A question that one guest answers.

    Attributes:
        machine: of the guest.
        cpus: the guest's CPUs.
        rounds: how often each mode has its turn.
    """

    machine: str
    cpus: int
    rounds: int

    def boots(self) -> list[Boot]:
        """Boot one guest."""
        question = self.name.removeprefix("ag-")
        return [
            Boot(
                name=question,
                script=f"lab.probes.ag.{question}",
                arguments=(str(self.rounds),),
                options={
                    "cpus": self.cpus,
                    "device": "waiting",
                    "settings": {"nwritebacks": "1"},
                    "timeout_s": TIMEOUT_S,
                },
            )
        ]


class Turns(RootModel[dict[str, dict[str, list[tuple[float, float]]]]]):
    """Seconds and CPU seconds of each round, by load and mode."""


class AgCosts(_Ag[Turns]):
    """What a mode costs where it has nothing to gain."""

    name = "ag-costs"
    record = Turns

    def rows(self, boot: Boot, record: Turns) -> list[Row]:
        """Return a row for each turn of a mode."""
        return [
            {"load": load, "mode": mode, "round": number, "seconds": seconds, "cpu_s": cpu_s}
            for load, modes in record.root.items()
            for mode, turns in modes.items()
            for number, (seconds, cpu_s) in enumerate(turns, 1)
        ]

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return what each mode comes to, as a multiple of what ``off`` does in the same rounds."""
        turns = runs.set_index(["load", "mode", "round"])
        rows = []
        for load, mode in runs[["load", "mode"]].drop_duplicates().itertuples(index=False):
            if mode != BASE:
                of, base = turns.loc[load, mode], turns.loc[load, BASE]
                told = [
                    "{:.3f} ± {:.3f}".format(*compare(of[figure].tolist(), base[figure].tolist()))
                    for figure in ("seconds", "cpu_s")
                ]
                rows.append([load, f"`{mode}`", *told])
        return markdown.table(("load", "mode", "time", "CPU time"), rows, left=2)


def compare(values: Sequence[float], base: Sequence[float]) -> tuple[float, float]:
    """Return the multiple of the base, and how far it may be off.

    Args:
        values: a value for each round.
        base: what each is compared with.

    Returns:
        The geometric mean of the quotients, and half of its 95% interval (normal, of the mean logarithm).
    """
    logs = [math.log(value / of) for value, of in zip(values, base, strict=True)]
    mean = math.exp(statistics.fmean(logs))
    return mean, 1.96 * mean * statistics.stdev(logs) / math.sqrt(len(logs))


class Files(RootModel[dict[str, list[tuple[int, int]]]]):
    """For each file the pages that it had in memory when writeback had begun, and its extents, by mode."""


class AgExtents(_Ag[Files]):
    """Whether a mode fragments files."""

    name = "ag-extents"
    record = Files

    def rows(self, boot: Boot, record: Files) -> list[Row]:
        """Return a row for each file."""
        return [
            {"mode": mode, "file": number, "pages": pages, "extents": extents}
            for mode, files in record.root.items()
            for number, (pages, extents) in enumerate(files, 1)
        ]

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return means by mode, and how extents go with the pages that were there."""
        rows = []
        for mode in runs["mode"].unique():
            files = runs[runs["mode"] == mode]
            rows.append(
                [
                    f"`{mode}`",
                    f"{files['extents'].mean():.0f}",
                    f"{files['extents'].sem():.0f}",
                    f"{files['pages'].mean():.0f}",
                    f"{files['pages'].corr(files['extents']):.2f}",
                ]
            )
        columns = (
            "mode",
            "extents of a file",
            "standard error",
            "pages when writeback begins",
            "correlation",
        )
        return markdown.table(columns, rows, left=1)
