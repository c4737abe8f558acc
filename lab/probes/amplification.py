# SPDX-License-Identifier: GPL-2.0
"""What RocksDB makes a flash device write: without help, with life time hints, and with write streams."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from pydantic import BaseModel
from rich.table import Table

from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir
from lab.util.progress import Progress

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
DPI = 120


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
    """What guest/rocksdb_load.py wrote.

    Attributes:
        samples: operations done, and pages that the host and the media have written by then.
        seconds: how long the operations took.
        levels: files and sizes of RocksDB's levels at the end, its own words.
    """

    samples: list[tuple[int, int, int]]
    seconds: float
    levels: str


class Amplification(BaseModel):
    """What one placement came to.

    Attributes:
        runs: write amplification of each run, over the second half of its operations.
        median: of the runs.
        change: how much less (negative) the median is than without placement, as a part of it.
        host_gib: what the host wrote meanwhile, median, in GiB.
    """

    runs: list[float]
    median: float
    change: float
    host_gib: float


def record(
    kernel: Kernel,
    placement: Placement,
    *,
    discard: bool = True,
    records: int = RECORDS,
    operations: int = OPERATIONS,
) -> Recorded:
    """Boot a kernel and let RocksDB work on XFS on flash.

    Args:
        kernel: one with write streams.
        placement: how the device learns what belongs together.
        discard: whether the flash is told what was deleted.
        records: number of records of 1000 bytes.
        operations: number of reads and updates.

    Raises:
        LabError: the library could not be compiled, the load failed, or the guest did.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = [f"PYTHONPATH={REPO}"]
        if placement.streams:
            environment.append(f"LD_PRELOAD={_library(Path(folder))}")
        load = [sys.executable, "-m", "guest.rocksdb_load", str(records), str(operations)]
        result = guest.run(
            kernel.path,
            ["env", *environment, *load],
            fs="xfs",
            device=placement.device,
            timeout_s=TIMEOUT_S,
            mem_mib=MEM_MIB,
            device_size_mib=DEVICE_MIB,
            mkfs=["-d", f"agcount={AGS}"],
            mount_options="discard" if discard else "",
            results=Path(folder),
        )
        if result.status:
            raise LabError(f"RocksDB failed: {result.output.strip()[-2000:]}")
        return Recorded.model_validate_json(Path(folder, "rocksdb.json").read_text())


def measure(kernel: Kernel, *, discard: bool, repetitions: int) -> dict[str, list[Recorded]]:
    """Record every placement in turn, several times.

    Args:
        kernel: one with write streams.
        discard: whether the flash is told what was deleted.
        repetitions: rounds.

    Raises:
        LabError: as record(), or something is being measured already.
    """
    runs: dict[str, list[Recorded]] = {name: [] for name in PLACEMENTS}
    with exclusive(cache_dir() / "bench.lock", "measuring RocksDB"), Progress("RocksDB") as progress:
        for number in range(repetitions):
            for name, placement in PLACEMENTS.items():
                progress.step(f"{placement.title}, round {number + 1} of {repetitions}")
                runs[name].append(record(kernel, placement, discard=discard))
    return runs


def _library(folder: Path) -> Path:
    """Compile the library that gives RocksDB's files streams."""
    done = subprocess.run(
        ["make", "-s", "-C", str(LIBRARY), f"OUT={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LabError(f"{LIBRARY.name} could not be compiled: {done.stderr.strip()[-2000:]}")
    return folder / "rocksdb-streams.so"


def counted(recorded: Recorded) -> tuple[int, int]:
    """Return the pages that the host and the media wrote in the second half of the operations.

    The first half brings the flash into the state that it stays in, as preconditioning does for real drives.
    """
    _, host_before, media_before = recorded.samples[len(recorded.samples) // 2]
    _, host, media = recorded.samples[-1]
    return host - host_before, media - media_before


def amplification(runs: Mapping[str, Sequence[Recorded]]) -> dict[str, Amplification]:
    """Return what each placement came to.

    Args:
        runs: by the name of the placement; ``none`` among them.
    """
    pages = {name: [counted(one) for one in recorded] for name, recorded in runs.items()}
    found = {name: [media / host for host, media in counts] for name, counts in pages.items()}
    base = statistics.median(found["none"])
    return {
        name: Amplification(
            runs=[round(value, 3) for value in values],
            median=round(statistics.median(values), 3),
            change=round(statistics.median(values) / base - 1, 3),
            host_gib=round(statistics.median(host for host, _ in pages[name]) * PAGE / (1 << 30), 2),
        )
        for name, values in found.items()
    }


def table(found: Mapping[str, Amplification]) -> Table:
    """Return the outcome for the terminal."""
    shown = Table(title="RocksDB on flash: media pages written for each page of the host")
    for heading in ("placement", "write amplification", "runs", "change", "host wrote, GiB"):
        shown.add_column(heading, justify="left" if heading == "placement" else "right")
    for name, one in found.items():
        runs = f"{min(one.runs):.2f} to {max(one.runs):.2f}"
        shown.add_row(
            PLACEMENTS[name].title, f"{one.median:.2f}", runs, f"{one.change:+.0%}", f"{one.host_gib:.2f}"
        )
    return shown


def report(runs: Mapping[str, Sequence[Recorded]], folder: Path) -> dict[str, Amplification]:
    """Write summary.json and amplification.png into a folder, made where it is missing.

    Args:
        runs: by the name of the placement.
        folder: where to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = amplification(runs)
    summary = {name: one.model_dump() for name, one in found.items()}
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    draw(runs, folder / "amplification.png")
    return found


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
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
