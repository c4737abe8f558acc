# SPDX-License-Identifier: GPL-2.0
"""Cells, and the results folder: complete or marked incomplete, and latest."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from lab.experiment.measure import Spread
from lab.result import results
from tests import samples


def _cells() -> dict[tuple[str, int | None], results.Cell]:
    return {(cell.variant, cell.contexts): cell for cell in results.cells("s", samples.result())}


def test_cells_compare_with_stock_and_both_bounds() -> None:
    cell = _cells()["parallel", 2]
    assert cell.runs == 2
    assert cell.mib_s == Spread(median=210, min=200, max=220)
    assert cell.ratio_to_stock == 1.9091
    assert cell.ratio_to_stock_spread == Spread(median=1.9167, min=1.8333, max=2)
    assert cell.ratio_to_bdis == 0.95455
    assert cell.ratio_to_direct == 0.7


def test_bounds_say_that_they_ran_stock() -> None:
    cells = _cells()
    assert {cells[key].kernel for key in cells if key[0] != "parallel"} == {"stock"}
    assert cells["direct", None].dirty_limit_mib is None
    assert cells["direct", None].ratio_to_stock is None
    assert cells["stock", 1].ratio_to_stock == 1


def test_each_layout_has_its_own_stock_and_no_affinity_of_it() -> None:
    runs = [
        *samples.measured("stock", 1, 128, [100], layout="even"),
        *samples.measured("stock", 1, 128, [50], layout="skewed"),
        *samples.measured("parallel", 8, 128, [100], affinity="ino", layout="skewed"),
    ]
    [cell] = [cell for cell in results.cells("s", runs) if cell.variant == "parallel"]
    assert (cell.affinity, cell.layout, cell.ratio_to_stock) == ("ino", "skewed", 2)
    assert cell.seconds == Spread(median=10, min=10, max=10)


def test_missing_bound_leaves_its_ratio_out() -> None:
    without = [one for one in samples.result() if one.key.variant != "bdis"]
    assert all(cell.ratio_to_bdis is None for cell in results.cells("s", without))


def test_summary_is_a_list_of_cells_and_reads_back(tmp_path: Path) -> None:
    cells = results.cells("s", samples.result())
    results.write(tmp_path, cells, {"date": "today"})
    listed = json.loads((tmp_path / "summary.json").read_text())
    assert isinstance(listed, list)
    assert listed[0]["mib_s"] == {"median": 110, "min": 100, "max": 120}
    for key in ("scenario", "device", "fs", "kernel", "contexts", "dirty_limit_mib", "runs"):
        assert key in listed[0]
    assert results.read(tmp_path) == (cells, {"date": "today"})


def test_latest_points_at_the_newest_complete_result(tmp_path: Path) -> None:
    first = results.create(tmp_path)
    assert first.name.endswith(".incomplete")
    assert not (tmp_path / "latest").exists()
    final = results.publish(first)
    assert (tmp_path / "latest").resolve() == final.resolve()
    assert not first.exists()
    second = results.create(tmp_path)
    assert (tmp_path / "latest").resolve() == final.resolve()
    newest = results.publish(second)
    assert newest != final
    assert (tmp_path / "latest").resolve() == newest.resolve()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["latest", final.name, newest.name])


def test_fio_notes_ahead_of_its_json_are_skipped() -> None:
    assert len(results.read_fio(samples.FIXTURES / "fio-three-jobs.json")["jobs"]) == 3


def test_runs_are_a_table_with_a_row_for_each(tmp_path: Path) -> None:
    measured = samples.result()
    clock = results.Clock(host_s_per_s=20.0, lost=0.01)
    measured[-1] = measured[-1].model_copy(update={"clock": clock})
    results.write_runs(tmp_path, measured)
    with (tmp_path / results.RUNS).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(measured)
    assert (rows[0]["variant"], rows[0]["round"], rows[0]["mib_s"]) == ("stock", "1", "100.0")
    assert (rows[0]["lost"], rows[-1]["lost"]) == ("", "0.01")
