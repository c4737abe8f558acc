# SPDX-License-Identifier: GPL-2.0
"""Every script that a probe runs in a guest, booted once in its smallest form, and its table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lab.probes import runner
from lab.probes.ag.probe import AgCosts, AgExtents
from lab.probes.amplification.probe import Amplification
from lab.probes.changes.probe import Changes
from lab.probes.clock import probe as clock
from lab.probes.clock import trial
from lab.probes.clock.trial import Trial
from lab.probes.costs.probe import Costs
from lab.probes.endurance.probe import Endurance
from lab.probes.isolation.probe import Isolation
from lab.probes.pauses.probe import Pauses
from lab.probes.probe import Boot, Probe
from lab.probes.waits.probe import Waits
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util.paths import REPO
from tests.built import built

#: Each boots kernels that no other test does, or takes minutes.
BOOTS = [pytest.mark.guest, pytest.mark.long]

PROBES: list[Probe[Any]] = [
    Isolation(),
    AgExtents("uml", 2, 2),
    AgCosts("uml", 2, 2),
    Amplification(repetitions=1, records=4000, operations=4000),
    Changes(("xfs",), "brd", 2, 128),
    Costs(2),
    Endurance(("xfs",), 0.001),
    Pauses("xfs", 256, 2),
    Waits("xfs", (2,), ("fs",), ("apart", "full")),
]
# Of a few of their settings, or of one, there is no table.
WITHOUT_TABLE = (Amplification.name, Costs.name)
# It has trials, not boots and records. One is on no filesystem: `pages` writes to the device itself.
CLOCK = [
    Trial(
        "loop 1000000 1; nap 1; handover round 2 100; pages $PWB_DEV 1 10",
        ("loop", "nap", "handover", "pages"),
        cpus=2,
        device="one-channel",
    ),
    Trial("overwrite 2 16 20 100 - -", ("overwrite",), cpus=2, fs="xfs", device_mib=512, limit_mib=16),
]


def boots_of(probe: Probe[Any]) -> list[Boot]:
    """Return each script once, on the last setting that it is run with."""
    return [*{boot.script: boot for boot in probe.boots()}.values()]


@pytest.fixture
def kernels(probe: Probe[Any], kernel_source: Source) -> dict[str, Kernel]:
    """Build what a probe boots ahead of the test, whose time is bounded: it may wait for a package."""
    return {boot.kernel: built(boot.kernel, kernel_source, probe.machine) for boot in boots_of(probe)}


def test_every_probe_is_here() -> None:
    folders = {path.parent.name for path in (REPO / "lab" / "probes").glob("*/probe.py")}
    assert {type(probe).__module__.split(".")[-2] for probe in PROBES} | {clock.NAME} == folders
    programs = [program for one in CLOCK for program in one.programs]
    assert sorted(programs) == sorted(path.stem for path in trial.PROGRAMS.glob("*.c"))


@pytest.mark.parametrize("probe", [pytest.param(probe, marks=BOOTS, id=probe.name) for probe in PROBES])
def test_probe_has_a_table(probe: Probe[Any], kernels: dict[str, Kernel], tmp_path: Path) -> None:
    boots = boots_of(probe)
    probe.prepare()
    rows = []
    for boot in boots:
        record = runner.record(probe, boot, kernels[boot.kernel], tmp_path / boot.name)
        rows += [boot.axes | row for row in probe.rows(boot, record)]
    runs = pd.DataFrame(rows)
    assert len(runs) >= len(boots)
    if probe.name not in WITHOUT_TABLE:
        assert len(probe.table(runs).splitlines()) > 2


@pytest.mark.parametrize("asked", [pytest.param(one, marks=BOOTS, id=one.programs[0]) for one in CLOCK])
def test_programs_of_the_clock_have_figures(asked: Trial, smp_stock_kernel: Kernel) -> None:
    figures = trial.boot(asked, smp_stock_kernel.path).figures()
    assert len(figures) == len(asked.programs)
    assert all(sum(line) > 0 for line in figures)
