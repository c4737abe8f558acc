# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.machine import guest
from lab.machine.guest import GuestResult
from lab.probes import changes
from lab.tree.build import Kernel
from lab.util.errors import LabError

KERNEL = Kernel(Path("bzImage"), "parallel", "7.3", "key", Path("config"))
RECORD = '{"parts": [[0.0, "4 files"], [2.5, "nothing"]], "samples": [[0.5, 1, 0], [1.0, 2, 51200]]}'


def stand_in(monkeypatch: pytest.MonkeyPatch, status: int) -> list[dict[str, Any]]:
    """Let the guest be a function that leaves a record, and return how it was called."""
    calls: list[dict[str, Any]] = []

    def run(kernel: Path, command: list[str], **named: Any) -> GuestResult:
        calls.append({"command": command, **named})
        (named["results"] / "changes.json").write_text(RECORD)
        return GuestResult(status, "", 1.0, "fio failed\n")

    monkeypatch.setattr(guest, "run", run)
    return calls


def test_record(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(monkeypatch, 0)
    found = changes.record(KERNEL, "xfs", "brd", 8, 128)
    assert found.rates == [(1.0, 100.0)]
    assert calls[0]["command"][1:] == [str(changes.LOAD), "128", "8"]
    assert (calls[0]["machine"], calls[0]["settings"]) == ("smp", {"nwritebacks": "auto"})


@pytest.mark.parametrize(
    ("fs", "device", "cpus", "words"),
    [
        ("xfz", "brd", 8, "xfz"),
        ("xfs", "brdd", 8, "unknown device 'brdd'"),
        ("xfs", "brd", 65, "65 guest CPUs"),
    ],
)
def test_what_there_is_not_is_refused_ahead_of_a_build(fs: str, device: str, cpus: int, words: str) -> None:
    with pytest.raises(LabError, match=words):
        changes.check(fs, device, cpus)


def test_load_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 1)
    with pytest.raises(LabError, match="the load failed: fio failed"):
        changes.record(KERNEL, "xfs", "brd", 8, 128)


def test_draw(tmp_path: Path) -> None:
    one = changes.Changes.model_validate_json(RECORD)
    changes.draw({"xfs": one, "ext4": one}, "title", tmp_path / "changes.png")
    assert (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")
