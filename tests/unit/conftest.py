# SPDX-License-Identifier: GPL-2.0
"""What all unit tests share."""

from __future__ import annotations

import pytest

from lab.util import lock


@pytest.fixture(autouse=True)
def machine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let tests hold a machine of their own: on this one something may be measured, or another test run."""
    monkeypatch.setattr(lock, "cache_dir", tmp_path_factory.getbasetemp)
