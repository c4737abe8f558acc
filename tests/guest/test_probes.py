# SPDX-License-Identifier: GPL-2.0
"""Every script that a probe runs in a guest, booted once in its smallest form, and its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lab.probes import runner
from lab.probes.ag.probe import AgCosts, AgExtents
from lab.probes.changes.probe import Changes
from lab.probes.costs.probe import Costs
from lab.probes.endurance.probe import Endurance
from lab.probes.isolation.probe import Isolation
from lab.probes.pauses.probe import Pauses
from lab.probes.probe import Boot, Probe
from lab.probes.waits.probe import Waits
from lab.tree.build import Kernel, build
from lab.tree.source import Source

# Each boots kernels that no other test does, or takes minutes.
pytestmark = [pytest.mark.guest, pytest.mark.long]

PROBES: list[Probe[Any]] = [
    Isolation(),
    AgExtents("uml", 2, 2),
    AgCosts("uml", 2, 2),
    Changes(("xfs",), "brd", 2, 128),
    Costs(2),
    Endurance(("xfs",), 0.001),
    Pauses("xfs", 256, 2),
    Waits("xfs", (2,), ("fs",), ("apart", "full")),
]


def boots_of(probe: Probe[Any]) -> list[Boot]:
    """Return each script once, on the last setting that it is run with."""
    return [*{boot.script: boot for boot in probe.boots()}.values()]


@pytest.fixture
def kernels(probe: Probe[Any], kernel_source: Source) -> dict[str, Kernel]:
    """Build what a probe boots ahead of the test, whose time is bounded: it may wait for a package."""
    return {boot.kernel: build(boot.kernel, kernel_source, probe.machine) for boot in boots_of(probe)}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_probe_has_a_table(probe: Probe[Any], kernels: dict[str, Kernel], tmp_path: Path) -> None:
    boots = boots_of(probe)
    rows = []
    for boot in boots:
        record = runner.record(probe, boot, kernels[boot.kernel], tmp_path / boot.name)
        rows += [boot.axes | row for row in probe.rows(boot, record)]
    runs = pd.DataFrame(rows)
    assert len(runs) >= len(boots)
    if probe.name != Costs.name:
        # Of costs only a part of the settings was run, of which there is no table.
        assert len(probe.table(runs).splitlines()) > 2
