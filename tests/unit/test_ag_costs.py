# SPDX-License-Identifier: GPL-2.0
"""The parts of the probe of AG-aware writeback's costs that need no guest."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from lab.probes.ag import costs, probe


def test_multiple_is_of_each_round() -> None:
    # Rounds that differ tenfold, and a multiple that does not.
    mean, error = probe.compare([0.9, 9.0, 90.0], [1.0, 10.0, 100.0])
    assert mean == pytest.approx(0.9)
    assert error == pytest.approx(0, abs=1e-9)


def test_error_is_of_the_mean() -> None:
    mean, error = probe.compare([2.0, 0.5] * 8, [1.0] * 16)
    assert mean == pytest.approx(1)
    assert error == pytest.approx(1.96 * math.log(2) * math.sqrt(16 / 15) / 4)


def test_turn_sets_the_mode_and_times_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", iter([1.0, 11.0]).__next__)
    monkeypatch.setattr(costs, "cpu_s", iter([3.0, 5.0]).__next__)
    job = ["sh", "-c", f"cat {tmp_path}/overwrite {tmp_path}/delalloc > {tmp_path}/seen"]
    assert costs.turn(job, tmp_path, "rotor") == (10.0, 2.0)
    assert (tmp_path / "seen").read_text() == "rotorrotor"


def test_filesystem_without_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWB_MNT", str(tmp_path))
    monkeypatch.setenv("PWB_DEV", "/dev/no-such-device")
    with pytest.raises(SystemExit, match=r"no-such-device/writeback is missing: expected XFS"):
        costs.main(1)


def test_table_compares_each_mode_with_off_in_the_same_rounds() -> None:
    ours = probe.AgCosts("uml", 2, 2)
    turns = probe.Turns({"fsync": {"off": [(1.0, 2.0), (2.0, 4.0)], "rotor": [(0.5, 2.0), (1.0, 4.0)]}})
    runs = pd.DataFrame(ours.rows(ours.boots()[0], turns))
    assert runs["seconds"].tolist() == [1.0, 2.0, 0.5, 1.0]
    assert ours.table(runs).splitlines()[2:] == ["| fsync | `rotor` | 0.500 ± 0.000 | 1.000 ± 0.000 |"]
