# SPDX-License-Identifier: GPL-2.0
"""What contexts cost: figures of scripts in guests, side by side."""

from __future__ import annotations

import json
from pathlib import Path

from lab.probes import costs
from lab.tree.build import Kernel

STOCK, PARALLEL = (
    Kernel(Path(name), name, "7.3.4", "i", Path("config"), "smp") for name in ("stock", "parallel")
)


def run(kernel: Kernel, probe: costs.Probe, contexts: int | None) -> str:
    assert (kernel is STOCK) == (contexts is None)
    return f"a word first\n{json.dumps({f'{probe.script} {probe.arguments}': 100.0 * (contexts or 1)})}\n"


def test_every_figure_is_a_multiple_of_stocks(tmp_path: Path) -> None:
    found = costs.measure(STOCK, PARALLEL, [1, 8], run)
    assert len(found) == len(costs.PROBES)
    costs.keep(found, tmp_path)
    head, _, first, *_ = (tmp_path / costs.TABLE).read_text().splitlines()
    assert head == "| | unit | stock | 1 context | 8 contexts |"
    assert first == "| cost_device.py () | bytes | 100 | 100 (1.00 x) | 800 (8.00 x) |"
    assert [one["contexts"] for one in json.loads((tmp_path / costs.JSON).read_text())] == [
        {"1": 100, "8": 800}
    ] * len(found)
