# SPDX-License-Identifier: GPL-2.0
"""./field on a made-up server: it stays in its place, puts everything back, refuses what is wrong."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.experiment import fiojob
from lab.field import campaign, command, job, place, signals, trial, undo
from lab.field.place import Place
from lab.util.errors import LabError
from lab.util.paths import REPO
from tests.server import SERIAL, Server, hurry, write

# ./field in a process of its own, on the made-up server; its pid is that of the test's child.
PROCESS = """
import sys
from pathlib import Path
from lab.field import command
from lab.field.place import System
from tests import server
server.hurry()
root = Path(sys.argv[1])
sys.exit(command.main(sys.argv[2:], root / "home", System(root / "sys", root / "proc")))
"""
# On a busy machine a process takes its time to begin.
PATIENCE_S = 300


@pytest.fixture(autouse=True)
def _short_waits_and_signals_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module, name in (
        (trial, "SAMPLE_S"),
        (trial, "SETTLE_S"),
        (campaign, "LOOK_S"),
        (campaign, "LEAST_S"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(os, "cpu_count", os.cpu_count)
    monkeypatch.setattr(os, "statvfs", os.statvfs)
    hurry()
    before = {number: signal.getsignal(number) for number in signals.SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return on_path(Server(tmp_path, parallel=True), monkeypatch)


@pytest.fixture
def stock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return on_path(Server(tmp_path, parallel=False), monkeypatch)


def on_path(made: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PATH", f"{made.root / 'bin'}:{os.environ['PATH']}")
    return made


def started(server: Server, *arguments: str) -> subprocess.Popen[str]:
    """Start ./field on a job that lasts, and wait until it is at work."""
    write(server.root / "slow", "")
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(server.root), *arguments],
        cwd=REPO,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + PATIENCE_S
    while not (server.root / "fio.pid").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if not (server.root / "fio.pid").exists():
        process.kill()
        pytest.fail(f"it has not begun: {process.communicate()}")
    return process


def work_of(server: Server) -> undo.Work:
    return undo.Work(place.find(server.data, server.system), server.system)


def is_gone(pid: int) -> bool:
    """Wait until a process has ended; return whether it has."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def refused(server: Server, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the sentence with which ./field refuses; nothing is changed by it."""
    before = server.tree()
    assert server.field(*arguments) == 1
    assert server.tree() == before
    said = capsys.readouterr().err
    assert said.startswith("field: error: ") and said.count("\n") == 1
    return said


def test_check_says_what_would_be_touched_and_touches_nothing(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    before = server.tree()
    assert server.field("check", str(server.data), "--dirty-limit-mib", "64") == 0
    assert server.tree() == before
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if " " in line)
    assert said["machine"] == "4 CPUs, Some CPU, 8192 MiB"
    assert "parallel, nwritebacks is auto (3)" in said["kernel"]
    assert "xfs on nvme0n1p1, " in said["directory"]
    assert said["drive"] == f"Fast Drive 1TB; its settings are in {server.bdi}"
    assert "contexts 1, 2, 4, auto, in random order; at most 5 rounds and 30 minutes" in said["runs"]
    assert "each run at most 150 s, not counting layout and final sync" in said["runs"]
    assert said["writes"].startswith(f"to     {server.data / undo.FOLDER}, which goes at the end")
    assert said["sets"] == (
        "and puts back: nwritebacks to auto, dirty_bytes to 2097152, dirty_background_bytes to 1048576"
    )


def test_check_makes_no_folder(server: Server) -> None:
    deep = server.root / "deep" / "er"
    before = sorted(server.root.rglob("*"))
    for options in ([], ["--output", str(deep)]):
        assert server.field("check", str(server.data), *options) == 0
        assert sorted(server.root.rglob("*")) == before
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1", *options) == 0
    assert [path.name for path in deep.iterdir()] == ["job-parallel.json"]


def test_no_place_for_results(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    program = server.root / "bin" / "fio"
    for name in ("check", "run"):
        said = refused(server, capsys, name, str(server.data), "--output", str(program / "x"))
        assert f"{program} cannot be written: expected a place for results" in said


def test_nothing_is_written_through_a_link(server: Server) -> None:
    victim = write(server.root / "victim", "precious")
    results = server.home / "results"
    results.mkdir()
    names = ("job-parallel.json", command.PACKED)
    for name in names:
        (results / f".{name}.new").symlink_to(victim)
    (results / command.PACKED).symlink_to(victim)
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1") == 0
    assert server.field("pack") == 0
    assert victim.read_text() == "precious"
    assert sorted(path.name for path in results.iterdir() if not path.is_symlink()) == [*names]
    assert len([*results.iterdir()]) == len(names)


def test_a_record_stays_where_the_next_one_does_not_fit(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1") == 0
    before = server.records()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1") == 1
    assert server.records() == before
    assert [path.name for path in (server.home / "results").iterdir()] == ["job-parallel.json"]


def test_dirty_limits_stay_unless_asked_for(stock: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert stock.field("check", str(stock.data)) == 0
    said = capsys.readouterr().out
    assert "dirty limit   100 MiB, as it is\n" in said
    assert "sets          nothing\n" in said


def test_a_run_on_stock_leaves_its_record_and_nothing_else(stock: Server) -> None:
    before = stock.tree()
    assert stock.field("run", str(stock.data), "--rounds", "2") == 0
    assert stock.tree() == before
    [(name, record)] = stock.records().items()
    runs: Any = record["runs"]
    assert (name, record["kind"], record["files_mib"]) == ("job-stock.json", "stock", 4)
    assert [(run["round"], run["contexts"]) for run in runs] == [(1, 1), (2, 1)]
    assert [path.name for path in stock.data.iterdir()] == ["own"]


def test_each_round_has_every_number_of_contexts_once(server: Server) -> None:
    before = server.settings() | {"nwritebacks": "auto"}
    assert server.field("run", str(server.data), "--rounds", "2", "--dirty-limit-mib", "64") == 0
    assert server.settings() == before
    record: Any = server.records()["job-parallel.json"]
    for number in (1, 2):
        tried = [run["contexts"] for run in record["runs"] if run["round"] == number]
        assert sorted(tried, key=str) == [1, 2, 4, "auto"]
    assert record["dirty_limit_mib"] == 64
    assert record["runs"][0]["raw"]["runs"][0]["dirty_settings"]["dirty_bytes"] == 64 << 20


def test_contexts_that_are_asked_for(server: Server) -> None:
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "3,auto") == 0
    record: Any = server.records()["job-parallel.json"]
    assert {run["contexts"] for run in record["runs"]} == {3, "auto"}


def test_no_round_begins_that_does_not_fit_into_the_budget(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        time.sleep(0.1)
        return {"runs": [{"samples": [{"t": t, "sectors": [t]} for t in (0, 1)]}]}, {}

    monkeypatch.setattr(trial, "measure", measure)
    # Of 0.6 s a round takes 0.4 s.
    assert server.field("run", str(server.data), "--budget", "0.01") == 0
    record: Any = server.records()["job-parallel.json"]
    assert {run["round"] for run in record["runs"]} == {1}


def test_settings_come_in_random_order(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "sample", lambda of, count: [*of][::-1][:count])
    assert server.field("run", str(server.data), "--rounds", "2", "--contexts", "1,2,auto") == 0
    record: Any = server.records()["job-parallel.json"]
    assert [run["contexts"] for run in record["runs"]] == ["auto", 2, 1] * 2


def test_stock_runs_as_long_as_each_run_on_parallel(
    stock: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stock.field("check", str(stock.data)) == 0
    lasts = "each run at most 150 s"
    assert lasts in capsys.readouterr().out
    stock.boot_parallel()
    assert stock.field("check", str(stock.data)) == 0
    assert lasts in capsys.readouterr().out


def test_no_run_begins_that_does_not_fit_into_the_budget(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0

    def measure(*_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # With its layout and its final sync.
        nonlocal now
        now += 25
        return {"runs": [{"samples": [{"t": t, "sectors": [t]} for t in (0, 1)]}]}, {}

    monkeypatch.setattr(trial, "measure", measure)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    # Of the four runs of the first round, the third would end 15 s too late.
    assert server.field("run", str(server.data), "--budget", "1") == 0
    record: Any = server.records()["job-parallel.json"]
    assert len(record["runs"]) == 2
    assert "another run does not fit into the budget: round 1 is not whole" in capsys.readouterr().out


def test_a_sync_is_not_waited_for_by_what_puts_everything_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Stuck:
        """A sync that does not end even when it is killed, for the disk does not answer."""

        def __init__(self, *_: Any, **__: Any) -> None:
            done.append("begun")

        def __enter__(self) -> Stuck:
            return self

        def __exit__(self, *_: object) -> None:
            self.wait()

        def communicate(self, *_: Any, **__: Any) -> tuple[str, str]:
            raise signals.Signalled(signal.SIGINT)

        def wait(self) -> None:
            done.append("waited")

        def kill(self) -> None:
            done.append("killed")

    monkeypatch.setattr(subprocess, "Popen", Stuck)
    with pytest.raises(signals.Signalled):
        trial._sync(server.data)
    assert done == ["begun", "killed"]


def test_a_budget_that_is_too_short(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "LEAST_S", 10.0)
    for name in ("check", "run"):
        said = refused(server, capsys, name, str(server.data), "--budget", "1")
        assert "a budget of 1 minutes leaves 5.0 s to each run: expected at least 10 s" in said


def test_a_run_that_does_not_end_is_ended(stock: Server) -> None:
    write(stock.root / "slow", "")
    options = ["--rounds", "1", "--contexts", "1", "--budget", "0.3"]
    assert stock.field("run", str(stock.data), *options) == 0
    record: Any = stock.records()["job-stock.json"]
    assert 6 < record["runs"][0]["raw"]["runs"][0]["fio_s"] < 60


def test_another_run_adds_its_rounds(stock: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert stock.field("run", str(stock.data), "--rounds", "1") == 0
    record: Any = stock.records()["job-stock.json"]
    assert [run["round"] for run in record["runs"]] == [1, 2]
    capsys.readouterr()
    write(stock.home / "jobs" / "job.fio", "[other]\nrw=write\nsize=2m\n")
    assert "has earlier runs with another text: expected the same" in refused(
        stock, capsys, "run", str(stock.data)
    )


#: What earlier runs have in common with those that are added.
OF_A_KIND = ["format", "release", "version", "commit", "drive", "filesystem", "bdi", "text"]
OF_A_KIND += ["dirty_settings", "fio"]


@pytest.mark.parametrize("name", OF_A_KIND)
def test_runs_of_another_kind_are_not_added(
    stock: Server, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert stock.field("run", str(stock.data), "--rounds", "1") == 0
    path = stock.home / "results" / "job-stock.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: "another"}))
    capsys.readouterr()
    assert f"has earlier runs with another {name}:" in refused(stock, capsys, "run", str(stock.data))


def test_runs_are_added_after_a_boot_but_not_those_of_another_machine(
    stock: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """A boot can leave a MiB more or less of the same memory."""
    assert stock.field("run", str(stock.data), "--rounds", "1") == 0
    path = stock.home / "results" / "job-stock.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"machine": record["machine"] | {"memory_mib": 7}}))
    assert stock.field("run", str(stock.data), "--rounds", "1") == 0
    path.write_text(json.dumps(record | {"machine": record["machine"] | {"cpus": 999}}))
    capsys.readouterr()
    assert "has earlier runs with another machine:" in refused(stock, capsys, "run", str(stock.data))


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_earlier_runs_that_cannot_be_read(
    stock: Server, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    write(stock.home / "results" / "job-stock.json", text)
    assert "cannot be read" in refused(stock, capsys, "run", str(stock.data))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_puts_everything_back(server: Server, number: signal.Signals) -> None:
    before = server.settings() | {"nwritebacks": "auto"}
    options = ["--contexts", "2", "--dirty-limit-mib", "64"]
    assert server.field("run", str(server.data), "--rounds", "1", *options) == 0
    (server.root / "fio.pid").unlink()
    process = started(server, "run", str(server.data), *options)
    changed = server.settings()
    assert (changed["nwritebacks"], changed["dirty_bytes"]) == ("2", str(64 << 20))
    process.send_signal(number)
    said, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert "interrupted" in complaint and "Traceback" not in complaint
    assert f"{server.bdi / 'nwritebacks'} is auto again" in said
    assert server.settings() == before
    assert [path.name for path in server.data.iterdir()] == ["own"]
    assert is_gone(int((server.root / "fio.pid").read_text()))
    record: Any = server.records()["job-parallel.json"]
    assert len(record["runs"]) == 1


def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signals.raise_on_signals()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with pytest.raises(signals.Signalled):
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_second_signal_does_not_cut_it_short(server: Server) -> None:
    write(server.root / "stubborn", "")
    process = started(server, "run", str(server.data), "--contexts", "2")
    process.send_signal(signal.SIGINT)
    end = time.monotonic() + PATIENCE_S
    while not (server.root / "asked").exists() and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT
    assert is_gone(int((server.root / "fio.pid").read_text()))
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]


def test_a_first_signal_just_before_it_is_ignored(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ignored, calls = signals.ignored, []

    def late() -> AbstractContextManager[None]:
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return ignored()

    monkeypatch.setattr(signals, "ignored", late)
    write(server.root / "fails", "")
    assert server.field("run", str(server.data), "--contexts", "2") == 128 + signal.SIGTERM
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]


def test_a_first_signal_does_not_cut_short_what_puts_everything_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree = shutil.rmtree

    def interrupted(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    write(server.root / "fails", "")
    assert server.field("run", str(server.data), "--contexts", "2") == 1
    assert [path.name for path in server.data.iterdir()] == ["own"]
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN


def test_a_note_that_does_not_fit_on_the_disk(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused(server, capsys, "run", str(server.data))
    assert not (server.data / undo.FOLDER).exists()


def test_a_folder_without_its_note_is_removed(server: Server) -> None:
    (server.data / undo.FOLDER).mkdir()
    assert server.field("restore", str(server.data)) == 0
    assert [path.name for path in server.data.iterdir()] == ["own"]
    assert server.settings()["nwritebacks"] == "auto (3)"


@pytest.mark.parametrize("what", ["failed", "gone", "unmounted"])
def test_settings_come_back_when_the_filesystem_does_not(
    server: Server, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    work = work_of(server)
    work.begin(limits=True)
    write(server.bdi / "nwritebacks", "2")
    write(server.system.vm / "dirty_bytes", "4096")
    look = Path.stat

    def fails(path: Path, **more: Any) -> os.stat_result:
        if path.is_relative_to(server.data):
            raise OSError(errno.EIO, "Input/output error")
        return look(path, **more)

    if what == "failed":
        # lstat() and exists() look by it.
        monkeypatch.setattr(Path, "stat", fails)
    else:
        shutil.rmtree(work.folder if what == "gone" else server.data)
    with pytest.raises(LabError, match=r"cannot be removed .*; all settings are put back, remove it by hand"):
        work.end()
    assert (server.bdi / "nwritebacks").read_text() == "auto"
    assert (server.system.vm / "dirty_bytes").read_text() == str(2 << 20)


def test_a_note_that_cannot_be_read(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left_behind(server, {})
    read = Path.read_text

    def read_text(path: Path, **more: Any) -> str:
        if path.name == undo.NOTE:
            raise OSError(errno.EIO, "Input/output error")
        return read(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", read_text)
        assert server.field("restore", str(server.data)) == 1
    said = capsys.readouterr().err
    assert f"{undo.NOTE} cannot be read (Input/output error): expected what a run that was killed" in said
    assert f"set {server.bdi / 'nwritebacks'}, {server.system.vm / 'dirty_bytes'}, " in said
    assert (server.data / undo.FOLDER / undo.NOTE).exists()


def test_what_is_in_the_place_of_the_folder_is_left_alone(server: Server) -> None:
    work = work_of(server)
    work.begin(limits=False)
    write(server.bdi / "nwritebacks", "2")
    victim = write(server.root / "victim" / "precious", "data")
    work.folder.rename(server.data / "moved")
    for kind in ("link", "directory"):
        if kind == "link":
            work.folder.symlink_to(victim.parent)
        else:
            work.folder.unlink()
            victim.parent.rename(work.folder)
        with pytest.raises(LabError, match="is not the directory that the run has made"):
            work.end()
    assert (work.folder / "precious").read_text() == "data"
    assert server.settings()["nwritebacks"] == "auto"


@pytest.mark.skipif(os.geteuid() != 0, reason="of root's directories only")
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o775, 0), (0o755, 1), (0o1777, 1)])
@pytest.mark.parametrize("which", ["data", "root"])
def test_a_directory_in_which_others_can_rename(
    server: Server, capsys: pytest.CaptureFixture[str], which: str, mode: int, owner: int
) -> None:
    folder: Path = getattr(server, which)
    os.chown(folder, owner, -1)
    folder.chmod(mode)
    for name in ("check", "run", "restore"):
        said = refused(server, capsys, name, str(server.data))
        assert f"{folder} can be written by another account" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="of root's directories only")
def test_a_directory_in_which_others_can_only_add(server: Server) -> None:
    server.data.chmod(0o1777)
    server.root.chmod(0o1777)
    assert server.field("check", str(server.data)) == 0


def test_a_limit_of_nothing_is_put_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    written, vm = Path.write_text, server.system.vm
    for name in ("dirty_bytes", "dirty_ratio"):
        write(vm / name, "0\n")

    def write_text(path: Path, text: str, **more: Any) -> int:
        """As the kernel: a ratio that is another one has bytes forgotten, and bytes have the ratio so."""
        other = {"dirty_bytes": "dirty_ratio", "dirty_ratio": "dirty_bytes"}.get(path.name)
        if other and text.strip() != path.read_text().strip():
            written(vm / other, "0\n")
        return written(path, text, **more)

    monkeypatch.setattr(Path, "write_text", write_text)
    work = work_of(server)
    work.begin(limits=True)
    (vm / "dirty_bytes").write_text(str(64 << 20))
    assert f"{vm / 'dirty_ratio'} is 0 again" in work.end()
    assert [(vm / name).read_text().strip() for name in ("dirty_bytes", "dirty_ratio")] == ["0", "0"]


def test_a_setting_that_does_not_come_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    work = work_of(server)
    work.begin(limits=False)
    write(server.bdi / "nwritebacks", "2")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", lambda *_, **__: 0)
        with pytest.raises(LabError, match=r"do it by hand: echo auto > .*nwritebacks \(the kernel shows"):
            work.end()
    # What is noted is still there.
    assert work_of(server).is_left()


def test_a_limit_that_is_a_share_of_memory_is_put_back_as_one(server: Server) -> None:
    write(server.system.vm / "dirty_bytes", "0\n")
    write(server.system.vm / "dirty_ratio", "20\n")
    work = work_of(server)
    assert work.settings(limits=True) == {
        "nwritebacks": "auto",
        "dirty_ratio": "20",
        "dirty_background_bytes": str(1 << 20),
    }
    assert work.settings(limits=False) == {"nwritebacks": "auto"}


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all filesystems be mounted read-only, as ext4 is after an error: root may not write either."""
    room = SimpleNamespace(f_flag=os.ST_RDONLY, f_frsize=1 << 20, f_blocks=100, f_bavail=50)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK and access(path, mode))


def test_settings_come_back_on_a_filesystem_that_became_read_only(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = server.settings()
    left_behind(server, {"boot": work_of(server)._boot(), "settings": {undo.CONTEXTS: "auto"}})
    (server.bdi / "nwritebacks").write_text("8")
    read_only(monkeypatch)
    assert "is mounted read-only: remount it" in refused(server, capsys, "run", str(server.data))
    server.field("restore", str(server.data))
    assert server.settings()["nwritebacks"] == "auto"
    assert before["nwritebacks"].startswith("auto")


def test_a_number_that_somebody_else_sets_ends_the_run(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = trial.measure

    def beside(*arguments: Any) -> Any:
        measured = measure(*arguments)
        (server.bdi / "nwritebacks").write_text("3")
        return measured

    monkeypatch.setattr(trial, "measure", beside)
    assert server.field("run", str(server.data), "--contexts", "1,8") == 1
    assert "nwritebacks is 3 after a run with" in capsys.readouterr().err
    assert server.settings()["nwritebacks"] == "auto"
    assert server.records() == {}


def test_what_goes_with_its_device_need_not_come_back(server: Server) -> None:
    work = work_of(server)
    work.begin(limits=True)
    shutil.rmtree(server.bdi)
    said = work.end()
    assert said[0] == f"{server.bdi / 'nwritebacks'} went with its device"
    assert len(said) == 3
    assert not work.folder.exists()


def test_what_went_wrong_first_is_said_too(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (server.root / "fails").touch()
    monkeypatch.setattr(undo.Work, "_put_back", lambda _: place.find(server.root / "none", server.system))
    assert server.field("run", str(server.data)) == 1
    last, first = capsys.readouterr().err.splitlines()
    assert last.startswith("field: error: ") and "is no directory" in last
    assert first.startswith("field: error before that: ") and "no luck" in first


def test_what_a_killed_run_left_is_put_back(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    process = started(server, "run", str(server.data), "--contexts", "2")
    process.kill()
    process.communicate()
    assert is_gone(int((server.root / "fio.pid").read_text()))
    assert (server.settings()["nwritebacks"], (server.data / undo.FOLDER).exists()) == ("2", True)
    assert server.field("check", str(server.data)) == 0
    said = capsys.readouterr().out
    assert (
        f"left          a run was killed here; ./field restore {shlex.quote(str(server.data))} puts" in said
    )
    assert server.field("restore", str(server.data)) == 0
    assert "is auto again" in capsys.readouterr().out
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]


def left_behind(server: Server, note: dict[str, Any]) -> None:
    write(server.data / undo.FOLDER / undo.NOTE, json.dumps(note))


def test_after_a_reboot_only_the_folder_is_left(server: Server) -> None:
    boot = (server.system.proc / "sys/kernel/random/boot_id").read_text().strip()
    left_behind(server, {"boot": boot, "settings": {"nwritebacks": "7"}})
    server.boot_again()
    assert server.field("restore", str(server.data)) == 0
    assert server.settings()["nwritebacks"] == "auto (3)"
    assert not (server.data / undo.FOLDER).exists()


def test_a_note_has_nothing_else_written(server: Server) -> None:
    boot = (server.system.proc / "sys/kernel/random/boot_id").read_text().strip()
    left_behind(
        server, {"boot": boot, "settings": {"../../../../victim": "x", "dirty_expire_centisecs": "1"}}
    )
    assert server.field("restore", str(server.data)) == 0
    assert not (server.root / "victim").exists()
    assert server.settings()["dirty_expire_centisecs"] == "3000"


def test_the_next_run_puts_back_first(server: Server) -> None:
    boot = (server.system.proc / "sys/kernel/random/boot_id").read_text().strip()
    left_behind(server, {"boot": boot, "settings": {"nwritebacks": "7"}})
    write(server.bdi / "nwritebacks", "2")
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "2") == 0
    assert server.settings()["nwritebacks"] == "7"


def test_a_failure_of_fio_puts_everything_back(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    write(server.root / "fails", "")
    assert server.field("run", str(server.data)) == 1
    assert "field: error: fio failed in its run: fio: no luck" in capsys.readouterr().err
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]
    assert server.records() == {}


def test_fio_that_tells_no_version(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    fio = server.root / "bin" / "fio"
    write(fio, fio.read_text().replace('print("fio-3.33")', 'sys.exit("fio: broken")'))
    assert server.field("run", str(server.data)) == 1
    [said] = capsys.readouterr().err.splitlines()
    assert said == "field: error: fio --version fails (fio: broken): expected its version; install fio anew"
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]


def test_a_disk_that_gets_full_ends_the_run(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Place, "is_full", property(lambda self: (self.folder / undo.FOLDER / "run").exists()))
    write(server.root / "slow", "")
    assert server.field("run", str(server.data), "--contexts", "2") == 1
    assert "lower size= in the job" in capsys.readouterr().err
    assert server.settings()["nwritebacks"] == "auto"
    assert [path.name for path in server.data.iterdir()] == ["own"]


def test_a_setting_that_the_kernel_refuses(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = Path.write_text

    def write_text(path: Path, text: str, **more: Any) -> int:
        if path.name == "nwritebacks" and text == "16":
            raise OSError(22, "Invalid argument")
        return written(path, text, **more)

    monkeypatch.setattr(Path, "write_text", write_text)
    assert server.field("run", str(server.data), "--contexts", "16") == 1
    assert "the kernel refuses 16 for " in capsys.readouterr().err
    assert server.settings()["nwritebacks"] == "auto"


@pytest.mark.parametrize("kind", ["server", "stock"])
def test_more_contexts_than_a_kernel_takes_are_refused_ahead(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    made: Server = request.getfixturevalue(kind)
    for name in ("check", "run"):
        said = refused(made, capsys, name, str(made.data), "--contexts", "1,16,17,auto,99999")
        assert "--contexts has 17, 99999: expected at most 16, which is four for each possible CPU" in said


def test_a_limit_that_the_kernel_refuses(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = Path.write_text

    def write_text(path: Path, text: str, **more: Any) -> int:
        if path.name == "dirty_bytes" and int(text) >= 1 << 64:
            raise OSError(errno.EINVAL, "Invalid argument")
        return written(path, text, **more)

    monkeypatch.setattr(Path, "write_text", write_text)
    most = 1 << 44
    assert server.field("run", str(server.data), "--dirty-limit-mib", str(most)) == 1
    said = capsys.readouterr().err
    assert f"the kernel refuses {most} MiB for {server.system.vm / 'dirty_bytes'} (Invalid argument)" in said
    assert server.settings()["nwritebacks"] == "auto"


def test_a_sync_that_fails(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    write(server.root / "bin" / "sync", "#!/bin/sh\necho sync: no luck >&2\nexit 1\n")
    assert server.field("run", str(server.data)) == 1
    [said] = capsys.readouterr().err.splitlines()
    assert "cannot be synced (sync: no luck): expected everything to reach the disk" in said
    assert [path.name for path in server.data.iterdir()] == ["own"]


@pytest.mark.parametrize("text", ["", "fio: a note\n", '{"jobs": ['])
def test_fio_that_leaves_no_figures(tmp_path: Path, text: str) -> None:
    with pytest.raises(LabError, match="fio has left no figures: expected JSON"):
        trial._figures(write(tmp_path / "run.fio.json", text))


def test_results_in_a_relative_folder(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(server.root)
    options = ["--rounds", "1", "--contexts", "1", "--output", "out"]
    assert server.field("run", str(server.data), *options) == 0
    assert [path.name for path in (server.root / "out").iterdir()] == ["job-parallel.json"]


def test_two_runs_at_once(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    holder = os.open(server.bdi.parent, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        for name in ("run", "restore"):
            assert "another ./field run is going on" in refused(server, capsys, name, str(server.data))
    finally:
        os.close(holder)


def test_files_that_do_not_fit(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    write(server.home / "jobs" / "job.fio", "[x]\nrw=write\nsize=900t\n")
    for name in ("check", "run"):
        assert "MiB free, and the files of job job take" in refused(server, capsys, name, str(server.data))


@pytest.mark.parametrize(
    ("free", "usable", "full"), [(51, 1, False), (50, 0, False), (25, -25, False), (24, -26, True)]
)
def test_a_run_leaves_a_twentieth_free(
    server: Server, monkeypatch: pytest.MonkeyPatch, free: int, usable: int, full: bool
) -> None:
    room = SimpleNamespace(f_flag=0, f_frsize=1 << 20, f_blocks=1000, f_bavail=free)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    found = place.find(server.data, server.system)
    assert (round(found.usable_mib), found.is_full) == (usable, full)


def test_the_deepest_and_latest_mount_counts(server: Server) -> None:
    odd, beside = server.data / "a b", server.root / "data2"
    odd.mkdir()
    beside.mkdir()
    name = str(odd).replace(" ", r"\040")
    mounts = [("/", "tmpfs"), (server.data, "xfs"), ("/odd\x0c\u2028", "tmpfs")]
    mounts += [(name, "ext4"), (name, "f2fs")]
    text = "".join(f"1 1 8:1 / {path} rw - {fs} none rw\n" for path, fs in mounts)
    write(server.system.proc / "self" / "mountinfo", text)
    found = [place._filesystem(one, server.system) for one in (odd, server.data, beside)]
    assert found == ["f2fs", "xfs", "tmpfs"]


def test_a_directory_that_is_not_there(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is no directory: expected one on" in refused(server, capsys, "run", str(server.root / "no"))


def test_what_is_not_on_a_local_block_device(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    [node] = (server.system.sys / "dev" / "block").iterdir()
    node.unlink()
    mounts = server.system.proc / "self" / "mountinfo"
    mounts.write_text(mounts.read_text().replace(" - xfs ", " - nfs4 "))
    said = refused(server, capsys, "run", str(server.data))
    assert f"{server.data} lies on nfs4: expected xfs, ext4, f2fs, directly on a local block device" in said


def test_a_filesystem_without_contexts(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    mounts = server.system.proc / "self" / "mountinfo"
    mounts.write_text(mounts.read_text().replace(" - xfs ", " - vfat "))
    assert "lies on vfat: expected xfs, ext4, f2fs" in refused(server, capsys, "check", str(server.data))


@pytest.mark.parametrize("kind", ["folder", "link", "file"])
def test_a_folder_of_that_name_is_left_alone(
    server: Server, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    taken = server.data / undo.FOLDER
    if kind == "folder":
        write(taken / "precious", "data")
    elif kind == "link":
        left_behind(server, {})
        taken.rename(server.root / "elsewhere")
        taken.symlink_to(server.root / "elsewhere")
    else:
        write(taken, "data")
    said = refused(server, capsys, "run", str(server.data))
    assert f"{taken} is there already, and not from a run of yours" in said


def test_fio_that_is_missing(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(server.root / "nothing"))
    said = refused(server, capsys, "check", str(server.data))
    assert "fio is missing: install it as root with: apt-get install fio" in said


@pytest.mark.parametrize(("jobs", "said"), [([], "none"), (["a.fio", "b.fio"], "a.fio, b.fio")])
def test_which_job(server: Server, capsys: pytest.CaptureFixture[str], jobs: list[str], said: str) -> None:
    (server.home / "jobs" / "job.fio").unlink()
    for name in jobs:
        write(server.home / "jobs" / name, "[x]\nrw=write\nsize=1m\n")
    told = refused(server, capsys, "check", str(server.data))
    assert f"has {said}: expected one job; choose one by --job" in told


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("directory=/elsewhere", "leads out of the directory"),
        ("directory=/mnt/test/x", "leads out of the directory"),
        ("filename=ok:/dev/sda", "leads out of the directory"),
        ("filename=a/../../b", "leads out of the directory"),
        ("filename_format=../x.$jobnum", "leads out of the directory"),
        ("write_bw_log=/var/tmp/log", "leads out of the directory"),
        ("mem=mmap:/var/tmp/memory", "leads out of the directory"),
        ("[/var/tmp/x]", "leads out of the directory"),
        ("[/var/tmp/x] ; a note", "leads out of the directory"),
        ("[/var/tmp/x]# a note", "leads out of the directory"),
        ("[/var/tmp/x]y", "may mean something else to fio"),
        ("[/var/tmp/x", "may mean something else to fio"),
        ("directory=.. ; a note", "leads out of the directory"),
        ("directory=..\x01", "may mean something else to fio"),
        ("include:/etc/hostname", "may mean something else to fio"),
        ("include", "may mean something else to fio"),
        (f"description={'x' * 4096}", "may mean something else to fio"),
        ("ioengine=exec", "expected one of io_uring, libaio, mmap, "),
        ("ioengine=external:engine.so", "expected one of io_uring, libaio, mmap, "),
        ("filename=${HOME}", "takes a value from the environment"),
        ("exec_prerun=true", "reaches beyond the job's own files"),
        ("ioscheduler=none", "reaches beyond the job's own files"),
        ("fill_device", "reaches beyond the job's own files"),
        ("read_iolog=log", "reaches beyond the job's own files"),
        ("file_append=1", "reaches beyond the job's own files"),
        ("offset=20%", "offset=20%, which does not tell what its files take"),
        ("fileoffset=0x40000000", "offset=0x40000000, which does not tell what its files take"),
        ("offset_increment=10%", "offset_increment=10%, which does not tell what its files take"),
        ("numjobs=0x400", "numjobs=0x400, which does not tell what its files take"),
        ("filesize=1m\nnr_files=0x400", "nrfiles=0x400, which does not tell what its files take"),
        ("offset=900t", "MiB free, and the files of job job take"),
        ("fileoffset=900t", "MiB free, and the files of job job take"),
        ("filename=a\nnumjobs=16\noffset_increment=900t", "MiB free, and the files of job job take"),
        ("rw=read", "no section writes"),
        ("unified_rw_reporting=mixed", "has unified_rw_reporting"),
        ("direct=1\n[y]\nrw=read\nsize=1m", "direct=1"),
        ("direct=1", "direct=1"),
        ("[global]", "a [global] after other sections"),
        ("size=50%", "does not say how large its files are"),
        ("nonsense=1", "fio refuses it"),
    ],
)
def test_a_job_that_reaches_elsewhere_is_refused(
    server: Server, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    write(server.home / "jobs" / "job.fio", f"[x]\nrw=write\nsize=1m\n{line}\n")
    for name in ("check", "run"):
        assert complaint in refused(server, capsys, name, str(server.data))


@pytest.mark.parametrize(
    "text",
    [
        "; a note: /elsewhere\n# exec_prerun=rm\n[x]\nrw=write\nsize=1m\n",
        "[x]\nrw=write\nsize=1m\nbssplit=4k/50:64k/50\ndirectory=sub/dir\n",
        "[a job] ; one\nrw=write\nsize=1m # of it\ndirect=0 ; buffered\nhugepage-size=2m\nioengine=libaio\n",
    ],
)
def test_a_job_that_stays_is_taken(server: Server, text: str) -> None:
    assert job.load(write(server.root / "x.fio", text), 4).files_mib == 1


def test_where_a_job_begins_in_its_files_counts_for_their_size(server: Server) -> None:
    text = "[x]\nrw=write\nsize=1m\noffset=2m\n[y]\nrw=write\nsize=1m\nfilename=a\nnumjobs=3\n"
    taken = job.load(write(server.root / "x.fio", f"{text}offset_increment=4M\n"), 4)
    # Where the third job of [y] begins, 8 MiB lie ahead of its own.
    assert taken.files_mib == 3 + 9


def test_included_lines_are_looked_at_too(server: Server) -> None:
    write(server.root / "more.fio", "directory=/elsewhere\n")
    path = write(server.root / "x.fio", "[x]\nrw=write\nsize=1m\ninclude more.fio\n")
    with pytest.raises(LabError, match="directory=/elsewhere leads out"):
        job.load(path, 4)


def test_fio_is_given_no_comments(server: Server) -> None:
    """Whatever looks at the text sees what fio sees."""
    text = "; first\n[x] ; a job\nrw=write\nsize=1m\ndirectory=sub # a note\n"
    taken = job.load(write(server.root / "x.fio", text), 4).text
    assert taken.split("\n") == ["", "[x] ", "rw=write", "size=1m", "directory=sub ", ""]
    assert fiojob.directories(taken) == ["sub"]


def test_our_own_job_is_taken() -> None:
    taken = job.load(REPO / "field" / "overwrite.fio", 8)
    assert (taken.name, taken.files_mib) == ("overwrite", 4096)
    assert job.load(REPO / "field" / "overwrite.fio", 128).files_mib == 128 * job.LEAST_MIB


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--contexts=0", "expected whole numbers, or auto"),
        ("--contexts=-1", "expected whole numbers, or auto"),
        ("--contexts=a", "expected whole numbers, or auto"),
        ("--contexts=1,,2", "expected whole numbers, or auto"),
        ("--contexts=auto1", "expected whole numbers, or auto"),
        ("--contexts=1,4,4", "1,4,4: expected each number once"),
        ("--contexts=01,1", "01,1: expected each number once"),
        ("--contexts=auto,1,auto", "auto,1,auto: expected each number once"),
        ("--budget=0", "0: expected a number above 0"),
        ("--budget=nan", "nan: expected a number above 0"),
        ("--budget=inf", "inf: expected a number above 0"),
        ("--budget=soon", "soon: expected a number above 0"),
        ("--rounds=few", "few: expected a whole number from 1"),
        ("--rounds=0", "0: expected a whole number from 1"),
    ],
)
def test_options_that_mean_nothing(
    server: Server, capsys: pytest.CaptureFixture[str], option: str, complaint: str
) -> None:
    with pytest.raises(SystemExit) as left:
        server.field("run", str(server.data), option)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_drives_below_a_mapped_disk(server: Server) -> None:
    devices = server.system.sys / "devices"
    for name in ("sda", "sdb"):
        write(devices / name / "device" / "model", "Disk")
    write(devices / "md0" / "md" / "level", "raid0\n")
    (devices / "md0" / "slaves").mkdir()
    for name in ("sda", "sdb"):
        (devices / "md0" / "slaves" / name).symlink_to(devices / name)
    (devices / "dm-0" / "slaves").mkdir(parents=True)
    (devices / "dm-0" / "slaves" / "nvme0n1p1").symlink_to(devices / "nvme0n1" / "nvme0n1p1")
    assert place._drive(devices / "md0") == "raid0 of 2 x Disk"
    assert place._drive(devices / "dm-0") == "dm of 1 x Fast Drive 1TB"
    assert place._drive(devices / "ram0") == "ram"


def test_a_record_names_no_machine(server: Server) -> None:
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1") == 0
    text = (server.home / "results" / "job-parallel.json").read_text()
    assert "Fast Drive 1TB" in text
    for secret in (SERIAL, f'"{socket.gethostname()}"', str(server.data), str(server.home)):
        assert secret not in text


def test_the_archive_names_no_user_and_has_records_only(server: Server) -> None:
    assert server.field("run", str(server.data), "--rounds", "1", "--contexts", "1") == 0
    for name in (".own-parallel.json", "own.json"):
        write(server.home / "results" / name, "{}")
    (server.home / "results" / "link-stock.json").symlink_to(server.data / "own")
    assert server.field("pack") == 0
    with tarfile.open(server.home / "results" / command.PACKED) as archive:
        [one] = archive.getmembers()
    assert (one.name, one.uid, one.gid, one.uname, one.gname) == ("job-parallel.json", 0, 0, "", "")


def test_nothing_to_pack(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no results: expected those of ./field run DIR" in refused(server, capsys, "pack")
