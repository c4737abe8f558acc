# SPDX-License-Identifier: GPL-2.0
"""Draw dirty pages and the pauses of throttled writers over time, on stock and on parallel kernels."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from pydantic import BaseModel

from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.paths import REPO

LOAD = REPO / "guest" / "pauses.py"
GUEST_MEM_MIB = 8192
DEVICE_MIB = 3072
TIMEOUT_S = 180
DPI = 120


class Pauses(BaseModel):
    """What one kernel did.

    Attributes:
        dirty: seconds since the start, and MiB of dirty pages and pages under writeback.
        pauses: for each writer, when a pause began and how many seconds it took.
    """

    dirty: list[tuple[float, float]]
    pauses: list[list[tuple[float, float]]]


def record(kernel: Kernel, fs: str, limit_mib: int, contexts: int | None) -> Pauses:
    """Boot a kernel and record the writers of guest/pauses.py.

    Args:
        kernel: stock or parallel.
        fs: filesystem under test.
        limit_mib: dirty limit in MiB.
        contexts: number of writeback contexts; None for a kernel without.

    Raises:
        LabError: the writers failed, or the guest did.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = guest.run(
            kernel.path,
            [sys.executable, str(LOAD), str(limit_mib)],
            fs=fs,
            settings={} if contexts is None else {"nwritebacks": str(contexts)},
            timeout_s=TIMEOUT_S,
            mem_mib=GUEST_MEM_MIB,
            device_size_mib=DEVICE_MIB,
            results=Path(folder),
        )
        if result.status:
            raise LabError(f"the writers failed on the {kernel.flavour} kernel: {result.output.strip()}")
        return Pauses.model_validate_json(Path(folder, "pauses.json").read_text())


def draw(recorded: dict[str, Pauses], title: str, path: Path) -> None:
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
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
