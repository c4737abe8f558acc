# SPDX-License-Identifier: GPL-2.0
"""Whether memory, workers or latencies grow while contexts, cgroups, syncs and freezes go on for hours."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from pydantic import BaseModel
from scipy import stats

from lab.experiment.figure import Figure
from lab.probes.probe import Boot, Probe, Row
from lab.util import picture

GUEST_MEM_MIB = 2048
DEVICE_MIB = 512
#: Seconds of the host beside the load: the boot, the comparison of every byte, a busy host.
BESIDE_S = 600
#: In the first quarter workers and slabs come to what the load needs at its peaks; it does not count.
WARM_UP = 4
#: Of the rounds that count the first and the last tenth are compared.
TENTH = 10
#: What changes by no more than this part from the first round to the last is as before; what the host times
#: may drift with what else it does.
AS_BEFORE, AS_BEFORE_TIMED = 0.02, 0.1
TIMED = ("writes_s", "write_ms")
#: Fewer rounds than these have no trend.
LEAST_ROUNDS = 20


class Round(BaseModel):
    """A round of the load, and what the kernel held after it.

    Attributes:
        at_s: seconds from the start to its end.
        writes_s: calls of write() in a second.
        write_ms: 99.9th percentile of how long they took, in ms.
        kernel_mib: memory that the kernel has in use after the caches were dropped.
        programs_mib: private and shared memory of the guest's programs, the load among them.
        slab_mib: of the kernel's in slabs that cannot be reclaimed.
        percpu_mib: of that per-CPU memory.
        kworkers: threads of workqueues.
        dying_cgroups: cgroups that were removed and are still in memory.
        writebacks: those of the device, of its contexts and of cgroups in them.
    """

    at_s: float
    writes_s: float
    write_ms: float
    kernel_mib: float
    programs_mib: float
    slab_mib: float
    percpu_mib: float
    kworkers: int
    dying_cgroups: int
    writebacks: int


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        rounds: in order.
        resizes: how often the number of contexts changed.
        cgroups: how many cgroups wrote, and were removed.
    """

    rounds: list[Round]
    resizes: int
    cgroups: int


@dataclass(frozen=True)
class Endurance(Probe[Recorded]):
    """One load for long, on each filesystem.

    Attributes:
        filesystems: those under test.
        hours: of the host, all filesystems together.
    """

    filesystems: tuple[str, ...]
    hours: float

    name = "endurance"
    machine = "uml"
    record = Recorded
    axes: ClassVar = {"fs": "fs", "rounds": "rounds", "part": "of them"}
    figures: ClassVar = {
        "kernel_mib": Figure("kernel memory", "MiB", form=".1f", better="less"),
        "programs_mib": Figure("memory of programs", "MiB", form=".1f"),
        "slab_mib": Figure("slabs", "MiB", better="less"),
        "percpu_mib": Figure("per-CPU memory", "MiB", better="less"),
        "kworkers": Figure("kworkers", form=".1f", better="less"),
        "dying_cgroups": Figure("removed cgroups in memory", form=".1f", better="less"),
        "writebacks": Figure("writebacks", form=".1f", better="less"),
        "writes_s": Figure("writes", "1/s", form=",.0f", better="more"),
        "write_ms": Figure("write(), 99.9th percentile", "ms", form=".1f", better="less"),
        "resizes": Figure("changes of contexts", form=",.0f"),
        "cgroups": Figure("cgroups", form=",.0f"),
    }

    def boots(self) -> list[Boot]:
        """Boot a guest for each filesystem."""
        seconds = self.hours * 3600 / len(self.filesystems)
        return [
            Boot(
                name=fs,
                script="tests.guest.endurance",
                arguments=(fs, f"{seconds:.0f}"),
                axes={"fs": fs},
                options={
                    "fs": "none",
                    "mem_mib": GUEST_MEM_MIB,
                    "device_size_mib": DEVICE_MIB,
                    "timeout_s": seconds + BESIDE_S,
                },
            )
            for fs in self.filesystems
        ]

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Set the first tenth of the rounds that count against the last one: medians."""
        counted = warm(record.rounds)
        count = max(1, len(counted) // TENTH)
        parts = {"first": counted[:count], "last": counted[-count:]}
        all_along = {"resizes": record.resizes, "cgroups": record.cgroups}
        of_rounds = [name for name in self.figures if name not in all_along]
        return [
            {
                "rounds": len(record.rounds),
                "part": f"{part} {count}",
                **{name: statistics.median(getattr(one, name) for one in rounds) for name in of_rounds},
                **all_along,
            }
            for part, rounds in parts.items()
        ]

    def objections(self, records: Mapping[str, Recorded]) -> list[str]:
        """Say what has surely grown, or got slower, by more than :data:`AS_BEFORE`."""
        return [
            f"{fs}: {figure.name}, {figure.text(before)} at first, is worse by {least:.0%} or more at the end"
            for fs, one in records.items()
            for name, figure in self.figures.items()
            if name in Round.model_fields and figure.better
            for before, least in [worse(warm(one.rounds), name, figure)]
            if least > (AS_BEFORE_TIMED if name in TIMED else AS_BEFORE)
        ]

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw a figure above the other, a line for each filesystem."""
        draw(records, folder / "endurance.png")


def warm(rounds: Sequence[Round]) -> Sequence[Round]:
    """Return the rounds that count."""
    return rounds[len(rounds) // WARM_UP :]


def worse(rounds: Sequence[Round], name: str, figure: Figure) -> tuple[float, float]:
    """Return what a figure was at first, and by what part of that it surely got worse until the end.

    The trend is the median of the slopes between all pairs of rounds (Theil and Sen), and surely means the
    end of its interval of 95% that is nearer to none. A step has no such trend: it is what lies between all
    of the first tenth and all of the last. With fewer rounds than :data:`LEAST_ROUNDS` there is neither.
    """
    values = [float(getattr(one, name)) for one in rounds]
    count = max(1, len(values) // TENTH)
    first, last = values[:count], values[-count:]
    before = statistics.median(first)
    if len(rounds) < LEAST_ROUNDS:
        return before, 0
    at_s = [one.at_s for one in rounds]
    trend = stats.theilslopes(values, at_s, alpha=0.95)
    is_less_better = figure.better == "less"
    slope = trend.low_slope if is_less_better else -trend.high_slope
    step = min(last) - max(first) if is_less_better else min(first) - max(last)
    return before, max(slope * (at_s[-1] - at_s[0]), step) / max(before, 1)


def draw(recorded: Mapping[str, Recorded], path: Path) -> None:
    """Draw memory, kworkers and latencies over time.

    Args:
        recorded: by their filesystems.
        path: PNG to write.
    """
    shown = ("kernel_mib", "kworkers", "write_ms")
    figure, grid = plt.subplots(len(shown), sharex=True, figsize=(8, 7), layout="constrained")
    for axes, name in zip(grid, shown, strict=True):
        for fs, one in recorded.items():
            minutes = [each.at_s / 60 for each in one.rounds]
            axes.plot(minutes, [getattr(each, name) for each in one.rounds], label=fs, linewidth=1.2)
        axes.set_ylabel(Endurance.figures[name].column)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    grid[0].legend()
    grid[-1].set_xlabel("minutes")
    figure.suptitle("A load that goes on: after each round, with nothing cached")
    picture.save(path, figure)
