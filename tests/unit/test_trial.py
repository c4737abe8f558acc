# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import io
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from lab.machine import guest
from lab.machine.guest import GuestResult
from lab.probes.clock import trial
from lab.probes.clock.trial import Stamped, Trial
from lab.util.errors import LabError
from lab.util.program import compiled


def program(name: str) -> str:
    return str(compiled(trial.PROGRAMS / f"{name}.c"))


def figures(*command: str, **more: Any) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, **more)
    return str(done.stdout).splitlines()


def stand_in(monkeypatch: pytest.MonkeyPatch, status: int = 0) -> list[dict[str, Any]]:
    """Let the guest be a function that says a few lines, and return how it was called."""
    calls: list[dict[str, Any]] = []

    def run(kernel: Path, command: list[str], *, stream: io.StringIO, **named: Any) -> GuestResult:
        calls.append({"kernel": kernel, "command": command, **named})
        stream.write("begin\n1 ")
        stream.write("2\nend\n")
        return GuestResult(status, "", 1.0, "it said\nno", {"virtual_ns": 5.0})

    monkeypatch.setattr(guest, "run", run)
    return calls


def test_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = stand_in(monkeypatch)
    one = Trial(
        "nap 1; loop 8 1", ("nap", "loop"), fs="xfs", limit_mib=128, quantum_ns=1000, pause=40, mips=500
    )
    found = trial.boot(one, Path("bzImage"))
    assert found.lines == ["begin", "1 2", "end"]
    assert found.figures() == [[1, 2]]
    assert found.clock == {"virtual_ns": 5.0}
    [call] = calls
    assert {name: call[name] for name in ("machine", "cpus", "fs", "quantum_ns", "pause", "mips")} == {
        **{"machine": "smp", "cpus": 8, "fs": "xfs", "quantum_ns": 1000, "pause": 40, "mips": 500},
    }
    assert call["settings"]["/proc/sys/vm/dirty_bytes"] == str(128 << 20)
    assert call["command"][:2] == ["sh", "-ec"]
    # The programs are found by their names.
    assert subprocess.run(["sh", "-ec", call["command"][2].replace("1;", "0;")], check=False).returncode == 0


def test_trial_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, 3)
    with pytest.raises(LabError, match="stock kernel, smp, 8 CPUs, none: status 3: it said no"):
        trial.boot(Trial("true"), Path("bzImage"))


def test_lines_are_stamped_when_they_are_whole() -> None:
    times = iter([100.0, 101.0, 102.5])
    said = Stamped(clock=lambda: next(times))
    said.write("beg")
    said.write("in\nend\nmore")
    assert said.lines == ["begin", "end"]
    assert said.at_s == [2.5, 2.5]


def test_load_is_there_only_meanwhile() -> None:
    def loops() -> int:
        text = "".join(figures("ps", "-o", "args=", "--ppid", str(os.getpid())))
        return text.count(trial.NOISE)

    with trial.load(True):
        # For a moment a process that becomes another program has no arguments.
        wanted = trial.LOOPS_PER_CORE * len(os.sched_getaffinity(0))
        while loops() != wanted:
            time.sleep(0.01)
    assert loops() == 0
    with trial.load(False):
        assert loops() == 0


def test_loop_says_what_each_cpu_took() -> None:
    lines = figures(program("loop"), "2000", "1")
    assert lines[:2] == ["begin", "end"]
    assert len(lines) == 3
    assert int(lines[2]) > 0


@pytest.mark.parametrize("kind", ["round", "ticket", "spin"])
def test_lock_goes_round(kind: str) -> None:
    [ns] = figures(program("handover"), kind, "1", "1000")
    # 200 instructions with the lock and 200 without it.
    assert float(ns) > 10


def test_nap_is_not_shorter() -> None:
    [ns] = figures(program("nap"), "0")
    assert int(ns) >= 0


def test_pages_are_counted(tmp_path: Path) -> None:
    device = tmp_path / "device"
    device.write_bytes(bytes(16 << 20))
    [rate] = figures(program("pages"), str(device), "2", "20")
    assert float(rate) > 0


def test_overwrite_measures_each_value(tmp_path: Path) -> None:
    (tmp_path / "knob").write_text("")
    command = [
        program("overwrite"),
        "1",
        "1",
        "0",
        "10",
        str(tmp_path / "knob"),
        "1",
        "8",
    ]
    lines = figures(*command, cwd=tmp_path)
    assert [lines[at] for at in (0, 1, 3, 4)] == ["begin", "end"] * 2
    assert [len(lines[at].split()) for at in (2, 5)] == [10, 10]
    assert (tmp_path / "knob").read_text() == "8"
    assert (tmp_path / "job.0" / "file").stat().st_size == 1 << 20


@pytest.mark.parametrize("name", ["loop", "handover", "nap", "pages", "overwrite"])
def test_wrong_usage(name: str) -> None:
    done = subprocess.run([program(name)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: {name} ")
