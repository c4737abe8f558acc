# SPDX-License-Identifier: GPL-2.0
"""Kernel settings that the guest reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from guest import settings


@pytest.mark.parametrize(("text", "number"), [("3\n", 3), ("auto (12)\n", 12), (None, None)])
def test_number_of_contexts(tmp_path: Path, text: str | None, number: int | None) -> None:
    if text:
        (tmp_path / "nwritebacks").write_text(text)
    assert settings.contexts_in_use(tmp_path) == number
