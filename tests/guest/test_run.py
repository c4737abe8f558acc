# SPDX-License-Identifier: GPL-2.0
"""A stranger's job from its file to its page, in real guests."""

from __future__ import annotations

import functools
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from lab.bench import bench, session
from lab.tree.source import Source

pytestmark = [pytest.mark.guest, pytest.mark.long]

JOB = """
[global]
rw=randwrite
bs=4k
ioengine=psync
size=64m
overwrite=1
time_based=1
runtime=30
[writer]
numjobs=2
"""


# The kernels are named so that they are there: else the command builds them.
@pytest.mark.usefixtures("smp_stock_kernel", "smp_parallel_kernel")
def test_a_job_ends_in_a_page_and_is_not_measured_twice(
    tmp_path: Path, kernel_source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path / "stranger.fio"
    job.write_text(JOB)
    said = io.StringIO()
    measure = functools.partial(
        session.measure, root=tmp_path / "results", console=Console(file=said, width=100)
    )
    monkeypatch.setattr(bench, "measure", measure)

    def run() -> Path:
        return bench.run_job(
            job,
            budget_min=1.5,
            source=kernel_source,
            fs=["ext4"],
            device="brd",
            contexts=[1, 2],
            dirty_limits_mib=[128],
            machine="smp",
            cpus=2,
            memory_mib=3072,
        )

    folder = run()
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "stranger" in page
    assert "so far" in said.getvalue()
    cells = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert any(cell["variant"] == "stock" for cell in cells)
    meta = json.loads((run() / "meta.json").read_text(encoding="utf-8"))
    assert meta["boots_from_cache"] >= len(cells)
