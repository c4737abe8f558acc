# SPDX-License-Identifier: GPL-2.0
"""How the number of contexts that the kernel finds follows a load that starts, doubles, narrows and stops."""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from pydantic import BaseModel

from lab.machine import guest
from lab.machine.hardware import Hardware
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.paths import REPO

LOAD = REPO / "guest" / "load_changes.py"
GUEST_MEM_MIB = 6656
DEVICE_MIB = 3072
#: Seconds of the host: a virtual second of 8 busy CPUs takes half a minute.
TIMEOUT_S = 3600
KIB_PER_MIB = 1024
DPI = 120


class Changes(BaseModel):
    """What guest/load_changes.py wrote.

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


def check(fs: str, device: str, cpus: int) -> None:
    """Check ahead of a build what :func:`record` would refuse.

    Args:
        fs: as for record.
        device: as for record.
        cpus: as for record.

    Raises:
        LabError: there is no such filesystem, device or machine, or the host has not the memory.
    """
    hardware = Hardware("smp", mem_mib=GUEST_MEM_MIB, cpus=cpus)
    guest.check(hardware, fs=fs, device=device, device_size_mib=DEVICE_MIB)


def record(kernel: Kernel, fs: str, device: str, cpus: int, limit_mib: int) -> Changes:
    """Boot a parallel kernel in virtual time and record it under the load.

    Args:
        kernel: parallel, for the machine ``smp``.
        fs: filesystem under test.
        device: its name in the device table.
        cpus: the guest's CPUs.
        limit_mib: dirty limit in MiB.

    Raises:
        LabError: the load failed, or the guest did.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = guest.run(
            kernel.path,
            [sys.executable, str(LOAD), str(limit_mib), str(cpus)],
            machine="smp",
            cpus=cpus,
            fs=fs,
            mkfs=("-d", f"agcount={cpus}") if fs == "xfs" else (),
            device=device,
            device_size_mib=DEVICE_MIB,
            mem_mib=GUEST_MEM_MIB,
            settings={"nwritebacks": "auto"},
            timeout_s=TIMEOUT_S,
            results=Path(folder),
        )
        if result.status:
            raise LabError(f"the load failed: {result.output.strip()}")
        return Changes.model_validate_json(Path(folder, "changes.json").read_text())


def draw(recorded: dict[str, Changes], title: str, path: Path) -> None:
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
