# SPDX-License-Identifier: GPL-2.0
"""Write amplification of RocksDB: a small run on flash, with each placement."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.probes import runner
from lab.probes.amplification.probe import PLACEMENTS, Amplification
from lab.tree.build import Kernel

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("name", PLACEMENTS)
def test_rocksdb_writes_to_flash(uml_debug_kernel: Kernel, name: str, tmp_path: Path) -> None:
    probe = Amplification(repetitions=1, records=4000, operations=4000)
    probe.prepare()
    [boot] = [boot for boot in probe.boots() if boot.axes["placement"] == name]
    found = runner.record(probe, boot, uml_debug_kernel, tmp_path)
    assert [done for done, _, _ in found.samples] == list(range(0, 4001, 100))
    _, host, media = found.samples[-1]
    assert 0 < host <= media
