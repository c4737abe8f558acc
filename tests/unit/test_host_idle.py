# SPDX-License-Identifier: GPL-2.0
"""CPUs of the host that do not sleep while a guest runs."""

from __future__ import annotations

import os
from pathlib import Path

from lab.machine import host_idle


def test_latency_is_asked_for_while_the_block_runs(tmp_path: Path) -> None:
    latency = tmp_path / "cpu_dma_latency"
    latency.touch()
    before = os.listdir("/proc/self/fd")
    with host_idle.awake(latency) as is_awake:
        assert is_awake
        assert latency.read_bytes() == bytes(4)
        assert str(latency) in {os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")}
    assert os.listdir("/proc/self/fd") == before


def test_who_may_not_ask_goes_on(tmp_path: Path) -> None:
    with host_idle.awake(tmp_path / "none") as is_awake:
        assert not is_awake
