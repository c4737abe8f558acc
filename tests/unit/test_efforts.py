# SPDX-License-Identifier: GPL-2.0
"""The table of what proofs took, of made-up outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from lab.docs import efforts, measurements
from lab.proof import cuts, mutants, schedules, tested
from lab.result.provenance import META, SUMMARY

Keep = Callable[[str, str, list[dict[str, object]]], None]
CUT = asdict(
    cuts.Outcome("xfs", "parallel", "uml", 2, 5, cuts=50, promised=9, longer=0, lost=[], host_s=1800)
)


@pytest.fixture
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Return what keeps the rows of a measurement, by its name and view."""
    monkeypatch.setattr(measurements, "MEASUREMENTS", tmp_path)
    monkeypatch.setattr(efforts, "MEASUREMENTS", tmp_path)

    def kept(name: str, view: str, rows: list[dict[str, object]]) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / SUMMARY).write_text(json.dumps(rows))
        about = {"view": view, "command": f"./pwb {view}", "date": "2026-11-30"}
        (tmp_path / name / META).write_text(json.dumps(about))

    return kept


def rows(*names: str) -> list[str]:
    return efforts.efforts(*names).splitlines()[2:]


def test_cuts_of_several_measurements_are_put_together_by_what_repeats_them(keep: Keep) -> None:
    keep("small", "cuts", [CUT, CUT | {"seed": 6}, CUT | {"kernel": "stock"}])
    keep("large", "cuts", [CUT | {"fs": "ext4"}, CUT | {"seed": 9}, CUT | {"machine": "smp", "cpus": 8}])
    assert rows("small", "large") == [
        "| `./pwb cuts` | 200 cuts | 5 to 6, 9 | 2.00 |",
        "| `./pwb cuts --machine smp --cpus 8` | 50 cuts | 5 | 0.50 |",
        "| `./pwb cuts --kernel stock` | 50 cuts | 5 | 0.50 |",
    ]


def test_all_tests_of_a_proof_are_a_row(keep: Keep) -> None:
    of = [
        tested.Outcome(proof, "test", cases=3, tried=tried, seconds=900, failed=0, skipped=0)
        for proof, tried in (("sync", {"rounds": 9}), ("sync", {}), ("hostile", {"seeds": 4}))
    ]
    keep("tested", "tested", [asdict(one) for one in of])
    assert rows("tested") == [
        "| `./pwb prove sync` | 6 | - | 0.50 |",
        "| `./pwb prove hostile` | 3 | 4 in all | 0.25 |",
    ]


def test_mutants_and_schedules_have_a_row_each(keep: Keep) -> None:
    mutant = mutants.Outcome("a", "b", "c", "caught", "", build_s=100, test_s=80)
    boot = schedules.Outcome(
        "sync", "xfs", "debug", 4, 1, stalls=9, stalled_s=1, guest_s=7, host_s=360, found=""
    )
    keep("mutants", "mutants", [asdict(mutant)])
    keep("schedules", "schedules", [asdict(boot), asdict(boot) | {"load": "cgroups", "seed": 2}])
    assert rows("mutants", "schedules") == [
        "| `./pwb mutants` | 1 mutants | - | 0.05 |",
        "| `./pwb schedules --cpus 4` | 2 boots | 1 to 2 | 0.20 |",
    ]
