# SPDX-License-Identifier: GPL-2.0
"""Tests that need the same kernel at the same time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util.lock import exclusive
from tests import built


def test_who_needs_a_kernel_that_is_being_built_waits_for_it(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(
        path=tmp_path / "linux", flavour="stock", version="7.3.4", identity="0", config=tmp_path / "config"
    )

    def build(*_: object) -> Kernel:
        with exclusive(tmp_path / "lock", "building the stock kernel"):
            time.sleep(0.05)
        return kernel

    monkeypatch.setattr(built, "build", build)
    with ThreadPoolExecutor(4) as workers:
        assert list(workers.map(lambda _: built.built("stock", source), range(4))) == [kernel] * 4
