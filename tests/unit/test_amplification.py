# SPDX-License-Identifier: GPL-2.0
"""Write amplification of RocksDB: the figures, of made-up counters, and a small run on real flash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.machine import devices
from lab.probes import amplification
from lab.probes.amplification import PLACEMENTS, Recorded
from lab.tree.build import Kernel


def recorded(media_pages: int) -> Recorded:
    return Recorded(
        samples=[(0, 100, 100), (50, 200, 250), (100, 300, 250 + media_pages)], seconds=1, levels=""
    )


RUNS = {
    "none": [recorded(200), recorded(300), recorded(250)],
    "hints": [recorded(200)],
    "streams": [recorded(110), recorded(130)],
}


def test_figures() -> None:
    found = amplification.amplification(RUNS)
    assert found["none"].runs == [2, 3, 2.5]
    assert (found["none"].median, found["none"].change) == (2.5, 0)
    assert (found["hints"].median, found["hints"].change) == (2, -0.2)
    assert (found["streams"].median, found["streams"].change) == (1.2, -0.52)


def test_report(tmp_path: Path) -> None:
    found = amplification.report(RUNS, tmp_path / "new")
    assert (
        json.loads((tmp_path / "new" / "summary.json").read_text())["streams"]
        == found["streams"].model_dump()
    )
    assert (tmp_path / "new" / "amplification.png").read_bytes().startswith(b"\x89PNG")


def test_table_names_every_placement() -> None:
    titles = list(amplification.table(amplification.amplification(RUNS)).columns[0].cells)
    assert titles == [placement.title for placement in PLACEMENTS.values()]


def test_there_is_a_device_for_every_placement() -> None:
    found = {placement.device for placement in PLACEMENTS.values()}
    assert found <= {*devices.names()}
    assert {name for name in found if "write_hints" in (devices.DEVICES / f"{name}.toml").read_text()} == {
        "flash-hints"
    }


@pytest.mark.guest
@pytest.mark.parametrize("name", PLACEMENTS)
def test_rocksdb_writes_to_flash(debug_kernel: Kernel, name: str) -> None:
    found = amplification.record(debug_kernel, PLACEMENTS[name], records=4000, operations=4000)
    assert [done for done, _, _ in found.samples] == list(range(0, 4001, 100))
    _, host, media = found.samples[-1]
    assert 0 < host <= media
