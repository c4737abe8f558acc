# SPDX-License-Identifier: GPL-2.0
"""labblk's flash translation layer, compiled for this machine: its write amplification is the published one.

For uniform random writes and greedy collection, in units of endless size, a page is still valid when its
unit is collected with probability u = exp(-(1 + OP) (1 - u)), and 1 / (1 - u) is the write amplification
(Xiang and Kurkoski, "An Improved Analytical Expression for Write Amplification in NAND Flash", 2012). Finite
units leave the collector a choice, so it does a little better.
"""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest

from lab.util.paths import REPO

LABBLK = REPO / "kernel" / "drivers" / "block" / "labblk"
HERE = Path(__file__).parent / "ftl"
# 2 GiB in reclaim units of 2 MiB.
PAGES = 1 << 19
UNIT_PAGES = 512


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the simulation, built of the driver's own file."""
    program = tmp_path_factory.mktemp("ftl") / "simulate"
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-value"]
    sources = [str(HERE / "simulate.c"), str(LABBLK / "ftl.c")]
    includes = [f"-I{HERE / 'include'}", f"-I{LABBLK}"]
    subprocess.run(["gcc", "-O2", *warnings, *includes, "-o", str(program), *sources], check=True)
    return program


def measured(simulate: Path, op_percent: int, pages: int = PAGES, unit_pages: int = UNIT_PAGES) -> float:
    arguments = [str(simulate), str(pages), str(unit_pages), str(op_percent)]
    return float(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)


def published(op_percent: int) -> float:
    """Return the analytic write amplification, by bisection for the u below 1."""
    low, high = 0.0, 1.0 - 1e-9
    while high - low > 1e-12:
        u = (low + high) / 2
        low, high = (u, high) if u < math.exp(-(1 + op_percent / 100) * (1 - u)) else (low, u)
    return 1 / (1 - low)


def test_the_formula_gives_what_its_authors_print() -> None:
    assert round(published(30), 2) == 2.36


@pytest.mark.parametrize("op_percent", [7, 15, 28])
def test_uniform_random_writes(simulate: Path, op_percent: int) -> None:
    assert measured(simulate, op_percent) == pytest.approx(published(op_percent), rel=0.05)


def test_larger_units_come_closer(simulate: Path) -> None:
    found = [measured(simulate, 15, pages=1024 * unit, unit_pages=unit) for unit in (16, 64, 256)]
    assert found == sorted(found)
    assert found[-1] < published(15)
