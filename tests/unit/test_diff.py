# SPDX-License-Identifier: GPL-2.0
"""Two results side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import cli
from lab.result import diff, results
from lab.result.results import Cell
from tests import samples


def cells(stock: list[float], two: list[float], fs: str = "xfs") -> list[Cell]:
    runs = [
        *samples.measured("stock", 1, 128, stock, fs=fs),
        *samples.measured("parallel", 2, 128, two, fs=fs),
    ]
    return results.cells("s", runs)


def test_what_differs_by_more_than_its_spread_is_marked() -> None:
    text = diff.markdown(cells([100, 102], [200, 210]), cells([101, 99], [230, 240]))
    assert text.splitlines()[2:] == [
        "| nolat | 2 | xfs | 128 MiB | stock | 101 (100..102) | 100 (99..101) | 0.99 |  |",
        "| nolat | 2 | xfs | 128 MiB | 2 contexts | 205 (200..210) | 235 (230..240) | 1.15 | differs |",
    ]


def test_one_rate_of_each_cannot_tell() -> None:
    text = diff.markdown(cells([100], [200]), cells([100], [200.1]))
    assert text.splitlines()[3].endswith("| 1.00 | one rate: cannot tell |")


def test_other_jobs_are_told() -> None:
    meta = {"fio": "fio-3.33", "scenario": {"job": {"text": "[a]"}, "guest": {"cpus": 8}}}
    assert diff.notes(meta, meta) == []
    other = {"fio": "fio-3.36", "scenario": {"job": {"text": "[b]"}, "guest": {"cpus": 8}}}
    assert diff.notes(meta, other) == [
        "A and B differ in job of their scenarios: see meta.json of each",
        "fio is fio-3.33 in A and fio-3.36 in B",
    ]


def test_what_only_one_has_is_named() -> None:
    lines = diff.markdown(cells([100], [200]), cells([100], [200], fs="ext4")).splitlines()
    assert lines[0] == "no setting is in both results"
    assert (
        lines[2]
        == "only in A: xfs on nolat, 2 CPUs, stock at 128 MiB; xfs on nolat, 2 CPUs, 2 contexts at 128 MiB"
    )
    assert lines[4].startswith("only in B: ext4 on nolat")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        results.write(folder, cells([100], [200]), {})
    assert cli._run(["diff", *map(str, folders)]) == 0
    assert "| 2 contexts | 200 (200..200) | 200 (200..200) | 1.00 |" in capsys.readouterr().out
    assert cli._run(["diff", str(tmp_path), str(folders[0])]) == 1
    assert f"{tmp_path} is no result of a bench" in capsys.readouterr().err
