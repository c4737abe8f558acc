# SPDX-License-Identifier: GPL-2.0
"""labblk's flash translation layer, compiled for this machine: its write amplification is the published one.

For uniform random writes and greedy collection, in units of endless size, a page is still valid when its
unit is collected with probability u = exp(-(1 + OP) (1 - u)), and 1 / (1 - u) is the write amplification
(Xiang and Kurkoski, "An Improved Analytical Expression for Write Amplification in NAND Flash", 2012).

For hot and cold pages the model is that of Van Houdt ("Performance of Garbage Collection Algorithms for
Flash-Based Solid State Drives with Hot/Cold Data", 2013) with a log for the host and another for the
collector, as here, again in units of endless size: of what a unit got of either kind, a part that is known
is overwritten by any time, so no chance is left, and the units can be followed one by one.
"""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lab.util.paths import REPO

LABBLK = REPO / "kernel" / "drivers" / "block" / "labblk"
HERE = Path(__file__).parent / "ftl"
UNIT_PAGES = 512
# A drive has thousands of units, our test devices hundreds.
UNITS = [128, 256, 1024]
OP_PERCENT = [7, 15, 28]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the simulation, built of the driver's own file."""
    program = tmp_path_factory.mktemp("ftl") / "simulate"
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-value"]
    sources = [str(HERE / "simulate.c"), str(LABBLK / "ftl.c")]
    includes = [f"-I{HERE / 'include'}", f"-I{LABBLK}"]
    subprocess.run(["gcc", "-O2", *warnings, *includes, "-o", str(program), *sources], check=True)
    return program


def measured(
    simulate: Path, op_percent: int, units: int, unit_pages: int = UNIT_PAGES, *hot_percent: int
) -> float:
    numbers = (units * unit_pages, unit_pages, op_percent, *hot_percent)
    arguments = [str(simulate), *map(str, numbers)]
    return float(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)


def published(op_percent: float) -> float:
    """Return the analytic write amplification, by bisection for the u below 1."""
    low, high = 0.0, 1.0 - 1e-9
    while high - low > 1e-12:
        u = (low + high) / 2
        low, high = (u, high) if u < math.exp(-(1 + op_percent / 100) * (1 - u)) else (low, u)
    return 1 / (1 - low)


class TwoLogs:
    """Flash of endless units, some of whose data is hot.

    Attributes:
        valid: what is valid of each unit, hot and cold, as a part of it.
        full: which units are full.
        free: the erased units.
        moved: what the collector has moved, in units.
    """

    def __init__(self, units: int, op_percent: int, hot: float) -> None:
        total = units + math.ceil(units * op_percent / 100) + 1
        self.valid = np.zeros((total, 2))
        self.valid[:units] = hot, 1 - hot
        self.full = np.arange(total) < units
        self.free = list(range(units, total))
        self.moved = 0.0
        self._log: int | None = None
        self._written = 0.0

    def collect(self) -> None:
        """Move what is valid out of the full unit that has the least of it."""
        victim = int(np.where(self.full, self.valid.sum(axis=1), 2.0).argmin())
        content = self.valid[victim].copy()
        size = left = float(content.sum())
        self.valid[victim] = 0
        self.full[victim] = False
        self.moved += size
        while left > 1e-12:
            if self._log is None:
                self._log, self._written = self.free.pop(0), 0.0
            part = min(left, 1 - self._written)
            self.valid[self._log] += content * part / size
            self._written += part
            left -= part
            if self._written > 1 - 1e-12:
                self.full[self._log] = True
                self._log = None
        self.free.append(victim)

    def write_unit(self, rates: np.ndarray, shares: np.ndarray) -> None:
        """Let the host write one unit: shares of it hot and cold, each overwritten at its rate meanwhile."""
        while len(self.free) < 2:
            self.collect()
        unit = self.free.pop(0)
        survive = np.exp(-rates)
        self.valid *= survive
        self.valid[unit] = shares * (1 - survive) / rates
        self.full[unit] = True


def hot_and_cold(units: int, op_percent: int, hot_percent: int, hot_writes_percent: int) -> float:
    """Return the write amplification of the model once it does not change any more."""
    sizes = np.array([hot_percent, 100 - hot_percent]) / 100
    shares = np.array([hot_writes_percent, 100 - hot_writes_percent]) / 100
    flash = TwoLogs(units, op_percent, hot_percent / 100)
    for _ in range(32 * units):
        flash.write_unit(shares / sizes / units, shares)
    before = flash.moved
    for _ in range(16 * units):
        flash.write_unit(shares / sizes / units, shares)
    return 1 + (flash.moved - before) / (16 * units)


def test_the_formula_gives_what_its_authors_print() -> None:
    assert round(published(30), 2) == 2.36


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("op_percent", OP_PERCENT)
def test_uniform_random_writes(simulate: Path, op_percent: int, units: int) -> None:
    # There are no parts of units.
    spare = 100 * math.ceil(units * op_percent / 100) / units
    assert measured(simulate, op_percent, units) == pytest.approx(published(spare), rel=0.05)


def test_larger_units_come_closer(simulate: Path) -> None:
    found = [measured(simulate, 15, 1024, unit_pages) for unit_pages in (16, 64, 256)]
    assert found == sorted(found)
    assert found[-1] < published(15)


def test_without_difference_the_model_is_the_formula() -> None:
    assert hot_and_cold(256, 28, 50, 50) == pytest.approx(published(28), rel=0.01)


@pytest.mark.parametrize(("hot_percent", "hot_writes_percent"), [(20, 80), (10, 90)])
@pytest.mark.parametrize("op_percent", [15, 28])
def test_hot_and_cold_pages(
    simulate: Path, op_percent: int, hot_percent: int, hot_writes_percent: int
) -> None:
    expected = hot_and_cold(256, op_percent, hot_percent, hot_writes_percent)
    found = measured(simulate, op_percent, 256, UNIT_PAGES, hot_percent, hot_writes_percent)
    assert found == pytest.approx(expected, rel=0.05)
    # Not what the formula says for writes that are all alike.
    assert found > 1.05 * published(op_percent)
