# SPDX-License-Identifier: GPL-2.0
"""A whole bench with a stand-in for the guest."""

from __future__ import annotations

import functools
import io
import json
import shutil
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.bench import bench, boot_task, session
from lab.bench.boot_task import Kernels, Runner, Task
from lab.bench.cluster import Crew, InTurn
from lab.experiment import scenario, schedule
from lab.machine import guest
from lab.result import plots
from lab.tree import build
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util import host
from lab.util.errors import GuestError, LabError
from lab.util.lock import whole_machine
from lab.util.progress import duration
from tests import samples


@pytest.fixture(autouse=True)
def _plots_only_where_looked_at(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.name != "test_a_whole_bench":
        monkeypatch.setattr(plots, "draw", lambda folder, cells: [])


@pytest.fixture
def kernels(tmp_path: Path) -> Kernels:
    config = tmp_path / "config"
    config.write_text("CONFIG_UML=y\n")

    def kernel(flavour: str) -> Kernel:
        return Kernel(path=tmp_path / flavour, flavour=flavour, version="7.3.4", identity="i", config=config)

    return {name: kernel(name) for name in ("stock", "prepared", "parallel")}


class FakeGuest:
    """Does as guest/load.py does: reads the plan, leaves figures; several contexts are twice as fast."""

    def __init__(self, mend: Callable[[dict[str, Any], dict[str, Any]], None] | None = None) -> None:
        self.calls: list[dict[str, Any]] = []
        self.mend = mend

    def __call__(
        self, kernel: Path, command: list[str], *, results: Path | None, **options: Any
    ) -> guest.GuestResult:
        assert results is not None
        plan = json.loads((results / "plan.json").read_text())
        self.calls.append({"kernel": kernel.name, "command": command, "plan": plan, **options})
        runs = []
        for run in plan["runs"]:
            contexts = ({**(options["settings"] or {}), **run["settings"]}).get("nwritebacks", "1")
            is_fast = kernel.name == "parallel" and contexts != "1"
            runs.append(samples.run(8, mib_s=200.0 if is_fast else 100.0, name=run["name"]))
        raw = samples.raw(*runs).model_dump(mode="json")
        if options["device_count"] == 2:
            for run in raw["runs"]:
                for sample in run["samples"]:
                    sample["sectors"] *= 2
        if self.mend:
            self.mend(raw, self.calls[-1])
        (results / "raw.json").write_text(json.dumps(raw))
        for run in raw["runs"]:
            shutil.copy(samples.FIXTURES / "fio-group.json", results / run["fio_json"])
        return guest.GuestResult(status=0, console="booted\n", seconds=1.0, output="")


def _measure(
    chosen: scenario.Scenario,
    kernels: Kernels,
    runner: Runner,
    root: Path,
    *,
    budget_s: float | None = None,
    crew: Callable[[Runner], Crew] = InTurn,
) -> tuple[Path, list[dict[str, Any]], str]:
    out = io.StringIO()
    folder = session.measure(
        chosen,
        kernels,
        job_folder=root,
        crew=crew(runner),
        root=root / "results",
        console=Console(file=out, width=140),
        budget_s=budget_s,
    )
    return folder, json.loads((folder / "summary.json").read_text()), out.getvalue()


def test_every_mode_of_ag_aware_writeback_is_tried(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1, 2],
        ag_modes=["off", "ag-hint"],
        prepare="touch prepared",
        bounds=[],
        repetitions=1,
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    _, cells, _ = _measure(chosen, kernels, runner, tmp_path)
    stock, off, hint, *_ = [call["plan"]["prepare"] for call in runner.calls]
    assert stock == "touch prepared"
    assert "echo off > /sys/fs/xfs/" in off
    assert "echo ag-hint > /sys/fs/xfs/" in hint
    assert hint.endswith("touch prepared")
    assert [cell["ag_mode"] for cell in cells] == [None, "off", "ag-hint", "off", "ag-hint"]
    assert all(cell["ratio_to_stock"] for cell in cells)


def test_every_placement_is_tried_beside_stock(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1],
        placements=["base", "stream"],
        files={"names": ["a"], "size_mib": 4, "empty": True},
        bounds=[],
        repetitions=1,
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    _, cells, _ = _measure(chosen, kernels, runner, tmp_path)
    assert [call["plan"]["placement"] for call in runner.calls] == [None, "base", "stream"]
    assert [cell["placement"] for cell in cells] == [None, "base", "stream"]


def test_patches_that_only_prepare_are_a_kernel_of_their_own(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1],
        prepared=True,
        bounds=[],
        repetitions=1,
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    assert chosen.flavours == ("stock", "prepared", "parallel")
    folder, cells, _ = _measure(chosen, kernels, runner, tmp_path)
    assert [(call["kernel"], call["settings"]) for call in runner.calls] == [
        ("stock", {}),
        ("prepared", {}),
        ("parallel", {"nwritebacks": "1"}),
    ]
    assert [cell["kernel"] for cell in cells] == ["stock", "prepared", "parallel"]
    assert cells[1]["ratio_to_stock"]
    assert set(json.loads((folder / "meta.json").read_text())["kernels"]) == set(chosen.flavours)


def test_a_whole_bench(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    folder, cells, shown = _measure(samples.small_scenario(), kernels, runner, tmp_path)
    assert (tmp_path / "results" / "latest").resolve() == folder.resolve()
    assert len(cells) == 2 * (2 * 4 + 1)
    cell = next(c for c in cells if c["contexts"] == 2 and c["dirty_limit_mib"] == 256 and c["fs"] == "ext4")
    assert cell["kernel"] == "parallel"
    assert cell["runs"] == 2
    assert (cell["ratio_to_stock"], cell["ratio_to_bdis"], cell["ratio_to_direct"]) == (2, 1, 2)
    assert (folder / cell["raw"][0]).exists()
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["kernels"]["parallel"]["identity"] == "i"
    assert meta["dirty_settings"]["limit-128"] == {"dirty_bytes": 128 << 20}
    assert meta["scenario"]["name"] == "small"
    for name in ("table.md", "throughput-nolat.png", "dirty-nolat.png", "latency-nolat.png"):
        assert (folder / name).stat().st_size > 0
    assert "[1/16] nolat xfs stock, round 1: 100 / 100 / 100 MiB/s" in shown
    # One context is as fast as two here: it is not recommended, and the null beside the gain tells.
    [said] = [line for line in shown.splitlines() if "xfs on nolat: at 128 MiB" in line]
    assert "not judged: 2.00x stock with 2 contexts, too few rates for an interval, null ±0.0%" in said
    assert "interrupted" not in (folder / "index.html").read_text()


def test_boots_from_the_cache_are_not_among_those_that_will_run(tmp_path: Path, kernels: Kernels) -> None:
    chosen = _job()
    first, *others = schedule.boots(chosen)
    out = io.StringIO()
    made = session._Session(
        chosen, kernels, tmp_path, "", InTurn(FakeGuest()), Console(file=out), boots=[first, *others]
    )
    made.found.append(first)
    total = len(others) + 1
    left = duration(sum(boot.estimate_s for boot in others))
    assert session._beginning(made, made.boots) == (
        f"small: {len(others)} boots, about {left}; 1 of {total} were measured before and are taken from the "
        "cache (--fresh measures them again)"
    )


def _job(**changes: Any) -> scenario.Scenario:
    """Return the scenario of a small job of one's own."""
    limits = [{"mib": 128, "ramp_s": 2, "window_s": 4}]
    own: dict[str, Any] = {
        "filesystems": ["xfs"],
        "files": None,
        "repetitions": 1,
        "limits": limits,
        "parts": 4,
        "job": {"text": f"{samples.JOB}numjobs=2\n"},
    }
    return samples.small_scenario(**own | changes)


def test_a_budget_is_spent_on_what_else_may_be_set(tmp_path: Path, kernels: Kernels) -> None:
    folder, cells, shown = _measure(_job(), kernels, FakeGuest(), tmp_path, budget_s=600)
    assert "so far, xfs at 128 MiB: best at 2 contexts, 2.00x stock [" in shown
    assert "small, round 2: " in shown
    tried = {
        (cell["contexts"], cell["affinity"], cell["workers"]) for cell in cells if cell["kernel"] != "stock"
    }
    assert {(2, "rotor", None), (2, None, 8), (None, None, None)} <= tried
    assert json.loads((folder / "meta.json").read_text())["budget_s"] == 600


@pytest.mark.parametrize(("places", "filesystems"), [(1, {"xfs"}), (99, {"xfs", "ext4"})])
def test_further_rounds_are_of_one_filesystem_unless_places_were_idle(
    tmp_path: Path, kernels: Kernels, places: int, filesystems: set[str]
) -> None:
    crew = functools.partial(InTurn, size=places)
    chosen = _job(filesystems=["xfs", "ext4"])
    folder, _, _ = _measure(chosen, kernels, FakeGuest(), tmp_path, budget_s=600, crew=crew)
    second = [one.name for one in (folder / "raw").iterdir() if one.name.endswith("-round2")]
    assert {name.split("-")[1] for name in second} == filesystems


def test_one_file_is_not_measured_over_and_over(tmp_path: Path, kernels: Kernels) -> None:
    _, _, shown = _measure(_job(job={"text": samples.JOB}), kernels, FakeGuest(), tmp_path, budget_s=600)
    assert "round 2" not in shown
    assert "not tried, for the job writes one file" in " ".join(shown.split())


def test_what_the_budget_did_not_reach_is_said(tmp_path: Path, kernels: Kernels) -> None:
    _, cells, shown = _measure(_job(), kernels, FakeGuest(), tmp_path, budget_s=1e-9)
    assert [cell["variant"] for cell in cells] == ["stock", "direct"]
    assert (
        "left out on xfs in round 1, device nolat, for the time was up (--budget gives more): 2 contexts; "
    ) in shown


def test_guests_get_the_settings_of_their_cell(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    _measure(samples.small_scenario(filesystems=["f2fs"], repetitions=1), kernels, runner, tmp_path)
    stock, one, two, bdis = runner.calls
    assert [call["kernel"] for call in runner.calls] == ["stock", "parallel", "parallel", "stock"]
    assert [call["settings"] for call in runner.calls] == [{}, {"nwritebacks": "1"}, {"nwritebacks": "2"}, {}]
    assert (bdis["device_count"], bdis["device_size_mib"], bdis["plan"]["devices"]) == (2, 2560, 2)
    assert (one["device_count"], one["device_size_mib"], one["plan"]["devices"]) == (1, 5120, 1)
    assert [run["name"] for run in stock["plan"]["runs"]] == ["limit-128", "limit-256", "direct"]
    assert [run["name"] for run in two["plan"]["runs"]] == ["limit-128", "limit-256"]
    assert stock["plan"]["runs"][0]["env"] == {
        "RAMP_S": "2000ms",
        "WINDOW_S": "4000ms",
        "CPUS": "2",
        "FILE_MIB": "4",
        "FILES": "0",
    }
    assert two["plan"]["runs"][0]["settings"] == {"nwritebacks": "2"}
    assert stock["command"][-2:] == ["guest.load", "/results/plan.json"]


def test_the_kernel_gets_the_time_to_find_the_number(tmp_path: Path, kernels: Kernels) -> None:
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=["auto", 1],
        affinities=["ino"],
        bounds=[],
        repetitions=1,
        limits=[{"mib": 128, "ramp_s": 1, "window_s": 5}],
    )
    runner = FakeGuest()
    _measure(chosen, kernels, runner, tmp_path)
    _, auto, one = runner.calls
    assert auto["settings"] == {"nwritebacks": "auto", "wb_affinity": "ino"}
    assert one["settings"] == {"nwritebacks": "1"}
    assert (auto["plan"]["runs"][0]["env"]["RAMP_S"], one["plan"]["runs"][0]["env"]["RAMP_S"]) == (
        "3000ms",
        "1000ms",
    )


def test_a_run_that_counts_an_amount_ends_with_it(tmp_path: Path, kernels: Kernels) -> None:
    limit = {"mib": 128, "ramp_s": 1, "window_s": 9, "between_mib": [100, 300]}
    chosen = samples.small_scenario(filesystems=["f2fs"], repetitions=1, limits=[limit], bounds=[])
    runner = FakeGuest()
    _measure(chosen, kernels, runner, tmp_path)
    assert {call["plan"]["runs"][0]["stop_mib"] for call in runner.calls} == {300}
    [boot, *_] = schedule.boots(chosen)
    assert boot.estimate_s == pytest.approx(schedule.BOOT_ESTIMATE_S + 300 / 250 + 0.8 + 128 / 250)


def test_separate_bdis_share_the_cpus_that_mkfs_is_told(kernels: Kernels, tmp_path: Path) -> None:
    chosen = scenario.load("headline")
    told = {
        boot.setting.variant: boot_task.task(boot, chosen, kernels, "", tmp_path).mkfs
        for boot in schedule.boots(chosen)
        if boot.fs == "xfs"
    }
    assert told["stock"] == told["parallel"] == ["-d", "agcount=8"]
    # mkfs.xfs refuses a single AG, and eight leave no room for the log of a small device.
    assert told["bdis"] == ["-d", "agcount=2"]


def test_guests_get_affinity_layout_and_mkfs_options(tmp_path: Path, kernels: Kernels) -> None:
    runner = FakeGuest()
    chosen = samples.small_scenario(
        filesystems=["xfs", "ext4"],
        contexts=[8],
        affinities=["ino"],
        workers=[4],
        prepare="touch prepared",
        bounds=[],
        repetitions=1,
        mkfs={"xfs": ["-d", "agcount=4"]},
        files={"names": ["d/a"], "size_mib": 4, "empty": True, "layouts": ["skewed"], "modulus": 8},
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    _, cells, _ = _measure(chosen, kernels, runner, tmp_path)
    stock, ours, ext4, _ = runner.calls
    assert stock["settings"] == {}
    assert ours["settings"] == {"nwritebacks": "8", "wb_affinity": "ino", "wb_workers": "4"}
    assert (stock["mkfs"], ext4["mkfs"]) == (["-d", "agcount=4"], [])
    told = [ours["plan"][key] for key in ("files", "empty", "inodes", "modulus", "prepare")]
    assert told == [["d/a"], True, "skewed", 8, "touch prepared"]
    assert cells[1]["workers"] == 4
    assert [(cell["affinity"], cell["layout"]) for cell in cells[:2]] == [(None, "skewed"), ("ino", "skewed")]
    assert cells[1]["ratio_to_stock"] == 2


def test_jobs_reach_the_guest_unmodified_and_the_bound_derived(tmp_path: Path, kernels: Kernels) -> None:
    chosen = samples.small_scenario(files=None, filesystems=["xfs"], contexts=[1], repetitions=1)
    folder, _, _ = _measure(chosen, kernels, FakeGuest(), tmp_path)
    where = folder / "raw" / "nolat-xfs-stock-128-round1"
    assert (where / "job.fio").read_text() == samples.JOB
    assert "direct=1" in (where / "direct.fio").read_text()
    assert "create_only=1" in (where / "layout.fio").read_text()


def test_files_that_come_as_the_job_runs_are_not_laid_out_but_for_several_devices(
    tmp_path: Path, kernels: Kernels
) -> None:
    text = samples.JOB + "create_on_open=1\nnrfiles=${FILES}\n"
    job = {"text": text, "total_files": 100}
    chosen = samples.small_scenario(files=None, filesystems=["xfs"], contexts=[1], repetitions=1, job=job)
    runner = FakeGuest()
    _measure(chosen, kernels, runner, tmp_path)
    has_layout = {(call["device_count"], call["plan"]["layout_job"] is not None) for call in runner.calls}
    assert has_layout == {(1, False), (2, True)}
    assert {run["env"]["FILES"] for call in runner.calls for run in call["plan"]["runs"]} == {"50"}


def test_a_failing_job_is_an_error_and_latest_stays(tmp_path: Path, kernels: Kernels) -> None:
    good, _, _ = _measure(samples.small_scenario(), kernels, FakeGuest(), tmp_path)

    def fail(raw: dict[str, Any], call: dict[str, Any]) -> None:
        if call["kernel"] == "parallel":
            raw.update(runs=[], failure="fio failed in run limit-128: fio: no space")

    with pytest.raises(LabError, match=r"nolat xfs 1 context, round 1: fio failed .*no space") as caught:
        _measure(samples.small_scenario(), kernels, FakeGuest(fail), tmp_path)
    assert (tmp_path / "results" / "latest").resolve() == good.resolve()
    [kept] = (tmp_path / "results").glob("*.incomplete")
    assert str(kept) in str(caught.value)
    # What was measured before the failure is not lost.
    assert {cell["variant"] for cell in json.loads((kept / "summary.json").read_text())} == {
        "stock",
        "direct",
    }


def test_a_guest_error_says_where_and_what(tmp_path: Path, kernels: Kernels) -> None:
    def broken(*_: Any, **__: Any) -> guest.GuestResult:
        raise GuestError("WARNING: CPU: 0 at mm/backing-dev.c")

    with pytest.raises(GuestError, match=r"nolat xfs stock, round 1: WARNING: CPU: 0"):
        _measure(samples.small_scenario(), kernels, broken, tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_whatever_ends_a_run_keeps_what_was_measured(
    tmp_path: Path, kernels: Kernels, error: type[BaseException]
) -> None:
    with pytest.raises(error):
        _measure(samples.small_scenario(), kernels, FakeGuest(_raiser("stock", error)), tmp_path)
    [kept] = (tmp_path / "results").iterdir()
    assert kept.name.endswith(".incomplete")
    assert json.loads((kept / "summary.json").read_text()) == []


def _raiser(kernel: str, error: type[BaseException]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def fail(raw: dict[str, Any], call: dict[str, Any]) -> None:
        if call["kernel"] == kernel:
            raise error

    return fail


def test_what_is_killed_has_kept_what_was_measured(tmp_path: Path, kernels: Kernels) -> None:
    found: list[set[str]] = []

    def look(raw: dict[str, Any], call: dict[str, Any]) -> None:
        for path in (tmp_path / "results").glob("*.incomplete/summary.json"):
            found.append({cell["variant"] for cell in json.loads(path.read_text())})

    _measure(samples.small_scenario(bounds=[]), kernels, FakeGuest(look), tmp_path)
    assert found[:2] == [{"stock"}, {"stock", "parallel"}]


def test_an_error_ends_what_the_crew_still_runs(tmp_path: Path, kernels: Kernels) -> None:
    ended: list[str] = []

    class Told(InTurn):
        def run(self, tasks: Sequence[Task], go_on: Callable[[], bool] | None = None) -> Generator[Task]:
            try:
                yield from super().run(tasks, go_on)
            finally:
                ended.append("ended")

    def fail(raw: dict[str, Any], call: dict[str, Any]) -> None:
        raw.update(runs=[], failure="fio: no space")

    with pytest.raises(LabError, match="no space") as caught:
        _measure(samples.small_scenario(), kernels, FakeGuest(fail), tmp_path, crew=Told)
    # Before the error is told, which holds what was running.
    assert caught and ended == ["ended"]


def test_what_a_longer_run_has_written_is_compared_with_nothing(tmp_path: Path, kernels: Kernels) -> None:
    limits = [{"mib": 128, "ramp_s": 1, "window_s": 5}]
    chosen = _job(guest={"machine": "smp", "cpus": 2}, contexts=["auto", 2], bounds=[], limits=limits)
    runner = FakeGuest()
    _, found, _ = _measure(chosen, kernels, runner, tmp_path)
    stops = [call["plan"]["runs"][0]["stop_s"] for call in runner.calls]
    assert stops == [6, 6 + schedule.CLIMB_S, 6]
    stock, auto, two = found
    assert auto["contexts"] is None
    for figure in session.OF_THE_WHOLE_RUN:
        assert figure not in auto
    # What fio tells of a run is told of the whole.
    told = {"latency_mean_us", "latency_p99_us", "slowest_job_mib_s", "read_mib_s", "read_latency_p99_us"}
    assert told < {*session.OF_THE_WHOLE_RUN}
    for figure in ("latency_p99_us", "sync_s", "extents"):
        assert stock[figure]["median"] == two[figure]["median"] > 0
    assert auto["flusher_cpu_s_per_gib"]["median"] > 0
    assert auto["ratio_to_stock"] == 2


def test_a_bound_that_does_not_work_costs_only_the_bound(tmp_path: Path, kernels: Kernels) -> None:
    def fail(raw: dict[str, Any], call: dict[str, Any]) -> None:
        if call["plan"]["devices"] > 1:
            raw.update(runs=[], failure="two of it")
        elif call["plan"]["runs"][-1]["name"] == "direct":
            raw["runs"].pop()
            raw["failure"] = "fio: bad block size for direct"

    _, cells, shown = _measure(samples.small_scenario(), kernels, FakeGuest(fail), tmp_path)
    assert {cell["variant"] for cell in cells} == {"stock", "parallel"}
    assert "no bound from separate BDIs: two of it" in shown
    assert "no bound from direct I/O: fio: bad block size" in shown


def test_jobs_that_use_one_device_of_two_are_no_bound(tmp_path: Path, kernels: Kernels) -> None:
    def one_sided(raw: dict[str, Any], call: dict[str, Any]) -> None:
        if call["plan"]["devices"] > 1:
            for run in raw["runs"]:
                for sample in run["samples"]:
                    sample["sectors"][1] = 0

    _, cells, shown = _measure(samples.small_scenario(), kernels, FakeGuest(one_sided), tmp_path)
    assert "bdis" not in {cell["variant"] for cell in cells}
    assert "cannot be spread" in shown


def test_ram_disks_that_count_together_are_no_bound_if_one_gets_all(tmp_path: Path, kernels: Kernels) -> None:
    def one_sided(raw: dict[str, Any], call: dict[str, Any]) -> None:
        if call["plan"]["devices"] > 1:
            for run in raw["runs"]:
                run["written_kib"] = [4096, 0]
                for sample in run["samples"]:
                    sample["sectors"] = [sum(sample["sectors"])]

    _, cells, shown = _measure(samples.small_scenario(), kernels, FakeGuest(one_sided), tmp_path)
    assert "bdis" not in {cell["variant"] for cell in cells}
    assert "cannot be spread" in shown


def test_no_figures_shows_what_the_guest_printed(tmp_path: Path, kernels: Kernels) -> None:
    def silent(*_: Any, **__: Any) -> guest.GuestResult:
        return guest.GuestResult(status=127, console="", seconds=0, output="python3: command not found")

    with pytest.raises(LabError, match="status 127, no figures: python3: command not found"):
        _measure(samples.small_scenario(), kernels, silent, tmp_path)


SOURCE = Source(path=Path("/nowhere"), version="7.3.4", series="7.3", identity="s")


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(flavour: str, source: Source, machine: str = "uml") -> Kernel:
        raise AssertionError("bad input must be found before anything is built")

    monkeypatch.setattr(build, "build", refuse)
    monkeypatch.setattr(host, "check", lambda need: None)
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("no_build")
def test_bad_names_are_found_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="unknown scenario 'headlime': expected headline"):
        bench.bench("headlime", source=SOURCE)
    job = tmp_path / "j.fio"
    job.write_text("[x]\nrw=randwrte\n")
    with pytest.raises(LabError, match="unknown device 'nolatt': expected nolat"):
        _run_job(job, "nolatt")
    with pytest.raises(LabError, match=r"job j: fio refuses it: .*randwrte"):
        _run_job(job, "nolat")


@pytest.mark.usefixtures("no_build")
def test_two_benches_at_once(tmp_path: Path) -> None:
    with (
        whole_machine("measuring"),
        pytest.raises(LabError, match="two runs at once"),
    ):
        bench.bench(source=SOURCE)


def test_kernels_that_are_built_first_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kernels: Kernels
) -> None:
    def refuse(*_: object) -> Kernel:
        raise LabError("enough")

    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(bench, "check", lambda *_: None)
    monkeypatch.setattr(build, "build", refuse)
    monkeypatch.setattr(build, "find", lambda name, *_: (kernels["stock"], name == "stock"))
    with pytest.raises(LabError, match="enough"):
        bench.bench(source=SOURCE)
    assert "built first, a quarter of an hour for each on two cores: parallel\n" in capsys.readouterr().out


def _run_job(job: Path, device: str) -> Path:
    return bench.run_job(
        job,
        fs=["xfs"],
        device=device,
        contexts=[2],
        dirty_limits_mib=[128],
        machine="uml",
        cpus=2,
        memory_mib=8192,
        budget_min=15,
        source=SOURCE,
    )


def test_the_hosts_room_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    needs: list[host.Need] = []
    monkeypatch.setattr(host, "check", needs.append)
    bench.check(samples.small_scenario(guest={"cpus": 2, "mem_mib": 4096, "device_mib": 2048}), Path())
    assert [(need.cpus, need.guest_mem_bytes) for need in needs] == [(2, 4 << 30)]


def test_everything_is_checked_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        bench, "check", lambda chosen, folder, where: order.append(("check", chosen.name, chosen.repetitions))
    )

    def run(name: str, *, full: bool, source: Source, **_: Any) -> Path:
        order.append(("run", name))
        return Path(name)

    monkeypatch.setattr(bench, "bench", run)
    names = ["t2", "blocked"]
    assert bench.bench_all(names, full=True, source=SOURCE) == [Path(name) for name in names]
    # As --full runs them.
    checks = [("check", name, scenario.load(name).expanded().repetitions) for name in names]
    assert order == [*checks, ("run", "t2"), ("run", "blocked")]
