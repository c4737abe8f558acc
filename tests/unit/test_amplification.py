# SPDX-License-Identifier: GPL-2.0
"""Write amplification of RocksDB: the figures, of made-up counters."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from lab.machine import devices
from lab.probes.amplification.probe import PLACEMENTS, Amplification, Recorded


def recorded(media_pages: int) -> Recorded:
    return Recorded(
        samples=[(0, 100, 100), (50, 200, 250), (100, 300, 250 + media_pages)], seconds=1, levels=""
    )


RUNS = {
    "none": [recorded(200), recorded(300), recorded(250)],
    "hints": [recorded(200)],
    "streams": [recorded(110), recorded(130)],
}


PROBE = Amplification(repetitions=3)


def table() -> pd.DataFrame:
    boots = {boot.name: boot for boot in PROBE.boots()}
    return pd.DataFrame(
        [
            boots[f"{name}-{number}"].axes | row
            for name, recorded in RUNS.items()
            for number, one in enumerate(recorded, 1)
            for row in PROBE.rows(boots[f"{name}-{number}"], one)
        ]
    )


def test_placements_are_compared_by_their_medians() -> None:
    assert table()["amplification"].tolist() == [2, 3, 2.5, 2, 1.1, 1.3]
    assert PROBE.table(table()).splitlines()[2:] == [
        "| no placement | 2.50 | 2.00 to 3.00 | +0% | 0.00 |",
        "| life time hints | 2.00 | 2.00 to 2.00 | -20% | 0.00 |",
        "| write streams | 1.20 | 1.10 to 1.30 | -52% | 0.00 |",
    ]


def test_picture_has_a_line_for_each_run(tmp_path: Path) -> None:
    records = {f"{name}-{number}": one for name, of in RUNS.items() for number, one in enumerate(of, 1)}
    PROBE.draw(table(), records, tmp_path)
    assert (tmp_path / "amplification.png").read_bytes().startswith(b"\x89PNG")


def test_there_is_a_device_for_every_placement() -> None:
    found = {placement.device for placement in PLACEMENTS.values()}
    assert found <= {*devices.names()}
    assert {name for name in found if "write_hints" in (devices.DEVICES / f"{name}.toml").read_text()} == {
        "flash-hints"
    }
