# SPDX-License-Identifier: GPL-2.0
"""Real guests as tasks: on one worker and on three, and with a worker that is killed while its guest runs."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.bench import cluster, session
from lab.bench.boot_task import Kernels
from lab.experiment import scenario
from lab.experiment.scenario import Scenario
from lab.machine import guest
from lab.result import plots
from lab.tree.build import Kernel
from lab.util.paths import REPO

pytestmark = pytest.mark.guest

CHANGED: dict[str, Any] = {
    "name": "small",
    "filesystems": ["xfs"],
    "contexts": [1],
    "bounds": [],
    "limits": [{"mib": 128, "ramp_s": 0.1, "window_s": 0.4}],
    "guest": {"machine": "smp", "cpus": 8, "mem_mib": 2816, "device_mib": 1024},
    "files": {"total_mib": 512},
    "full": {},
}
# What "./pwb clock repeat" holds for these cells; with eight contexts chance makes more in so short a window.
WITHIN = 0.01
BOOTING_S = 2


@dataclass(frozen=True)
class KillsOnce:
    """Boots guests; the first one that runs a command takes its worker with it.

    Attributes:
        killed: file that says that this has happened.
    """

    killed: Path

    def __call__(self, kernel: Path, command: list[str], **options: Any) -> guest.GuestResult:
        try:
            self.killed.touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            # While it boots, or later: what it would have measured is lost.
            threading.Timer(BOOTING_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return guest.run(kernel, command, **options)


@pytest.fixture
def kernels(smp_stock_kernel: Kernel, smp_parallel_kernel: Kernel) -> Kernels:
    return {"stock": smp_stock_kernel, "parallel": smp_parallel_kernel}


def _measure(kernels: Kernels, crew: cluster.Crew, root: Path) -> dict[str, float]:
    """Measure stock and one context; return MiB/s by kernel."""
    chosen = Scenario.model_validate(scenario.load("headline").model_dump() | CHANGED)
    folder = session.measure(
        chosen, kernels, job_folder=REPO, crew=crew, root=root, console=Console(file=io.StringIO())
    )
    cells = json.loads((folder / "summary.json").read_text())
    return {cell["variant"]: cell["mib_s"]["median"] for cell in cells}


@pytest.mark.long
def test_one_worker_and_three_give_the_same_and_a_killed_one_loses_nothing(
    tmp_path: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots, "draw", lambda folder, cells: [])
    with cluster.local(1, guest.run) as crew:
        one = _measure(kernels, crew, tmp_path / "one")
    with cluster.local(3, KillsOnce(tmp_path / "killed")) as crew:
        three = _measure(kernels, crew, tmp_path / "three")
    assert (tmp_path / "killed").exists()
    assert set(one) == set(three) == {"stock", "parallel"}
    for variant, mib_s in one.items():
        assert three[variant] == pytest.approx(mib_s, rel=WITHIN)
