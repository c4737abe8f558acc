# SPDX-License-Identifier: GPL-2.0
"""Figures in the docs are those of the results that lie beside them."""

from __future__ import annotations

import json
import re

import pytest

from lab.result import report, results
from lab.result.results import Cell
from lab.util.paths import REPO

DOCS = REPO / "docs"
NAMES = {"xfs": "XFS", "ext4": "ext4", "f2fs": "F2FS"}
# Results of a bench; what the probes leave has no such file.
MEASURED = sorted(path.parent.relative_to(DOCS).as_posix() for path in DOCS.rglob("meta.json"))


def headline() -> list[Cell]:
    return results.read(DOCS / "headline")[0]


def readme_row(fs: str, limit: int) -> str:
    """Return the line of the README's table for a filesystem and a dirty limit."""
    cells = {
        (cell.variant, cell.contexts): cell
        for cell in headline()
        if cell.fs == fs and cell.dirty_limit_mib in (limit, None)
    }
    stock = cells["stock", 1].mib_s.median
    ours = [cells["parallel", contexts] for contexts in (1, 2, 4, 8)]
    ratios = [
        f"{cell.mib_s.median / stock:.2f} x" for cell in [*ours, cells["bdis", None], cells["direct", None]]
    ]
    return f"| {NAMES[fs]} | {limit} MiB | {stock:.0f} | {' | '.join(ratios)} |"


@pytest.mark.parametrize("fs", NAMES)
@pytest.mark.parametrize("limit", [128, 1024])
def test_readme_has_the_figures_of_the_headline(fs: str, limit: int) -> None:
    readme = (REPO / "README.md").read_text(encoding="utf-8")
    assert readme_row(fs, limit) in readme


@pytest.mark.parametrize("folder", MEASURED)
def test_table_is_made_of_the_result_beside_it(folder: str) -> None:
    cells, meta = results.read(DOCS / folder)
    text = (DOCS / folder / "table.md").read_text(encoding="utf-8")
    rows = [f"| {' | '.join(report.row(cell))} |" for cell in cells]
    assert [row for row in rows if row not in text] == []
    assert re.fullmatch(r"[0-9a-f]{32}", meta["kernels"]["parallel"]["identity"])


def test_page_on_scaling_has_the_figures_of_the_full_headline() -> None:
    listed = json.loads((DOCS / "headline" / "full.json").read_text(encoding="utf-8"))
    cells = [Cell.model_validate(one) for one in listed]
    text = (DOCS / "scaling.md").read_text(encoding="utf-8")
    rates: dict[tuple[str, int | None, int], dict[str, float]] = {}
    for cell in cells:
        if cell.device == "brd" and (cell.variant == "stock" or cell.contexts == cell.cpus):
            rates.setdefault((cell.fs, cell.dirty_limit_mib, cell.cpus), {})[cell.variant] = cell.mib_s.median
    for (fs, limit, _), of in rates.items():
        if {"stock", "parallel"} <= set(of):
            ratio = of["parallel"] / of["stock"]
            found = f"{of['stock']:.0f} / {of['parallel']:.0f} ({ratio:.2f} x)"
            [line] = [line for line in text.splitlines() if line.startswith(f"| {NAMES[fs]} | {limit} MiB |")]
            assert found in line
