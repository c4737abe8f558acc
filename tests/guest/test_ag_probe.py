# SPDX-License-Identifier: GPL-2.0
"""The questions about AG-aware writeback that one boot answers, in as few rounds as there can be."""

from __future__ import annotations

import io
import re

import pytest

from lab.probes import ag
from lab.tree.build import Kernel

pytestmark = pytest.mark.guest


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("extents", r"\| `(off|ag-hint|rotor)` \| \d+ \| \d+ \| \d+ \| -?\d\.\d\d \|"),
        pytest.param(
            "costs",
            r"\| (sequential|small files|fsync|mmap) \| `(ag-hint|rotor|generic)` \| .* ± .* \|",
            marks=pytest.mark.long,
        ),
    ],
    ids=["extents", "costs"],
)
def test_a_question_is_answered_by_a_table(uml_debug_kernel: Kernel, question: str, row: str) -> None:
    said = io.StringIO()
    ag.measure(uml_debug_kernel, question, 2, 2, said)
    _, _, *rows = said.getvalue().splitlines()
    assert len(rows) == {"extents": 3, "costs": 12}[question]
    assert all(re.fullmatch(row, line) for line in rows), rows
