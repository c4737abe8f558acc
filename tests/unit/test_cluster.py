# SPDX-License-Identifier: GPL-2.0
"""Boots as tasks, with a stand-in for the guest: side by side, with workers that die, and kept."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from rich.console import Console

from lab.bench import boot_task, cluster, session, store
from lab.bench.boot_task import Kernels, Runner, Task
from lab.bench.cluster import InTurn
from lab.bench.store import Store
from lab.experiment import schedule
from lab.experiment.scenario import Scenario
from lab.machine import guest
from lab.result import plots, profile
from lab.tree.build import Kernel
from lab.util import host
from lab.util.errors import GuestError, LabError
from lab.util.paths import REPO
from tests import samples

AROUND = {"qemu": "10"}


@dataclass(frozen=True)
class StandIn:
    """Does as a guest with guest/load.py does; rates follow from kernel, CPUs and contexts alone.

    Attributes:
        log: a file for each guest is made in it.
        once: what happens to the first guest of one context or more: ``die`` kills its worker.
    """

    log: Path
    once: str = ""

    def __call__(
        self, kernel: Path, command: list[str], *, results: Path | None, **options: Any
    ) -> guest.GuestResult:
        assert results is not None
        name = results.name.removeprefix(".").rpartition("-")[0]
        (self.log / f"{name}.{time.monotonic_ns()}").write_text(str(os.getpid()))
        if self.once and kernel.name == "parallel":
            self._go_wrong()
        plan = json.loads((results / "plan.json").read_text())
        runs = []
        for run in plan["runs"]:
            rate = 100.0 * options["cpus"] * int(run["settings"].get("nwritebacks", 1))
            runs.append(samples.run(8, mib_s=rate, name=run["name"]))
            shutil.copy(samples.FIXTURES / "fio-group.json", results / runs[-1].fio_json)
        raw = samples.raw(*runs).model_dump(mode="json")
        for run in raw["runs"]:
            for sample in run["samples"]:
                sample["sectors"] *= plan["devices"]
        (results / "raw.json").write_text(json.dumps(raw))
        counters = {"virtual_ns": 1e9, "host_ns": 30e9, "lanes": 2, "lost_ns": 3e8}
        return guest.GuestResult(status=0, console="", seconds=1.0, output="", clock=counters)

    def _go_wrong(self) -> None:
        marker = self.log / "gone-wrong"
        if self.once == "always":
            self._die()
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return
        if self.once == "report":
            raise GuestError("WARNING: at mm/backing-dev.c")
        self._die()

    @staticmethod
    def _die() -> None:
        # Dask brings back no worker that dies before its nanny has heard of it; no guest is that fast.
        time.sleep(2)
        os.kill(os.getpid(), signal.SIGKILL)

    def guests(self) -> list[str]:
        """Return the folders of the guests that were started."""
        return sorted(path.stem for path in self.log.iterdir() if path.name != "gone-wrong")


@pytest.fixture(autouse=True)
def _no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "draw", lambda folder, cells: [])


@pytest.fixture
def kernels(tmp_path: Path) -> Kernels:
    config = tmp_path / "config"
    config.touch()
    stock, parallel = (
        Kernel(tmp_path / name, name, "7.3.4", "i", config, "smp") for name in ("stock", "parallel")
    )
    return {"stock": stock, "parallel": parallel}


@pytest.fixture
def chosen() -> Scenario:
    return samples.small_scenario(
        devices=["brd"],
        guest={"machine": "smp", "cpus": 4},
        filesystems=["xfs", "ext4"],
        repetitions=1,
        scaling=[2],
    )


def _runner(tmp_path: Path, once: str = "") -> StandIn:
    log = tmp_path / "log"
    log.mkdir(exist_ok=True)
    return StandIn(log, once)


def _measure(
    chosen: Scenario, kernels: Kernels, crew: cluster.Crew, root: Path, **options: Any
) -> tuple[list[dict[str, Any]], str]:
    out = io.StringIO()
    folder = session.measure(
        chosen,
        kernels,
        job_folder=root,
        crew=crew,
        root=root / "results",
        console=Console(file=out, width=140),
        **options,
    )
    return json.loads((folder / "summary.json").read_text()), out.getvalue()


def test_one_worker_and_three_give_the_same(tmp_path: Path, kernels: Kernels, chosen: Scenario) -> None:
    runner = _runner(tmp_path)
    here, _ = _measure(chosen, kernels, InTurn(runner), tmp_path / "in-turn")
    with cluster.local(1, runner) as crew:
        one, _ = _measure(chosen, kernels, crew, tmp_path / "one")
    with cluster.local(3, runner) as crew:
        three, said = _measure(chosen, kernels, crew, tmp_path / "three")
    assert here == one == three
    assert "3 side by side" in said
    assert len(runner.guests()) == 3 * 10
    [cell] = [
        cell
        for cell in three
        if (cell["fs"], cell["cpus"], cell["contexts"], cell["variant"]) == ("xfs", 4, 2, "parallel")
        and cell["dirty_limit_mib"] == 128
    ]
    assert (cell["machine"], cell["mib_s"]["median"], cell["ratio_to_stock"]) == ("smp", 800, 2)
    assert (cell["host_s_per_s"]["median"], cell["lost"]["median"]) == (30, 0.01)
    assert {(cell["cpus"], cell["contexts"]) for cell in three if cell["variant"] == "parallel"} == {
        (4, 1),
        (4, 2),
        (2, 2),
    }


def test_when_the_time_is_up_no_boot_begins_and_none_is_cut_off(
    tmp_path: Path, kernels: Kernels, chosen: Scenario
) -> None:
    runner = _runner(tmp_path)
    with cluster.local(2, runner) as crew:
        cells, said = _measure(chosen, kernels, crew, tmp_path, budget_s=1e-9)
    # One on each worker.
    assert len(runner.guests()) == 2
    assert cells[0]["variant"] == "stock"
    assert "left out on ext4 in round 1, device brd, 4 CPUs, for the time was up" in said


def test_a_worker_that_dies_costs_what_it_was_running(
    tmp_path: Path, kernels: Kernels, chosen: Scenario
) -> None:
    runner = _runner(tmp_path, once="die")
    with cluster.local(2, runner) as crew:
        cells_, _ = _measure(chosen, kernels, crew, tmp_path)
    assert (runner.log / "gone-wrong").exists()
    whole, _ = _measure(chosen, kernels, InTurn(runner), tmp_path / "whole")
    assert cells_ == whole
    # Ten boots, ten again in turn, and what ran on the worker that died.
    assert len(runner.guests()) == 21


def test_a_boot_that_kills_its_workers_is_not_tried_for_ever(
    tmp_path: Path, kernels: Kernels, chosen: Scenario
) -> None:
    with (
        cluster.local(1, _runner(tmp_path, once="always")) as crew,
        pytest.raises(LabError, match="3 workers died on one boot"),
    ):
        # A worker takes its time to come back, so few boots kill one.
        _measure(chosen.model_copy(update={"filesystems": ["xfs"], "scaling": []}), kernels, crew, tmp_path)


def test_an_error_of_a_guest_comes_back_from_its_worker(
    tmp_path: Path, kernels: Kernels, chosen: Scenario
) -> None:
    with (
        cluster.local(1, _runner(tmp_path, once="report")) as crew,
        pytest.raises(GuestError, match=r"4 CPUs brd xfs .*, round 1: WARNING: at mm/backing-dev.c"),
    ):
        _measure(chosen, kernels, crew, tmp_path)


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path, kernels: Kernels, chosen: Scenario) -> None:
    kept = Store(AROUND, tmp_path / "kept")
    with pytest.raises(GuestError):
        _measure(chosen, kernels, InTurn(_runner(tmp_path, once="report")), tmp_path, store=kept)
    runner = _runner(tmp_path)
    before = runner.guests()
    assert before == [
        "4cpus-brd-xfs-parallel1-parallel2-128-256-round1",
        "4cpus-brd-xfs-stock-128-256-round1",
    ]
    resumed, said = _measure(chosen, kernels, InTurn(runner), tmp_path, store=kept)
    assert "1 of 10 were measured before and are taken from the cache" in said
    assert len(runner.guests()) == 2 + 9
    whole, _ = _measure(chosen, kernels, InTurn(runner), tmp_path / "whole")
    assert resumed == whole
    # All are there now; a fresh run takes none of them.
    again, said = _measure(chosen, kernels, InTurn(runner), tmp_path, store=kept)
    assert again == whole
    assert "10 of 10 were measured before" in said
    assert len(runner.guests()) == 2 + 9 + 10
    _measure(chosen, kernels, InTurn(runner), tmp_path, store=kept, fresh=True)
    assert len(runner.guests()) == 2 + 9 + 10 + 10


def _task(chosen: Scenario, kernels: Kernels, folder: Path, job: str = samples.JOB) -> Task:
    return boot_task.task(schedule.boots(chosen)[0], chosen, kernels, job, folder)


def test_what_decides_a_result_is_its_identity(tmp_path: Path, kernels: Kernels, chosen: Scenario) -> None:
    one = _task(chosen, kernels, tmp_path)
    same = replace(_task(chosen, kernels, tmp_path / "elsewhere"), kernel=Path("/else"), timeout_s=1)
    assert store.identity(one, AROUND) == store.identity(same, AROUND)
    others = [
        replace(one, kernel_identity="stock j"),
        replace(one, machine="uml"),
        replace(one, cpus=5),
        replace(one, fs="f2fs"),
        replace(one, device="waiting"),
        replace(one, settings={"nwritebacks": "2"}),
        replace(one, round=2),
        replace(one, is_profiled=True),
        _task(chosen, kernels, tmp_path, samples.JOB + "bs=8k\n"),
    ]
    # Of a profile the code that has made it is a part.
    profiled = replace(one, is_profiled=True)
    known = store.identity(profiled, AROUND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "PROFILE", tmp_path)
        assert store.identity(one, AROUND) == store.identity(same, AROUND)
        assert store.identity(profiled, AROUND) != known
    found = {store.identity(other, AROUND) for other in others}
    assert len(found | {store.identity(one, AROUND), store.identity(one, {"qemu": "11"})}) == len(others) + 2


def test_a_boot_that_is_to_be_profiled_leaves_a_profile(
    tmp_path: Path, kernels: Kernels, chosen: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiled = []

    def run(runner: Runner, kernel: Path, command: list[str], **options: Any) -> guest.GuestResult:
        profiled.append(options["results"])
        return runner(kernel, command, **options)

    monkeypatch.setattr(profile, "profiled", run)
    one = _task(chosen, kernels, tmp_path / "one")
    (tmp_path / "log").mkdir()
    for task in (one, replace(one, is_profiled=True, folder=tmp_path / "other")):
        boot_task.run(task, StandIn(tmp_path / "log"))
    [folder] = profiled
    assert folder.name.startswith(".other")


def test_a_host_with_one_core_measures_in_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(store, "qemu", Mock())
    monkeypatch.setattr(store, "vtime", Mock())
    monkeypatch.setattr(store, "output", lambda _: "fio-3")
    monkeypatch.setattr(store, "tool", lambda name, _: name)
    assert int(store.surroundings()["mips"]) > 0


def test_guests_find_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(host, "available_memory_bytes", lambda: 20 << 30)
    assert cluster.places(4096, boots=100) == 4
    assert cluster.places(1024, boots=100) == 8
    assert cluster.places(1024, boots=3) == 3
    assert cluster.places(64 << 10, boots=3) == 1


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:{port}", "nonsense", "tcp://"])
def test_a_scheduler_that_does_not_answer(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        asked = address.format(port=taken.getsockname()[1])
        with (
            pytest.raises(LabError, match=f"scheduler {asked} does not answer within 1 s: expected"),
            cluster.existing(asked, [], _never),
        ):
            pass


def _says_nothing(listener: socket.socket) -> None:
    """Take calls, as far as a system does by itself, and leave it at that."""


def _speaks_http(listener: socket.socket) -> None:
    def answer() -> None:
        while True:
            caller, _ = listener.accept()
            with caller:
                caller.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    threading.Thread(target=answer, daemon=True).start()


@pytest.mark.parametrize("answer", [_says_nothing, _speaks_http])
def test_what_answers_is_no_scheduler(
    answer: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer(listener)
        asked = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            pytest.raises(LabError, match=f"scheduler {asked} does not answer within 1 s: expected"),
            cluster.existing(asked, [], _never),
        ):
            pass


OF_OTHERS = """
import sys
import distributed
{setup}
if __name__ == "__main__":
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        host="tcp://127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    ) as own:
        print(own.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def of_others(folder: Path, setup: str = "") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Hold a cluster of one worker in a process of its own, which ends when its standard input does.

    Args:
        folder: for its program.
        setup: what else its program does first.
    """
    program = folder / "of_others.py"
    program.write_text(OF_OTHERS.format(setup=setup))
    child = subprocess.Popen(
        [sys.executable, str(program)],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin
    assert child.stdout
    with child:
        try:
            yield child.stdout.readline().strip(), child
        finally:
            child.kill()


def first_only(number: int) -> int:
    """Do the first job, and never come to an end of another one."""
    if number:
        time.sleep(3600)
    return number


def _kill(child: subprocess.Popen[str]) -> None:
    child.kill()


def _close(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.close()


LOST = "scheduler {address} was lost or restarted while guests ran: expected it to be there until they end"


@pytest.mark.parametrize("end", [_kill, _close])
def test_scheduler_that_is_lost_ends_a_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    end: Callable[[subprocess.Popen[str]], None],
) -> None:
    done = []
    with (
        of_others(tmp_path) as (address, child),
        pytest.raises(LabError, match=LOST.format(address=address)),
        cluster.existing(address, [], _never) as crew,
    ):
        for number in crew.each(first_only, [0, 1, 2], mem_mib=1):
            done.append(number)
            end(child)
    assert done == [0]
    assert capfd.readouterr().err == ""


def test_scheduler_that_is_lost_before_the_first_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        of_others(tmp_path) as (address, child),
        pytest.raises(LabError, match=LOST.format(address=address)),
        cluster.existing(address, [], _never) as crew,
    ):
        child.kill()
        # As while a kernel is built, which takes longer than to see that the scheduler is gone.
        while crew.client.status != "closed":
            time.sleep(0.05)
        list(crew.each(first_only, [0], mem_mib=1))


def test_error_of_a_job_is_not_taken_for_a_lost_scheduler() -> None:
    with cluster.local(1, _never) as crew, pytest.raises(FileNotFoundError):
        list(crew.each(os.stat, ["/no/such/file"], mem_mib=1))


@dataclass(frozen=True)
class EndsScheduler:
    """Does as another guest does; under the parallel kernel its process goes, which is the scheduler's, too.

    Attributes:
        other: does what a guest does.
        kept: a folder that something is kept in before that.
    """

    other: StandIn
    kept: Path

    def __call__(self, kernel: Path, command: list[str], **options: Any) -> guest.GuestResult:
        if kernel.name == "parallel":
            while not list(self.kept.glob("*/raw.json")):
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        return self.other(kernel, command, **options)


def test_boots_that_ended_before_the_scheduler_was_lost_are_kept(
    tmp_path: Path, kernels: Kernels, chosen: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Store(AROUND, tmp_path / "kept")
    runner = _runner(tmp_path)
    with (
        of_others(tmp_path) as (address, _),
        pytest.raises(LabError, match=rf"(?s){LOST.format(address=address)}.*until then is in .*incomplete"),
        cluster.existing(address, [], EndsScheduler(runner, tmp_path / "kept")) as crew,
    ):
        _measure(chosen, kernels, crew, tmp_path, store=kept)
    ended = len(runner.guests())
    assert ended > 0
    _, said = _measure(chosen, kernels, InTurn(runner), tmp_path, store=kept)
    assert f"{ended} of 10 were measured before" in said


def _never(*_: Any, **__: Any) -> guest.GuestResult:
    raise AssertionError("no guest is to be started")


def test_an_existing_cluster(tmp_path: Path, kernels: Kernels, chosen: Scenario) -> None:
    runner = _runner(tmp_path)
    with cluster.local(2, runner) as own:
        assert isinstance(own, cluster.SideBySide)
        address = own.client.scheduler_info()["address"]
        with cluster.existing(address, [REPO], runner) as crew:
            assert crew.size == 2
            measured, _ = _measure(chosen, kernels, crew, tmp_path)
        assert len(measured) == len(_measure(chosen, kernels, InTurn(runner), tmp_path)[0])
        with (
            pytest.raises(LabError, match="does not see /no/such/file: expected this machine's files"),
            cluster.existing(address, [Path("/no/such/file")], runner),
        ):
            pass


INTERRUPTED = """
import sys, time
from pathlib import Path
from lab.bench import boot_task, cluster
from tests.unit.test_cluster import Sleeper, tasks_of
if __name__ == "__main__":
    runner = Sleeper(Path(sys.argv[1]))
    with cluster.local(2, runner) as crew:
        list(crew.run(tasks_of(Path(sys.argv[1]))))
"""


@dataclass(frozen=True)
class Sleeper:
    """A guest that never ends, and says who runs it."""

    log: Path

    def __call__(self, kernel: Path, command: list[str], **options: Any) -> guest.GuestResult:
        (self.log / f"started.{os.getpid()}").touch()
        time.sleep(3600)
        raise AssertionError("it should have been killed")


def tasks_of(folder: Path) -> list[Task]:
    """Return two tasks of a made-up scenario."""
    (folder / "config").touch()
    stock, parallel = (
        Kernel(folder / name, name, "7.3.4", "i", folder / "config") for name in ("stock", "parallel")
    )
    chosen = samples.small_scenario(guest={"machine": "smp", "cpus": 4}, repetitions=1)
    boots = schedule.boots(chosen)[:2]
    made = {"stock": stock, "parallel": parallel}
    return [boot_task.task(boot, chosen, made, samples.JOB, folder / boot.folder) for boot in boots]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_running(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "main.py"
    script.write_text(INTERRUPTED)
    child = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=REPO,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        while len(started := list(tmp_path.glob("started.*"))) < 2:
            assert child.poll() is None
            time.sleep(0.05)
        # As a terminal does: the signal goes to all of them; SIGKILL to the first only.
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        child.wait(30)
        for path in started:
            _wait_until_gone(int(path.suffix[1:]))
    finally:
        with_group = [child.pid]
        for pid in with_group:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@dataclass(frozen=True)
class FailsBeside:
    """A guest of the stock kernel that fails once there is another one; that never ends."""

    log: Path

    def __call__(self, kernel: Path, command: list[str], **options: Any) -> guest.GuestResult:
        (self.log / f"{kernel.name}.{os.getpid()}").touch()
        while kernel.name == "parallel" or not list(self.log.glob("parallel.*")):
            time.sleep(0.05)
        raise GuestError("no more of it")


def test_a_cluster_of_others_is_left_with_nothing_to_run(tmp_path: Path) -> None:
    runner = FailsBeside(tmp_path)
    with cluster.local(2, runner) as own:
        address = own.client.scheduler_info()["address"]
        with cluster.existing(address, [REPO], runner) as crew:
            with pytest.raises(GuestError, match="no more of it"):
                list(crew.run(tasks_of(tmp_path)))
            [other] = tmp_path.glob("parallel.*")
            _wait_until_gone(int(other.suffix[1:]))
            # The worker is there again, for others.
            own.client.wait_for_workers(2, timeout=60)


def _wait_until_gone(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
