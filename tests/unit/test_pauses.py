# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.machine import guest
from lab.machine.guest import GuestResult
from lab.probes import pauses
from lab.tree.build import Kernel
from lab.util.errors import LabError

KERNEL = Kernel(Path("linux"), "parallel", "7.3", "key", Path("config"))
RECORD = '{"dirty": [[0.0, 1.5], [0.05, 90.0]], "pauses": [[[0.01, 0.2]], []]}'


def stand_in(monkeypatch: pytest.MonkeyPatch, status: int) -> list[dict[str, Any]]:
    """Let the guest be a function that leaves a record, and return how it was called."""
    calls: list[dict[str, Any]] = []

    def run(kernel: Path, command: list[str], **named: Any) -> GuestResult:
        calls.append({"command": command, **named})
        (named["results"] / "pauses.json").write_text(RECORD)
        return GuestResult(status, "", 1.0, "a writer failed\n")

    monkeypatch.setattr(guest, "run", run)
    return calls


def test_record(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(monkeypatch, 0)
    found = pauses.record(KERNEL, "ext4", 256, 4)
    assert found.dirty == [(0.0, 1.5), (0.05, 90.0)]
    assert found.pauses == [[(0.01, 0.2)], []]
    assert calls[0]["command"][1:] == [str(pauses.LOAD), "256"]
    assert calls[0]["settings"] == {"nwritebacks": "4"}


def test_writers_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 1)
    with pytest.raises(LabError, match="the writers failed on the parallel kernel: a writer failed"):
        pauses.record(KERNEL, "ext4", 256, None)


def test_draw(tmp_path: Path) -> None:
    one = pauses.Pauses.model_validate_json(RECORD)
    pauses.draw({"stock": one, "2 contexts": one}, "title", tmp_path / "pauses.png")
    assert (tmp_path / "pauses.png").read_bytes().startswith(b"\x89PNG")
