# SPDX-License-Identifier: GPL-2.0
"""How the number of contexts that the kernel finds follows a load that starts, doubles, narrows and stops."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from pydantic import BaseModel

from lab.experiment.figure import Figure
from lab.probes.probe import Boot, Probe, Row

GUEST_MEM_MIB = 6656
DEVICE_MIB = 3072
#: Seconds of the host: a virtual second of 8 busy CPUs takes half a minute, one of 64 four.
TIMEOUT_S = 7200
KIB_PER_MIB = 1024
DPI = 120
#: Seconds after which the kernel has to have found its number, for how many the rate is taken then, and over
#: how many at a part's end it is the final one.
FOUND_AFTER_S, FOUND_FOR_S, FINAL_S = 2.0, 0.5, 1.0
#: Seconds of a steady load in which the number should change once at most.
STEADY_S = 10.0


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        parts: when each part of the load began, in seconds, and its name.
        samples: seconds, the number of contexts, and the KiB that the device had written.
    """

    parts: list[tuple[float, str]]
    samples: list[tuple[float, int, int]]

    @property
    def rates(self) -> list[tuple[float, float]]:
        """Return the MiB/s between each sample and the next, at the time of the latter."""
        return [
            (after, (then - now) / KIB_PER_MIB / (after - before))
            for (before, _, now), (after, _, then) in pairwise(self.samples)
        ]

    def mib_s(self, begin: float, end: float) -> float | None:
        """Return the mean MiB/s between two times in seconds; None where nothing was noted."""
        rates = [rate for at, rate in self.rates if begin <= at < end]
        return statistics.fmean(rates) if rates else None

    def most_changes(self, begin: float, end: float) -> int:
        """Return how often the number of contexts changed in those :data:`STEADY_S` with most changes."""
        numbers = [(at, number) for at, number, _ in self.samples if begin <= at < end]
        changed = [at for (_, before), (at, number) in pairwise(numbers) if number != before]
        return max((sum(at <= other < at + STEADY_S for other in changed) for at in changed), default=0)


@dataclass(frozen=True)
class Changes(Probe[Recorded]):
    """A load that changes, in virtual time.

    Of its 30 s nine tenths belong to a steady load and to the one file, 13 s each: the kernel tries fewer
    contexts only after a backoff of 10 s. A trial that comes out slower by chance ends the way down until
    after another backoff.

    Attributes:
        filesystems: those under test.
        device: its name in the device table.
        cpus: the guests' CPUs.
        limit_mib: dirty limit in MiB.
    """

    filesystems: tuple[str, ...]
    device: str
    cpus: int
    limit_mib: int

    name = "changes"
    machine = "smp"
    record = Recorded
    axes: ClassVar = {"fs": "fs", "device": "device", "cpus": "CPUs", "part": "load"}
    figures: ClassVar = {
        "contexts": Figure("contexts at its end", form=".0f"),
        "mib_s": Figure("at the device", "MiB/s", form=".0f", better="more"),
        "found": Figure("rate after 2 s, of that at the end", better="more"),
        "changes": Figure("most changes in 10 s after that", form=".0f", better="less"),
    }

    def boots(self) -> list[Boot]:
        """Boot a guest for each filesystem."""
        return [
            Boot(
                name=fs,
                script="lab.probes.changes.in_guest",
                arguments=(str(self.limit_mib), str(self.cpus)),
                axes={"fs": fs, "device": self.device, "cpus": self.cpus},
                options={
                    "cpus": self.cpus,
                    "fs": fs,
                    "mkfs": ("-d", f"agcount={self.cpus}") if fs == "xfs" else (),
                    "device": self.device,
                    "device_size_mib": DEVICE_MIB,
                    "mem_mib": GUEST_MEM_MIB,
                    "settings": {"nwritebacks": "auto"},
                    "timeout_s": TIMEOUT_S,
                },
            )
            for fs in self.filesystems
        ]

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Say for each part of the load what the number of contexts and the rate were."""
        ends = [*(when for when, _ in record.parts[1:]), math.inf]
        found: list[Row] = []
        for (when, part), end in zip(record.parts, ends, strict=True):
            contexts = [number for at, number, _ in record.samples if when <= at < end]
            early = record.mib_s(when + FOUND_AFTER_S, when + FOUND_AFTER_S + FOUND_FOR_S)
            final = record.mib_s(end - FINAL_S, end)
            found.append(
                {
                    "part": part,
                    "contexts": contexts[-1] if contexts else None,
                    "mib_s": record.mib_s(when, end),
                    "found": early / final if early and final else None,
                    "changes": record.most_changes(when + FOUND_AFTER_S, end),
                }
            )
        return found

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw one column for each filesystem: contexts above, throughput below."""
        title = f"{self.device}, {self.cpus} CPUs, dirty limit {self.limit_mib} MiB, contexts found"
        draw(records, title, folder / "changes.png")


def draw(recorded: Mapping[str, Recorded], title: str, path: Path) -> None:
    """Draw one column for each record: contexts above, throughput below.

    Args:
        recorded: by their names.
        title: of the figure.
        path: PNG to write.
    """
    figure, grid = plt.subplots(
        2,
        len(recorded),
        squeeze=False,
        sharex=True,
        sharey="row",
        figsize=(max(4 * len(recorded), 7), 5),
        layout="constrained",
    )
    for column, (name, one) in enumerate(recorded.items()):
        above, below = grid[0][column], grid[1][column]
        above.step(
            [when for when, _, _ in one.samples],
            [contexts for _, contexts, _ in one.samples],
            where="post",
            color="#756bb1",
        )
        above.set_title(name)
        below.plot(*zip(*one.rates, strict=True), color="#2171b5", linewidth=1.2)
        below.set_xlabel("s")
        for axes in (above, below):
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
            for when, _ in one.parts:
                axes.axvline(when, color="#8a8f98", linewidth=1, linestyle=":")
        for when, part in one.parts:
            below.annotate(
                part, (when, 0), xytext=(3, 3), textcoords="offset points", fontsize=8, rotation=90
            )
    grid[0][0].set_ylabel("contexts")
    grid[1][0].set_ylabel("MiB/s at the device")
    figure.suptitle(title)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
