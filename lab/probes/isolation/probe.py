# SPDX-License-Identifier: GPL-2.0
"""Where XFS puts files that are written side by side, with and without write streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import ListedColormap, to_rgba
from pydantic import BaseModel

from lab.experiment.figure import Figure
from lab.probes.probe import Boot, Probe, Row
from lab.util import picture

DEVICE = "nolat"
DEVICE_MIB = 1024
AGS = 8
TIMEOUT_S = 120
# Cells of the picture: a line of it is an AG.
LINES = AGS
CELLS_PER_LINE = 1024
FREE = 0
FREE_COLOUR = "#f2f2f2"
TITLES = {"none": "without streams", "streams": "a stream for each file"}


class Recorded(BaseModel):
    """What the script leaves.

    Attributes:
        device_bytes: size of the device.
        files: for each file the extents: first byte on the device, and length.
    """

    device_bytes: int
    files: list[list[tuple[int, int]]]


@dataclass(frozen=True)
class Isolation(Probe[Recorded]):
    """Eight files, without streams and with one for each."""

    name = "isolation"
    machine = "uml"
    record = Recorded
    axes: ClassVar = {"streams": "eight files"}
    figures: ClassVar = {
        "extents": Figure("extents of all files", form=".0f", better="less"),
        "ags_of_a_file": Figure("AGs that a file has blocks in", form=".1f", better="less"),
        "files_of_an_ag": Figure("files that share an AG", form=".1f", better="less"),
    }

    def boots(self) -> list[Boot]:
        """Boot a guest without and one with streams."""
        return [
            Boot(
                name=mode,
                script="lab.probes.isolation.in_guest",
                arguments=(mode,),
                axes={"streams": title},
                options={
                    "fs": "xfs",
                    "device": DEVICE,
                    "timeout_s": TIMEOUT_S,
                    "device_size_mib": DEVICE_MIB,
                    "mkfs": ["-d", f"agcount={AGS}"],
                },
            )
            for mode, title in TITLES.items()
        ]

    def rows(self, boot: Boot, record: Recorded) -> list[Row]:
        """Say in numbers what the picture shows: averages over files and over AGs with blocks in them."""
        ag_bytes = record.device_bytes // AGS
        pairs = {
            (number, ag)
            for number, extents in enumerate(record.files)
            for start, length in extents
            for ag in range(start // ag_bytes, (start + length - 1) // ag_bytes + 1)
        }
        return [
            {
                "extents": sum(len(extents) for extents in record.files),
                "ags_of_a_file": len(pairs) / len(record.files),
                "files_of_an_ag": len(pairs) / len({ag for _, ag in pairs}),
            }
        ]

    def draw(self, runs: pd.DataFrame, records: Mapping[str, Recorded], folder: Path) -> None:
        """Draw the device, an AG a line, each file in a colour of its own."""
        draw({TITLES[mode]: one for mode, one in records.items()}, folder / "isolation.png")


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
    picture.save(path, figure)
