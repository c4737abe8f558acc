# SPDX-License-Identifier: GPL-2.0
"""How workloads scale with the CPUs: what is asked for, what is kept, and what the plot shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from lab.experiment import scenario as scenarios
from lab.experiment import schedule
from lab.experiment.axes import Variant
from lab.result import plots, results, scaling
from lab.result.results import Cell
from lab.util.errors import LabError
from tests import samples
from tests.unit.test_bottleneck import LIMIT

RATES: list[tuple[int, Variant, int | None, float]] = [
    (2, "stock", 1, 100),
    (2, "parallel", 1, 99),
    (2, "parallel", 2, 180),
    (2, "bdis", None, 190),
    (16, "stock", 1, 110),
    (16, "parallel", 1, 109),
    (16, "parallel", 4, 350),
    (16, "parallel", 16, 900),
    (16, "bdis", None, 950),
]


def cells() -> list[Cell]:
    found = []
    for cpus, variant, contexts, rate in RATES:
        [one] = samples.measured(variant, contexts, 128, [rate], machine="smp", cpus=cpus)
        found.append(one.model_copy(update={"bottleneck": LIMIT}))
    return results.cells("scaling-append", found)


def test_workloads_are_the_scenarios_of_that_name() -> None:
    assert scaling.chosen([]) == ["allocate", "append", "mmap", "overwrite", "small"]
    assert scaling.chosen(["small", "append"]) == ["append", "small"]
    with pytest.raises(LabError, match="unknown workload 'smal': expected"):
        scaling.chosen(["smal"])


@pytest.mark.parametrize("workload", scaling.workloads())
def test_each_is_estimated_at_hours(workload: str) -> None:
    boots = schedule.boots(scenarios.load(f"scaling-{workload}"))
    on_two_cores_s = sum(boot.estimate_s for boot in boots) / 2
    assert on_two_cores_s < 3 * 3600


@pytest.mark.parametrize("workload", scaling.workloads())
def test_each_is_measured_up_to_64_cpus(workload: str) -> None:
    boots = schedule.boots(scenarios.load(f"scaling-{workload}"))
    assert {boot.cpus for boot in boots} == {2, 4, 8, 16, 32, 64}
    at_64 = [setting for boot in boots if boot.cpus == 64 and boot.fs == "xfs" for setting in boot.settings]
    assert [(setting.variant, setting.contexts) for setting in at_64] == [
        ("stock", 1),
        ("parallel", 1),
        ("parallel", 4),
        ("parallel", 64),
    ]


def test_the_largest_numbers_of_cpus_can_be_left_for_later() -> None:
    whole = scenarios.load("scaling-append")
    boots = schedule.boots(whole.up_to(16))
    assert {boot.cpus for boot in boots} == {2, 4, 8, 16}
    assert boots == [boot for boot in schedule.boots(whole) if boot.cpus <= 16]
    assert whole.up_to(8).scaling == [2, 4]


def result(folder: Path, change: str, found: list[Cell]) -> Path:
    """Make the result of a workload, of a kernel with this change."""
    made = folder / f"result-{change}-{len(found)}"
    made.mkdir(exist_ok=True)
    about = dict.fromkeys(scaling.FACTS, "") | {"change": change, "date": f"day of {change}"}
    results.write(made, found, about)
    return made


def test_table_has_every_workload_that_was_measured(tmp_path: Path) -> None:
    scaling.keep("append", result(tmp_path, "a", cells()), tmp_path)
    scaling.keep("small", result(tmp_path, "a", cells()), tmp_path)
    text = (tmp_path / "table.md").read_text()
    assert text.index("## append: ") < text.index("## small: ")
    rows = [line for line in text.splitlines() if line.startswith("| xfs")]
    assert len(rows) == 2 * len(RATES)
    assert "| xfs | 16 | 128 MiB | 16 contexts | 900 | 8.18 |" in text
    assert (tmp_path / "append.png").is_file()
    # Measured again, it replaces its own part only.
    scaling.keep("append", result(tmp_path, "a", cells()[:1]), tmp_path)
    assert (tmp_path / "table.md").read_text().count("| xfs") == len(RATES) + 1


def test_table_has_only_what_was_measured_with_the_same_change(tmp_path: Path) -> None:
    scaling.keep("append", result(tmp_path, "a", cells()), tmp_path)
    scaling.keep("small", result(tmp_path, "a", cells()), tmp_path)
    scaling.keep("append", result(tmp_path, "b", cells()), tmp_path)
    assert "## small" not in (tmp_path / "table.md").read_text()
    about = json.loads((tmp_path / "meta.json").read_text())
    assert {name: one["date"] for name, one in about.items()} == {"append": "day of b"}
    # What nothing says of which kernel it is counts no more, either.
    (tmp_path / "meta.json").unlink()
    scaling.keep("small", result(tmp_path, "b", cells()), tmp_path)
    assert "## append" not in (tmp_path / "table.md").read_text()


def test_plot_has_a_line_for_each_number_of_contexts_that_is_there_throughout() -> None:
    figure = plots.scaling("brd", cells())
    [axes] = figure.axes
    lines = {
        str(bars.get_label()): np.asarray(bars.lines[0].get_xydata()).tolist()
        for bars in axes.containers
        if isinstance(bars, ErrorbarContainer)
    }
    assert lines == {
        "stock": [[2, 100], [16, 110]],
        "1 context": [[2, 99], [16, 109]],
        "contexts = CPUs": [[2, 180], [16, 900]],
        "separate BDIs (bound)": [[2, 190], [16, 950]],
    }


def test_panels_of_a_row_show_the_highest_of_them() -> None:
    [one] = samples.measured("stock", 1, 128, [5000], fs="ext4", machine="smp", cpus=2)
    figure = plots.scaling("brd", [*cells(), *results.cells("s", [one])])
    assert [axes.get_ylim()[0] for axes in figure.axes] == [0, 0]
    assert min(axes.get_ylim()[1] for axes in figure.axes) > 5000
