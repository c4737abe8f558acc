# SPDX-License-Identifier: GPL-2.0
"""Power cuts: how they are dealt out to guests, and the table of what they found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lab.proof import cuts
from lab.proof.cuts import Outcome
from lab.result import provenance
from lab.tree.build import Kernel

FOUND = Outcome(
    fs="xfs",
    kernel="parallel",
    machine="uml",
    cpus=2,
    seed=1,
    cuts=50,
    promised=3000,
    longer=1,
    mended=0,
    passes=1200,
    lost=[],
    host_s=1800.0,
)


def test_cuts_are_dealt_out_to_boots_with_seeds_of_their_own() -> None:
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", Path("config"))
    wanted = cuts.jobs(kernel, ["xfs", "ext4"], cpus=2, cuts=120, seed=7)
    dealt = [(job.fs, job.seed, job.cuts) for job in wanted]
    assert dealt == [
        ("xfs", 7, 50),
        ("ext4", 7, 50),
        ("xfs", 8, 50),
        ("ext4", 8, 50),
        ("xfs", 9, 20),
        ("ext4", 9, 20),
    ]


def test_outcomes_come_together_in_a_table(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    cuts.keep([FOUND], kernel, tmp_path)
    again = replace(FOUND, promised=4000)
    more = [again, replace(FOUND, seed=2, lost=["a file"]), replace(FOUND, fs="f2fs")]
    cuts.keep(more, kernel, tmp_path)
    assert (tmp_path / provenance.TABLE).read_text().splitlines()[2:] == [
        "| parallel | uml | f2fs | 1 to 1 | 2 | 50 | 3,000 | 0 | 1 | 0 | 1,200 | 0.50 |",
        "| parallel | uml | xfs | 1 to 2 | 2 | 100 | 7,000 | 1 | 2 | 0 | 2,400 | 1.00 |",
    ]


def test_a_result_names_the_commands_of_all_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    for fs in ("xfs", "ext4", "ext4"):
        monkeypatch.setattr("sys.argv", ["pwb", "cuts", "--fs", fs])
        cuts.keep([replace(FOUND, fs=fs)], kernel, tmp_path)
    command = json.loads((tmp_path / provenance.META).read_text())["command"]
    assert command == "./pwb cuts --fs xfs && ./pwb cuts --fs ext4"


def test_outcomes_of_another_kernel_are_left_behind(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    # What the clone holds by the time a result is written is not what was measured.
    earlier, later = (
        Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config, change=of) for of in ("a", "b")
    )
    cuts.keep([FOUND], earlier, tmp_path)
    cuts.keep([replace(FOUND, fs="ext4")], earlier, tmp_path)
    table, meta = tmp_path / provenance.TABLE, tmp_path / provenance.META
    assert "xfs" in table.read_text()
    cuts.keep([replace(FOUND, fs="f2fs")], later, tmp_path)
    assert "xfs" not in table.read_text()
    assert json.loads(meta.read_text())["change"] == "b"


def test_a_line_says_what_was_lost() -> None:
    assert FOUND.line.endswith("50 cuts, 3,000 promises, nothing lost (30 min 0 s)")
    assert "LOST 1: a file" in replace(FOUND, lost=["a file"]).line
