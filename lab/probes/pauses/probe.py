# SPDX-License-Identifier: GPL-2.0
"""Dirty pages and the pauses of throttled writers over time, on a stock and on a parallel kernel."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from pydantic import BaseModel

from lab.experiment.figure import Figure
from lab.probes.probe import Boot, Probe, Row
from lab.util import picture

GUEST_MEM_MIB = 8192
DEVICE_MIB = 3072
TIMEOUT_S = 180


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        dirty: seconds since the start, and MiB of dirty pages and pages under writeback.
        pauses: for each writer, when a pause began and how many seconds it took.
    """

    dirty: list[tuple[float, float]]
    pauses: list[list[tuple[float, float]]]


@dataclass(frozen=True)
class Pauses(Probe[Recorded]):
    """Four writers of 4 KiB at random, throttled.

    Attributes:
        fs: filesystem under test.
        limit_mib: dirty limit in MiB.
        contexts: number of writeback contexts of the parallel kernel.
    """

    fs: str
    limit_mib: int
    contexts: int

    name = "pauses"
    machine = "uml"
    record = Recorded
    axes: ClassVar = {
        "kernel": "kernel",
        "contexts": "contexts",
        "fs": "fs",
        "dirty_limit_mib": "dirty limit, MiB",
    }
    figures: ClassVar = {
        "pauses": Figure("pauses", form=".0f"),
        "pause_median_ms": Figure("median pause", "ms", form=".1f", better="less"),
        "pause_max_ms": Figure("longest pause", "ms", form=".0f", better="less"),
        "dirty_mean_mib": Figure("dirty and under writeback, mean", "MiB", form=".0f"),
    }

    def boots(self) -> list[Boot]:
        """Boot stock, then parallel."""
        return [
            Boot(
                name=kernel,
                script="lab.probes.pauses.in_guest",
                arguments=(str(self.limit_mib),),
                kernel=kernel,
                axes={
                    "kernel": kernel,
                    "contexts": contexts,
                    "fs": self.fs,
                    "dirty_limit_mib": self.limit_mib,
                },
                options={
                    "fs": self.fs,
                    "settings": {"nwritebacks": str(contexts)} if kernel == "parallel" else {},
                    "timeout_s": TIMEOUT_S,
                    "mem_mib": GUEST_MEM_MIB,
                    "device_size_mib": DEVICE_MIB,
                },
            )
            for kernel, contexts in (("stock", 1), ("parallel", self.contexts))
        ]

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Sum the pauses of all writers up."""
        ms = [1000 * seconds for of_writer in record.pauses for _, seconds in of_writer]
        return [
            {
                "pauses": len(ms),
                "pause_median_ms": statistics.median(ms) if ms else None,
                "pause_max_ms": max(ms, default=None),
                "dirty_mean_mib": statistics.fmean(mib for _, mib in record.dirty),
            }
        ]

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw one column for each kernel: dirty pages above, pauses below."""
        names = {"stock": "stock", "parallel": f"{self.contexts} contexts"}
        title = f"{self.fs}, dirty limit {self.limit_mib} MiB, 4 writers of 4k at random"
        draw({names[kernel]: one for kernel, one in records.items()}, title, folder / "pauses.png")


def draw(recorded: Mapping[str, Recorded], title: str, path: Path) -> None:
    """Draw one column for each kernel: dirty pages above, pauses below.

    Args:
        recorded: what each kernel did, by its name.
        title: of the figure.
        path: PNG to write.
    """
    figure, grid = plt.subplots(
        2, len(recorded), squeeze=False, sharex=True, sharey="row", figsize=(10, 6), layout="constrained"
    )
    for column, (name, one) in enumerate(recorded.items()):
        above, below = grid[0][column], grid[1][column]
        above.plot(*zip(*one.dirty, strict=True), color="#2171b5", linewidth=1.2)
        above.set_title(name)
        above.set_ylim(bottom=0)
        for number, pauses in enumerate(one.pauses):
            below.scatter(
                [start for start, _ in pauses],
                [1000 * seconds for _, seconds in pauses],
                s=4,
                label=f"writer {number}",
            )
        below.set_yscale("log")
        below.set_xlabel("s")
        for axes in (above, below):
            axes.grid(alpha=0.3)
    grid[0][0].set_ylabel("dirty + writeback, MiB")
    grid[1][0].set_ylabel("pause, ms")
    figure.suptitle(title)
    picture.save(path, figure)
