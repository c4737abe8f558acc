# SPDX-License-Identifier: GPL-2.0
"""What contexts cost: figures of scripts in guests, side by side."""

from __future__ import annotations

import pandas as pd

from lab.probes.costs.probe import SCRIPTS, Costs, Recorded
from lab.probes.probe import Row

PROBE = Costs(8)


def test_every_script_runs_on_stock_twice_and_with_one_and_many_contexts() -> None:
    boots = PROBE.boots()
    usual = [("stock", 1), ("stock", 1), ("parallel", 1), ("parallel", 8)]
    found = [(boot.kernel, boot.axes["contexts"]) for boot in boots]
    assert found == usual * len(SCRIPTS) + [("parallel", 64)]
    assert [boot.arguments for boot in boots if boot.script.endswith("sync")] == [
        ("1",),
        ("1",),
        ("1",),
        ("8",),
    ]
    assert len({boot.name for boot in boots}) == len(boots)


def test_64_contexts_are_compared_with_a_stock_of_as_many_possible_cpus() -> None:
    most = [boot for boot in PROBE.boots() if "beside" in boot.name]
    assert [boot.axes["contexts"] for boot in most] == [1, 1, 1, 8, 64]
    assert {boot.options["possible_cpus"] for boot in most} == {16}
    assert most[-1].options["settings"]["nwritebacks"] == "64"


def test_every_figure_is_a_multiple_of_stocks() -> None:
    rows: list[Row] = []
    for boot in PROBE.boots():
        noise = 1.01 if boot.axes["kernel"] == "stock again" else 1.0
        record = Recorded({f"what {boot.script} costs": 100.0 * noise * float(boot.axes["contexts"] or 0)})
        rows += [boot.axes | row for row in PROBE.rows(boot, record)]
    head, _, first, *_ = PROBE.table(pd.DataFrame(rows).drop_duplicates()).splitlines()
    assert head == "| cost of | unit | stock | stock again | 1 context | 8 contexts | 64 contexts |"
    costs = "100 | 101 (1.01 x) | 100 (1.00 x) | 800 (8.00 x) | -"
    assert first == f"| what lab.probes.costs.device costs | bytes | {costs} |"


def test_table_of_a_result_without_the_second_boot_of_stock() -> None:
    rows: list[Row] = []
    for boot in PROBE.boots():
        if boot.axes["kernel"] != "stock again":
            rows += [boot.axes | row for row in PROBE.rows(boot, Recorded({boot.script: 100.0}))]
    head, *_ = PROBE.table(pd.DataFrame(rows).drop_duplicates()).splitlines()
    assert head == "| cost of | unit | stock | 1 context | 8 contexts | 64 contexts |"
