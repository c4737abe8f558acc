# SPDX-License-Identifier: GPL-2.0
"""What RocksDB makes a flash device write: without help, with life time hints, and with write streams."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
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
from lab.util import markdown, picture
from lab.util.errors import LabError
from lab.util.paths import REPO, cache_dir

MIB = 1 << 20
PAGE = 4096
DEVICE_MIB = 512
# With XFS's log the database fills nine tenths of the device.
RECORDS = 320_000
OPERATIONS = 400_000
# An AG for each stream, and two for what finds no room there; with more an AG would not hold XFS's log.
AGS = 7
MEM_MIB = 3072
TIMEOUT_S = 900
LIBRARY = REPO / "tools" / "rocksdb-streams"


@dataclass(frozen=True)
class Placement:
    """How the device learns what belongs together.

    Attributes:
        title: what tables and pictures call it.
        hints: whether the device takes life time hints.
        streams: whether RocksDB's files get write streams.
    """

    title: str
    hints: bool = False
    streams: bool = False

    @property
    def device(self) -> str:
        """Name in the device table of the flash."""
        return "flash-hints" if self.hints else "flash"


PLACEMENTS = {
    "none": Placement("no placement"),
    "hints": Placement("life time hints", hints=True),
    "streams": Placement("write streams", streams=True),
}


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        samples: operations done, and pages that the host and the media have written by then.
        seconds: how long the operations took.
        levels: files and sizes of RocksDB's levels at the end, its own words.
    """

    samples: list[tuple[int, int, int]]
    seconds: float
    levels: str


@dataclass(frozen=True)
class Amplification(Probe[Recorded]):
    """RocksDB on XFS on flash, each placement in turn, several times.

    Attributes:
        discard: whether the flash is told what was deleted.
        repetitions: rounds.
        records: number of records of 1000 bytes.
        operations: number of reads and updates.
    """

    discard: bool = True
    repetitions: int = 3
    records: int = RECORDS
    operations: int = OPERATIONS

    name = "amplification"
    machine = "uml"
    record = Recorded
    figures: ClassVar = {
        "amplification": Figure("write amplification", better="less"),
        "host_gib": Figure("host wrote", "GiB"),
    }

    def boots(self) -> list[Boot]:
        """Boot a guest for each placement, round after round."""
        return [
            Boot(
                name=f"{name}-{number}",
                script="lab.probes.amplification.in_guest",
                arguments=(str(self.records), str(self.operations)),
                axes={"placement": name, "round": number},
                environment={"LD_PRELOAD": str(_library())} if placement.streams else {},
                options={
                    "fs": "xfs",
                    "device": placement.device,
                    "timeout_s": TIMEOUT_S,
                    "mem_mib": MEM_MIB,
                    "device_size_mib": DEVICE_MIB,
                    "mkfs": ["-d", f"agcount={AGS}"],
                    "mount_options": "discard" if self.discard else "",
                },
            )
            for number in range(1, self.repetitions + 1)
            for name, placement in PLACEMENTS.items()
        ]

    def prepare(self) -> None:
        """Compile the library that gives RocksDB's files streams.

        Raises:
            LabError: it could not be compiled.
        """
        _library().parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["make", "-s", "-C", str(LIBRARY), f"OUT={_library().parent}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LabError(f"{LIBRARY.name} could not be compiled: {done.stderr.strip()[-2000:]}")

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Return the write amplification over the second half of the operations."""
        host, media = counted(record)
        return [{"amplification": round(media / host, 3), "host_gib": round(host * PAGE / (1 << 30), 2)}]

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw what the media have written over what the host has, a line for each run."""
        draw(
            {
                name: [one for of, one in records.items() if of.rpartition("-")[0] == name]
                for name in PLACEMENTS
            },
            folder / "amplification.png",
        )

    @classmethod
    def table(cls, runs: pd.DataFrame) -> str:
        """Return the median of each placement, and how much less that is than without placement."""
        medians = runs.groupby("placement")[list(cls.figures)].median()
        base = medians.loc["none", "amplification"]
        rows = []
        for name in runs["placement"].unique():
            each = runs.loc[runs["placement"] == name, "amplification"]
            median = medians.loc[name, "amplification"]
            rows.append(
                [
                    PLACEMENTS[name].title,
                    f"{median:.2f}",
                    f"{each.min():.2f} to {each.max():.2f}",
                    f"{median / base - 1:+.0%}",
                    cls.figures["host_gib"].text(medians.loc[name, "host_gib"]),
                ]
            )
        columns = ("placement", "write amplification", "runs", "change", cls.figures["host_gib"].column)
        return markdown.table(columns, rows, left=1)


def _library() -> Path:
    """Return where the library is that gives RocksDB's files streams, once it is compiled."""
    return cache_dir() / "rocksdb-streams" / "rocksdb-streams.so"


def counted(recorded: Recorded) -> tuple[int, int]:
    """Return the pages that the host and the media wrote in the second half of the operations.

    The first half brings the flash into the state that it stays in, as preconditioning does for real drives.
    """
    _, host_before, media_before = recorded.samples[len(recorded.samples) // 2]
    _, host, media = recorded.samples[-1]
    return host - host_before, media - media_before


def draw(runs: Mapping[str, Sequence[Recorded]], path: Path) -> None:
    """Draw what the media have written over what the host has, a line for each run.

    Args:
        runs: by the name of the placement.
        path: PNG to write.
    """
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for number, (name, recorded) in enumerate(runs.items()):
        for run, one in enumerate(recorded):
            _, host_before, media_before = one.samples[0]
            axes.plot(
                [(host - host_before) * PAGE / MIB for _, host, _ in one.samples],
                [(media - media_before) * PAGE / MIB for _, _, media in one.samples],
                color=f"C{number}",
                label=PLACEMENTS[name].title if run == 0 else None,
            )
    axes.axline((0, 0), slope=1, color="#999999", linestyle=":", label="nothing moved")
    axes.set_xlabel("written by the host, MiB")
    axes.set_ylabel("written to the media, MiB")
    axes.legend()
    picture.save(path, figure)
