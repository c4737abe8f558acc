# SPDX-License-Identifier: GPL-2.0
"""A picture of where XFS puts files that are written side by side, with and without write streams."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import ListedColormap, to_rgba
from pydantic import BaseModel

from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.paths import REPO

DEVICE = "nolat"
DEVICE_MIB = 1024
AGS = 8
TIMEOUT_S = 120
# Cells of the picture: a line of it is an AG.
LINES = AGS
CELLS_PER_LINE = 1024
FREE = 0
FREE_COLOUR = "#f2f2f2"
DPI = 120


class Recorded(BaseModel):
    """What guest/isolation.py wrote.

    Attributes:
        device_bytes: size of the device.
        files: for each file the extents: first byte on the device, and length.
    """

    device_bytes: int
    files: list[list[tuple[int, int]]]


class Isolation(BaseModel):
    """How far files are apart.

    Attributes:
        extents: contiguous pieces of all files together.
        ags_of_a_file: AGs that a file has blocks in, average.
        files_of_an_ag: files that share an AG with blocks in it, average.
    """

    extents: int
    ags_of_a_file: float
    files_of_an_ag: float


def record(kernel: Kernel, *, streams: bool) -> Recorded:
    """Boot a kernel and let the writers of guest/isolation.py write.

    Args:
        kernel: one with write streams.
        streams: whether each file has a stream of its own.

    Raises:
        LabError: the writers failed, or the guest did.
    """
    with tempfile.TemporaryDirectory() as folder:
        mode = "streams" if streams else "none"
        result = guest.run(
            kernel.path,
            ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "guest.isolation", mode],
            fs="xfs",
            device=DEVICE,
            timeout_s=TIMEOUT_S,
            device_size_mib=DEVICE_MIB,
            results=Path(folder),
            mkfs=["-d", f"agcount={AGS}"],
        )
        if result.status:
            raise LabError(f"the writers failed: {result.output.strip()}")
        return Recorded.model_validate_json(Path(folder, "isolation.json").read_text())


def isolation(recorded: Recorded) -> Isolation:
    """Say in numbers what the picture shows."""
    ag_bytes = recorded.device_bytes // AGS
    pairs = {
        (number, ag)
        for number, extents in enumerate(recorded.files)
        for start, length in extents
        for ag in range(start // ag_bytes, (start + length - 1) // ag_bytes + 1)
    }
    return Isolation(
        extents=sum(len(extents) for extents in recorded.files),
        ags_of_a_file=round(len(pairs) / len(recorded.files), 2),
        files_of_an_ag=round(len(pairs) / len({ag for _, ag in pairs}), 2),
    )


def cells(recorded: Recorded) -> list[list[int]]:
    """Cut the device into lines of cells; each says which file begins in it, counted from 1, or is free."""
    total = LINES * CELLS_PER_LINE
    flat = [FREE] * total
    for number, extents in enumerate(recorded.files, 1):
        for start, length in extents:
            first = start * total // recorded.device_bytes
            last = (start + length - 1) * total // recorded.device_bytes
            flat[first : last + 1] = [number] * (last + 1 - first)
    return [flat[line : line + CELLS_PER_LINE] for line in range(0, total, CELLS_PER_LINE)]


def report(recorded: Mapping[str, Recorded], folder: Path) -> None:
    """Write summary.json and isolation.png into a folder, made where it is missing.

    Args:
        recorded: by what the picture says above it.
        folder: where to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: isolation(one).model_dump() for name, one in recorded.items()}
    (folder / "summary.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(recorded, folder / "isolation.png")


def draw(recorded: Mapping[str, Recorded], path: Path) -> None:
    """Draw the device, an AG a line, each file in a colour of its own.

    Args:
        recorded: by what the picture says above it.
        path: PNG to write.
    """
    files = max(len(one.files) for one in recorded.values())
    palette = matplotlib.colormaps["tab10"]
    colours = ListedColormap([to_rgba(FREE_COLOUR), *(palette(number) for number in range(files))])
    figure, rows = plt.subplots(
        len(recorded), figsize=(10, 2.4 * len(recorded)), layout="constrained", squeeze=False
    )
    for axes, (name, one) in zip(rows[:, 0], recorded.items(), strict=True):
        axes.imshow(cells(one), aspect="auto", interpolation="nearest", cmap=colours, vmin=0, vmax=files)
        axes.set_title(name)
        axes.set_ylabel("AG")
        axes.set_yticks(range(LINES))
        axes.set_xticks([])
    rows[-1, 0].set_xlabel("place in the AG; a colour for each file, grey is free")
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
