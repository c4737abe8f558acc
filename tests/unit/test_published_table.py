# SPDX-License-Identifier: GPL-2.0
"""Published beside measured, from results folders to tables, JSON and plots."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from lab.experiment import scenario
from lab.result import published_table, results
from lab.result.results import Measured
from lab.tree.source import Source
from lab.util.errors import LabError
from tests import samples

SOURCE = Source(path=Path("/nowhere"), version="7.3.4", series="7.3", identity="s")


def _result(folder: Path, name: str, runs: list[Measured]) -> Path:
    folder.mkdir()
    meta = {
        "date": "today",
        "commit": "c0ffee",
        "kernels": {"stock": {"identity": "a"}, "parallel": {"identity": "b"}},
        "scenario": scenario.load(name).model_dump(mode="json"),
    }
    results.write(folder, results.cells(name, runs), meta)
    return folder


def _t2(tmp_path: Path, eight: float = 89) -> Path:
    runs = samples.measured("parallel", 1, 128, [30], layout="even")
    for contexts, rate in ((4, 90), (8, eight)):
        for affinity in ("ino", "fs"):
            runs += samples.measured("parallel", contexts, 128, [rate], affinity=affinity, layout="even")
    return _result(tmp_path / "t2", "t2", runs)


def _t6(tmp_path: Path) -> Path:
    ours = samples.measured("parallel", 4, 64, [250], affinity="least-loaded")
    runs = [*samples.measured("stock", 1, 64, [100]), *ours]
    return _result(tmp_path / "t6", "t6", runs)


def _compare(folders: list[Path], output: Path) -> tuple[published_table.Summary, str]:
    out = io.StringIO()
    summary = published_table.compare(folders, output, Console(file=out, width=200))
    return summary, out.getvalue()


def test_published_and_measured_side_by_side(tmp_path: Path) -> None:
    summary, shown = _compare([_t2(tmp_path), _t6(tmp_path)], tmp_path / "out")
    [line] = [line for line in shown.splitlines() if "page cache to device" in line and "28" in line]
    for word in ("T6", "28 -> 14 s", "2.00", "10 -> 4 s", "2.50", "4 contexts", "as published or better"):
        assert word in line
    [bar] = [line for line in shown.splitlines() if "the published multiple" in line]
    assert "at least 2.88" in bar and "2.967" in bar and "yes" in bar
    assert "written to" in shown
    assert [one.scenario for one in summary.measured_with] == ["t2", "t6"]
    assert summary.measured_with[0].kernels == {"stock": "a", "parallel": "b"}


def test_a_bar_that_is_missed_by_little_does_not_look_met(tmp_path: Path) -> None:
    _, shown = _compare([_t2(tmp_path, eight=87.8)], tmp_path / "out")
    [bar] = [line for line in shown.splitlines() if "no loss after the peak" in line]
    assert "at least 0.98" in bar and "0.976" in bar and "NO" in bar


def test_what_is_written_down(tmp_path: Path) -> None:
    summary, _ = _compare([_t2(tmp_path)], tmp_path / "out")
    written = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert published_table.Summary.model_validate(written) == summary
    assert (tmp_path / "out" / "shape-t2-xfs-nolat.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "out" / "table.md").read_text()
    start = "| T2 | contexts 1 to 8, 4 AGs | xfs | nolat |"
    assert f"{start} published, ino | 1.00 | 1.97 | 2.38 | 2.88 |" in text
    assert f"{start} measured, fs | 1.00 | - | - | 3.00 | - |" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows if line.startswith("| T2 | XFS hook")}) == 2


@pytest.mark.parametrize("summary", [None, "[{", '[{"kernel": 1}]'])
def test_a_folder_that_is_no_result(tmp_path: Path, summary: str | None) -> None:
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary, encoding="utf-8")
        (tmp_path / "meta.json").write_text("{}", encoding="utf-8")
    with pytest.raises(LabError, match=r"holds no result of ./pwb bench"):
        _compare([tmp_path], tmp_path / "out")


def test_a_result_with_nothing_to_compare_with(tmp_path: Path) -> None:
    folder = _result(tmp_path / "r", "headline", samples.result())
    with pytest.raises(LabError, match="'headline' has neither published numbers nor bars: expected one of"):
        _compare([folder], tmp_path / "out")


def test_all_claims_unless_named() -> None:
    loaded = {name: scenario.load(name) for name in scenario.names()}
    claiming = [name for name, one in loaded.items() if one.published or one.bars]
    assert 0 < len(claiming) < len(loaded)
    assert published_table.known([]) == claiming
    assert published_table.known(["t2"]) == ["t2"]
