# SPDX-License-Identifier: GPL-2.0
"""Schedules: what each seed boots, what is said of it, and the table of what was found."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab import cli
from lab.bench import cluster
from lab.machine import smp
from lab.machine.guest import GuestResult
from lab.machine.hardware import Hardware
from lab.machine.process import Start
from lab.machine.qemu import Qemu
from lab.proof import places, schedules
from lab.proof.schedules import Job, Outcome
from lab.result import provenance
from lab.tree import build
from lab.tree import source as sources
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util.errors import GuestError, LabError
from tests.unit.test_cluster import LOST, of_others
from tests.unit.test_cuts import Crew, no_room

FOUND = Outcome(
    load="resize",
    fs="xfs",
    kernel="debug",
    cpus=8,
    seed=3,
    stalls=1500,
    stalled_s=0.75,
    guest_s=6.0,
    host_s=180.0,
    found="",
)
JOB = Job(Path("/kernel"), "debug", 8, "workers", 4, Path("/places"))


def kernel(symbols: Path | None) -> Kernel:
    return Kernel(
        Path("/kernel"), "debug", "7.3.4", "i", Path("config"), "smp" if symbols else "uml", symbols
    )


def test_each_load_has_each_seed(source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path))
    monkeypatch.setattr(places, "write", lambda path, symbols, source: path.write_text("places"))
    with schedules.jobs(kernel(Path("map")), source, ["sync", "resize"], cpus=4, seeds=range(6, 8)) as wanted:
        made = [(job.seed, job.load, job.fs) for job in wanted]
        assert made == [(6, "sync", "xfs"), (6, "resize", "xfs"), (7, "sync", "ext4"), (7, "resize", "ext4")]
        assert {job.places.read_text() for job in wanted} == {"places"}
        # Workers of a cluster need not see other folders.
        assert wanted[0].places.is_relative_to(tmp_path)
    assert not wanted[0].places.exists()


def test_kernel_of_another_machine_is_refused(source: Source) -> None:
    with (
        pytest.raises(LabError, match="expected a kernel for it, not for uml"),
        schedules.jobs(kernel(None), source, ["sync"], cpus=4, seeds=[1]),
    ):
        pass


def run_as(monkeypatch: pytest.MonkeyPatch, result: GuestResult | GuestError) -> dict[str, Any]:
    """Have guests end so; return what the last one was asked for."""
    asked: dict[str, Any] = {}

    def run(kernel: Path, command: list[str], **settings: Any) -> GuestResult:
        asked.update(settings, command=command)
        if isinstance(result, GuestError):
            raise result
        return result

    monkeypatch.setattr("lab.machine.guest.run", run)
    return asked


def test_a_boot_stalls_by_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"stalls": 12.0, "stalled_ns": 5e6, "virtual_ns": 7e9}
    asked = run_as(monkeypatch, GuestResult(0, "", 1.0, "fine", clock))
    outcome = schedules.boot(JOB)
    assert asked["stalls"] == smp.Stalls(Path("/places"), 4)
    assert asked["lanes"] == 1
    script = asked["command"][-1]
    assert "echo 8 > $PWB_BDI/wb_workers\n" in script
    assert script.endswith("-m tests.guest.syncproof ext4 2 --quick")
    assert (outcome.stalls, outcome.stalled_s, outcome.guest_s, outcome.found) == (12, 0.005, 7.0, "")
    schedules.boot(JOB, stalls=False)
    assert asked["stalls"] is None


def test_what_fails_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run_as(monkeypatch, GuestResult(1, "", 1.0, "page 7 is lost"))
    assert "page 7 is lost" in schedules.boot(JOB).found
    run_as(monkeypatch, GuestError("the guest kernel reported: lockdep"))
    assert schedules.boot(JOB).found == "the guest kernel reported: lockdep"


def test_a_line_says_how_to_do_it_again() -> None:
    assert FOUND.line == "resize, xfs, 8 CPUs, seed 3: 1,500 stalls, 0.8 s, nothing found (3 min 0 s)"
    line = replace(FOUND, found="lost").line
    assert "FOUND" in line
    assert "./pwb schedules --load resize --seed 3 --seeds 1 --cpus 8\nlost" in line


def test_outcomes_come_together_in_a_table(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "debug", "7.3.4", "i", config, "smp")
    schedules.keep([FOUND], kernel, tmp_path)
    schedules.keep([replace(FOUND, stalls=2000), replace(FOUND, seed=4, found="lost")], kernel, tmp_path)
    schedules.keep([replace(FOUND, load="sync")], kernel, tmp_path)
    assert (tmp_path / provenance.TABLE).read_text().splitlines()[2:] == [
        "| debug | resize | 3 to 4 | 8 | 2 | 3,500 | 2 | 12 | 0.10 | 1 |",
        "| debug | sync | 3 to 3 | 8 | 1 | 1,500 | 1 | 6 | 0.05 | 0 |",
    ]
    assert len(json.loads((tmp_path / provenance.SUMMARY).read_text())) == 3


def test_what_a_seed_has_found_is_there_when_it_finds_nothing_later(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "debug", "7.3.4", "i", config, "smp")
    for found in ("lost", "", ""):
        schedules.keep([replace(FOUND, found=found)], kernel, tmp_path)
    assert (tmp_path / provenance.TABLE).read_text().splitlines()[2:] == [
        "| debug | resize | 3 to 3 | 8 | 2 | 3,000 | 2 | 12 | 0.10 | 1 |"
    ]


def test_machine_is_told_places_and_seed(tmp_path: Path) -> None:
    start = Start(Path("/kernel"), [], "/init", "/run", None, 1024, 4, 4, 5, 6, terminal=False)
    qemu = Qemu(tmp_path / "qemu", "10.0.2")

    def command(stalls: smp.Stalls | None) -> list[str]:
        clock = smp.Clock(tmp_path / "vtime.so", 1000, 2000, 140, 1, 3, None, stalls)
        return smp.Smp(qemu, clock).command(start)

    stalling = command(smp.Stalls(Path("/pla,ces"), 17))
    assert any(",stalls=/pla,,ces,seed=17" in word for word in stalling)
    assert stalling[stalling.index("-seed") + 1] == "17"
    assert not [word for word in command(None) if "seed=" in word or word == "-seed" or "stalls=" in word]


@pytest.mark.parametrize(("machine", "clock"), [("uml", "virtual"), ("smp", "host")])
def test_stalls_without_virtual_time_are_refused(machine: str, clock: str) -> None:
    with pytest.raises(LabError, match="CPUs stall in virtual time"):
        Hardware(machine=machine, clock=clock, stalls=smp.Stalls(Path("places"), 1))


def test_when_an_outcome_cannot_be_kept_guests_are_ended_at_once() -> None:
    crew: Any = Crew()
    # Whoever keeps the error keeps what it came through.
    with pytest.raises(OSError, match="no room left") as kept:
        schedules.run([], no_room, crew)
    assert crew.is_over
    assert kept.value.__traceback__


def test_without_a_cluster_guests_run_side_by_side_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def local(count: int, runner: Any, *, own_cores: bool) -> Any:
        asked.append((count, own_cores))
        return contextlib.nullcontext(SimpleNamespace(each=lambda *_, **__: (one for one in [FOUND])))

    monkeypatch.setattr(cluster, "places", lambda mem_mib, boots: boots)
    monkeypatch.setattr(cluster, "local", local)
    taken: list[Outcome] = []
    schedules.run([JOB, replace(JOB, seed=5)], taken.append)
    assert asked == [(2, True)]
    assert taken == [FOUND]


def ends_scheduler(kernel: Path, command: list[str], *, stalls: smp.Stalls, **_: Any) -> GuestResult:
    """Be a guest that finds nothing; of the second seed on, end the process once the first one was kept."""
    if stalls.seed > 1:
        while not Path(os.environ["PWB_TEST_KEPT"]).exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    return GuestResult(0, "", 1.0, "fine", {"stalls": len(stalls.places.read_text())})


SETUP = """
from lab.machine import guest
from tests.unit.test_schedules import ends_scheduler
guest.run = ends_scheduler
"""


def test_cluster_of_others_runs_schedules_until_it_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.write_text("")
    debug = Kernel(Path("/kernel"), "debug", "7.3.4", "i", config, "smp", Path("map"))
    monkeypatch.setattr(sources, "fetch", lambda: None)
    monkeypatch.setattr(build, "build", lambda *_: debug)
    monkeypatch.setattr(places, "write", lambda path, symbols, source: path.write_text("places"))
    monkeypatch.setenv("PWB_CACHE", str(tmp_path))
    monkeypatch.setenv("PWB_TEST_KEPT", str(tmp_path / provenance.TABLE))
    asked = ["schedules", "--load", "sync", "--output", str(tmp_path)]
    with of_others(tmp_path, SETUP) as (address, _):
        assert cli._run([*asked, "--seeds", "1", "--scheduler", address]) == 0
        assert "sync, ext4, 8 CPUs, seed 1: 6 stalls, 0.0 s, nothing found" in capfd.readouterr().out
        (tmp_path / provenance.TABLE).unlink()
        assert cli._run([*asked, "--seeds", "3", "--scheduler", address]) == 1
    said = capfd.readouterr()
    assert said.err.startswith(f"pwb: error: {LOST.format(address=address)}")
    assert said.err.count("\n") == 1
    rows = json.loads((tmp_path / provenance.SUMMARY).read_text())
    assert [row["seed"] for row in rows] == [1]
