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
from lab.probes.isolation.probe import Isolation
from lab.probes.pauses.probe import Pauses
from lab.probes.probe import Probe
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
    Pauses("xfs", 256, 2),
    Waits("xfs", (2,), ("fs",), ("apart", "full")),
]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_probe_has_a_table(probe: Probe[Any], kernel_source: Source, tmp_path: Path) -> None:
    # Each script once, on the last setting that it is run with.
    boots = {boot.script: boot for boot in probe.boots()}
    rows = []
    for boot in boots.values():
        kernel: Kernel = build(boot.kernel, kernel_source, probe.machine)
        record = runner.record(probe, boot, kernel, tmp_path / boot.name)
        rows += [boot.axes | row for row in probe.rows(boot, record)]
    runs = pd.DataFrame(rows)
    assert len(runs) >= len(boots)
    if probe.name != Costs.name:
        # Of costs only a part of the settings was run, of which there is no table.
        assert len(probe.table(runs).splitlines()) > 2
