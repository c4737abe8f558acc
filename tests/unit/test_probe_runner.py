# SPDX-License-Identifier: GPL-2.0
"""The runner of probes, with guests that are functions: what is booted, and what a result holds."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guest import record
from lab.machine import guest, guest_memory
from lab.machine.guest import GuestResult
from lab.probes import runner
from lab.probes.pauses.probe import GUEST_MEM_MIB, Pauses
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.lock import whole_machine

RECORD = '{"dirty": [[0.0, 1.5], [0.05, 90.5]], "pauses": [[[0.01, 0.2]], []]}'
PROBE = Pauses("ext4", 256, 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "config").write_text("CONFIG_A=y\n")
    return tmp_path / "results"


def kernel(flavour: str, folder: Path) -> Kernel:
    return Kernel(Path("linux"), flavour, "7.3", f"key of {flavour}", folder.parent / "config")


def stand_in(monkeypatch: pytest.MonkeyPatch, status: int = 0) -> list[dict[str, Any]]:
    """Let the guest be a function that leaves a record, and return how it was called."""
    calls: list[dict[str, Any]] = []

    def run(kernel: Path, command: list[str], **named: Any) -> GuestResult:
        calls.append({"command": command, **named})
        if not status:
            (named["results"] / record.NAME).write_text(RECORD)
        return GuestResult(status, "", 1.0, "a writer failed\n")

    monkeypatch.setattr(guest, "run", run)
    monkeypatch.setattr(guest_memory, "filled", lambda mib: nullcontext(f"{mib} MiB"))
    return calls


def test_result_has_a_row_for_each_guest_and_says_what_it_was_made_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(monkeypatch)
    runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    assert [call["command"][-3:] for call in calls] == [["-m", "lab.probes.pauses.in_guest", "256"]] * 2
    assert [call["settings"] for call in calls] == [{}, {"nwritebacks": "4"}]
    rows = json.loads((folder / "summary.json").read_text())
    assert [(row["kernel"], row["contexts"], row["pauses"], row["dirty_mean_mib"]) for row in rows] == [
        ("stock", 1, 1, 46.0),
        ("parallel", 4, 1, 46.0),
    ]
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["view"] == "pauses"
    assert {name: one["identity"] for name, one in meta["kernels"].items()} == {
        "stock": "key of stock",
        "parallel": "key of parallel",
    }
    assert "| parallel | 4 | ext4 | 256 | 1 | 200.0 | 200 | 46 |" in (folder / "table.md").read_text()
    assert (folder / "pauses.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "raw" / "stock" / record.NAME).read_text()) == json.loads(RECORD)


def test_guests_that_the_host_times_find_their_memory_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in(monkeypatch)
    runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    assert [call["memory"] for call in calls] == [f"{GUEST_MEM_MIB} MiB"] * 2


def test_script_that_fails_is_an_error_with_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, status=1)
    with pytest.raises(LabError, match=r"pauses, stock: .*in_guest failed with status 1: a writer failed"):
        runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)


def test_result_that_must_not_be_is_written_and_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    monkeypatch.setattr(Pauses, "objections", lambda _, records: [f"{name} is wrong" for name in records])
    with pytest.raises(LabError, match=r"pauses: stock is wrong; parallel is wrong \(the result is in "):
        runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    assert (folder / "table.md").exists()


def test_result_stays_whole_when_the_next_run_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    run, calls = guest.run, []

    def fails_second(*arguments: Any, **named: Any) -> GuestResult:
        calls.append(named)
        done = run(*arguments, **named)
        (named["results"] / record.NAME).write_text("{}" if len(calls) > 1 else RECORD)
        return replace(done, status=1) if len(calls) > 1 else done

    monkeypatch.setattr(guest, "run", fails_second)
    with pytest.raises(LabError, match="failed with status 1"):
        runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    left = folder / runner.INCOMPLETE
    assert (left / "stock" / record.NAME).exists()
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {path: text for path, text in after.items() if left not in path.parents} == before
    # The next one that ends takes its place.
    stand_in(monkeypatch)
    runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)
    assert not left.exists()


def test_record_of_an_earlier_run_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    monkeypatch.setattr(guest, "run", lambda *_, **__: GuestResult(0, "", 1.0, ""))
    old = folder / "stock" / record.NAME
    old.parent.mkdir(parents=True)
    old.write_text(RECORD)
    with pytest.raises(FileNotFoundError):
        runner.record(PROBE, PROBE.boots()[0], kernel("stock", folder), old.parent)


def test_probe_waits_for_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    with whole_machine("measuring headline"), pytest.raises(LabError, match="is measuring headline"):
        runner.measure(PROBE, lambda flavour: kernel(flavour, folder), folder)


def test_what_a_script_leaves_is_what_the_host_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWB_RESULTS", str(tmp_path))
    record.leave({"a": [1, 2]})
    assert json.loads((tmp_path / record.NAME).read_text()) == {"a": [1, 2]}
