# SPDX-License-Identifier: GPL-2.0
"""Proofs that are tests: what is read of pytest's report, and the table of what was tried."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from lab.proof import tested
from lab.result import provenance
from lab.util.errors import LabError
from lab.util.paths import REPO
from tests.tried import Tried

SOURCE = """
    import pytest

    @pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
    def test_bytes(fs, record_property):
        record_property("rounds", 7)
        assert fs != "ext4"
        if fs == "f2fs":
            pytest.skip("no tools")

    @pytest.fixture
    def broken():
        raise OSError("no guest")

    def test_without_a_guest(broken):
        pass
"""


@pytest.fixture
def proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have a proof of two tests, of which little is right."""
    path = tmp_path / "test_made_up.py"
    path.write_text(textwrap.dedent(SOURCE))
    monkeypatch.setattr(tested, "PROOFS", {"made-up": (str(path),), "none": (str(tmp_path / "gone.py"),)})
    return "made-up"


def test_cases_of_a_test_are_added_up(proof: str) -> None:
    said: list[str] = []
    took: list[list[tested.Outcome]] = []
    tested.run([proof], said.append, took.append)
    [[whole, broken]] = took
    assert (whole.test, whole.tried) == ("test_made_up.py::test_bytes", {"rounds": 21})
    assert (whole.cases, whole.failed, whole.skipped) == (2, 1, 1)
    assert (broken.cases, broken.failed, broken.skipped) == (1, 1, 0)
    assert any("test_bytes[ext4]" in line for line in said)


def test_tests_that_cannot_be_run_are_no_proof(proof: str) -> None:
    with pytest.raises(LabError, match="the tests of none could not be run, see above"):
        tested.run(["none"], lambda _: None, lambda _: None)


def test_unknown_proof_is_refused_before_any_is_run() -> None:
    with pytest.raises(LabError, match="unknown proof 'sink': expected sync"):
        tested.run(["sync", "sink"], print, print)


def test_every_proof_has_its_tests() -> None:
    words = [word for words in tested.PROOFS.values() for word in words]
    assert all((REPO / word).is_file() for word in words if not word.startswith("-"))


def test_results_are_kept_beside_those_of_other_proofs(tmp_path: Path) -> None:
    of_sync = tested.Outcome("sync", "test_sync.py::test_it", 3, {"rounds": 1000}, 1800, 0, 0)
    of_faults = tested.Outcome("faults", "test_faults.py::test_them", 2, {"kinds of fault": 9}, 36, 1, 1)
    tested.keep([of_faults], tmp_path)
    tested.keep([of_sync], tmp_path)
    _, _, *rows = (tmp_path / provenance.TABLE).read_text().splitlines()
    assert rows == [
        "| sync | `test_sync.py::test_it` | 1,000 rounds | 3 | 30.0 | 0 |",
        "| faults | `test_faults.py::test_them` | 9 kinds of fault | 2 of 3 | 0.6 | 1 |",
    ]


def test_a_test_that_has_failed_is_there_when_it_passes_later(tmp_path: Path) -> None:
    whole = tested.Outcome("sync", "test_sync.py::test_it", 3, {"rounds": 1000}, 1800, 0, 0)
    for failed in (1, 0, 0):
        tested.keep([replace(whole, failed=failed)], tmp_path)
    _, _, *rows = (tmp_path / provenance.TABLE).read_text().splitlines()
    assert [row.split(" | ")[-1] for row in rows] == ["0 |", "1 |"]


def test_tests_note_counts_by_name(tried: Tried, request: pytest.FixtureRequest) -> None:
    tried(records_promised=7, rounds=2)
    assert request.node.user_properties == [("records promised", 7), ("rounds", 2)]
