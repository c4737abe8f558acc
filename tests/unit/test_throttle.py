# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from lab.cli import cli
from lab.result import results, throttle
from lab.util.errors import LabError
from tests import samples

CELLS = results.cells("s", samples.result())


def test_every_parallel_cell_is_compared_with_stock() -> None:
    lines = throttle.table(CELLS).splitlines()[2:]
    assert [line.split(" | ")[2] for line in lines] == ["1", "2"]
    assert "| 1.91 |" in lines[1]


def test_means_are_over_the_filesystems() -> None:
    xfs = [*samples.measured("stock", 1, 128, [100]), *samples.measured("parallel", 2, 128, [160])]
    ext4 = [
        *samples.measured("stock", 1, 128, [100], "ext4"),
        *samples.measured("parallel", 2, 128, [90], "ext4"),
    ]
    cells = results.cells("s", [*xfs, *ext4])
    assert throttle.means(cells).splitlines()[2].startswith("| 128 MiB | 2 | 1.20 |")


def test_the_number_that_the_kernel_finds_is_a_setting() -> None:
    runs = [*samples.measured("stock", 1, 128, [100]), *samples.measured("parallel", None, 128, [150])]
    cells = results.cells("s", runs)
    assert throttle.means(cells).splitlines()[2].startswith("| 128 MiB | auto | 1.50 |")
    assert throttle.table(cells).splitlines()[2].startswith("| xfs | 128 MiB | auto | 1.50 |")


@pytest.mark.parametrize(
    ("ours", "shown"), [([60, 62], "**0.64**"), ([95, 85], "*0.95*"), ([100, 90], "1.00")]
)
def test_a_miss_is_marked_by_whether_rounds_of_both_kernels_overlap(ours: list[float], shown: str) -> None:
    cells = results.cells(
        "s", [*samples.measured("stock", 1, 128, [100, 90]), *samples.measured("parallel", 2, 128, ours)]
    )
    assert throttle.table(cells).splitlines()[2].startswith(f"| xfs | 128 MiB | 2 | {shown} |")


def test_each_number_of_cpus_is_compared_with_its_own_stock() -> None:
    runs = [
        *samples.measured("stock", 1, 128, [100], machine="smp", cpus=8),
        *samples.measured("stock", 1, 128, [200], machine="smp", cpus=64),
        *samples.measured("parallel", 2, 128, [160], machine="smp", cpus=8),
        *samples.measured("parallel", 2, 128, [220], machine="smp", cpus=64),
    ]
    cells = results.cells("s", runs)
    rows = [line.split(" | ")[1:4] for line in throttle.table(cells).splitlines()[2:]]
    assert rows == [
        ["128 MiB on nolat, 8 CPUs", "2", "1.60"],
        ["128 MiB on nolat, 64 CPUs", "2", "1.10"],
    ]
    lines = throttle.means(cells).splitlines()[2:]
    assert [line.split(" | ")[:3] for line in lines] == [
        ["| 128 MiB on nolat, 8 CPUs", "2", "1.60"],
        ["| 128 MiB on nolat, 64 CPUs", "2", "1.10"],
    ]


def test_cell_without_stock() -> None:
    with pytest.raises(LabError, match="no stock cell for xfs on nolat at 128 MiB"):
        throttle.table([cell for cell in CELLS if cell.variant != "stock"])


def test_command(tmp_path: Path) -> None:
    results.write(tmp_path, CELLS, {})
    means, cells = CliRunner().invoke(cli, ["throttle", str(tmp_path)]).output.split("\n\n")
    assert means.splitlines()[2:] == [
        "| 128 MiB | 1 | 0.86 | 1.00 | - | 1.00 |",
        "| 128 MiB | 2 | 1.91 | 1.00 | - | 1.00 |",
    ]
    assert cells.splitlines()[2:] == [
        "| xfs | 128 MiB | 1 | *0.86* | 1.00 | - | 1.00 |",
        "| xfs | 128 MiB | 2 | 1.91 | 1.00 | - | 1.00 |",
    ]
    with pytest.raises(LabError, match="is no result of a bench"):
        CliRunner().invoke(cli, ["throttle", str(tmp_path / "none")], catch_exceptions=False)
