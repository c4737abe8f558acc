# SPDX-License-Identifier: GPL-2.0
"""A tiny bench in real guests; the debug kernel with one context stands in for stock."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.bench import session
from lab.bench.boot_task import Runner
from lab.bench.cluster import InTurn
from lab.experiment.scenario import Scenario
from lab.machine import guest
from lab.result import plots
from lab.tree.build import Kernel
from lab.util.errors import LabError
from tests import samples

pytestmark = pytest.mark.guest


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "draw", lambda folder, cells: [])


def measured(
    chosen: Scenario, kernel: Kernel, root: Path, runner: Runner = guest.run
) -> tuple[Path, list[dict[str, Any]]]:
    """Measure a scenario, and return the folder of its result and the cells."""
    folder = session.measure(
        chosen,
        dict.fromkeys(("stock", "parallel"), kernel),
        job_folder=root,
        crew=InTurn(runner),
        root=root / "results",
        console=Console(file=io.StringIO()),
    )
    return folder, json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("own_files", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_figure_is_there(tmp_path: Path, uml_debug_kernel: Kernel, own_files: bool) -> None:
    """What the figures are is not this test's business."""
    size_mib = 24
    job = "\n".join(
        [
            "[global]",
            "rw=randwrite",
            "bs=4k",
            f"size={size_mib}m",
            "filename_format=data.$jobnum",
            "time_based=1",
            "runtime=2",
            "[x]",
            "numjobs=2",
            "",
        ]
    )
    chosen = samples.small_scenario(
        filesystems=["xfs", "ext4", "f2fs"] if own_files else ["xfs"],
        contexts=[2],
        repetitions=1,
        limits=[{"mib": 16, "ramp_s": 0.5, "window_s": 1.5}],
        guest={"cpus": 2, "mem_mib": 1536, "device_mib": 1024},
        files=None if own_files else {"names": ["data.0", "data.1"], "size_mib": size_mib},
        job={"text": job},
    )
    folder, cells = measured(chosen, uml_debug_kernel, tmp_path)
    assert {cell["variant"] for cell in cells} == {"stock", "parallel", "bdis", "direct"}
    for cell in cells:
        for figure in (
            "mib_s",
            "latency_mean_us",
            "latency_p99_us",
            "sync_s",
            "extents",
            "flusher_cpu_s_per_gib",
        ):
            assert cell[figure] is not None, (figure, cell)
    settings = json.loads((folder / "meta.json").read_text())["dirty_settings"]["limit-16"]
    assert (settings["dirty_bytes"], settings["dirty_background_bytes"]) == (16 << 20, 8 << 20)


def test_a_guest_stops_at_an_amount(tmp_path: Path, uml_debug_kernel: Kernel) -> None:
    """The job would go on for an hour; the guest has not got that long."""
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1],
        bounds=[],
        repetitions=1,
        limits=[{"mib": 16, "ramp_s": 0, "window_s": 3600, "between_mib": [4, 64]}],
        guest={"cpus": 2, "mem_mib": 1536, "device_mib": 1024},
        job={"text": "[x]\nrw=randwrite\nbs=4k\nsize=64m\ntime_based=1\nruntime=${WINDOW_S}\n"},
    )

    def run(*arguments: Any, **options: Any) -> Any:
        return guest.run(*arguments, **{**options, "timeout_s": 120})

    _, cells = measured(chosen, uml_debug_kernel, tmp_path, run)
    assert len(cells) == 2
    assert all(cell["mib_s"]["median"] > 0 and cell["steady"] for cell in cells)


def test_inodes_are_chosen_and_mkfs_gets_its_options(tmp_path: Path, uml_debug_kernel: Kernel) -> None:
    """Chosen inode numbers, sparse files in directories, mkfs options and a job of fixed size."""
    job = "[x]\nrw=randwrite\nbs=4k\nsize=8m\nfilename_format=d$jobnum/data\nnumjobs=2\n"
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[2],
        bounds=[],
        repetitions=1,
        limits=[{"mib": 16, "ramp_s": 0}],
        guest={"cpus": 2, "mem_mib": 1536, "device_mib": 1024},
        mkfs={"xfs": ["-d", "agcount=3"]},
        files={
            "names": ["d0/data", "d1/data"],
            "size_mib": 8,
            "empty": True,
            "layouts": ["even", "skewed"],
            "modulus": 24,
        },
        job={"text": job},
    )
    folder, cells = measured(chosen, uml_debug_kernel, tmp_path)
    assert len(cells) == 4
    assert all(cell["seconds"]["median"] > 0 and cell["extents"] is not None for cell in cells)
    raw = json.loads((folder / "raw" / "nolat-xfs-stock-even-16-round1" / "raw.json").read_text())
    assert list(raw["extents_before"]) == ["d0/data", "d1/data"]
    assert set(raw["extents_before"].values()) == {0}
    bad = chosen.model_copy(update={"mkfs": {"xfs": ["-d", "agcount=x"]}})
    with pytest.raises(LabError, match=r"mkfs.xfs on /dev/nullb0 failed: .*agcount"):
        measured(bad, uml_debug_kernel, tmp_path)
