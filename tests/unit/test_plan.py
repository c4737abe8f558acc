# SPDX-License-Identifier: GPL-2.0
"""What a run of a job would boot: which kernels are built, and what the cache has."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.bench import boot_task, cluster, plan
from lab.bench.bench import HERE, Where
from lab.bench.boot_task import Kernels
from lab.bench.search import WHAT_ELSE
from lab.bench.store import Store
from lab.experiment import fiojob, jobfile, schedule
from lab.experiment.scenario import Machine
from lab.machine.hardware import Hardware
from lab.tree import build
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.util import host
from lab.util.paths import REPO

SOURCE = Source(Path("/tree"), "7.3.4", "7.3", "ab")
SETTINGS: dict[str, Any] = {
    "fs": ["xfs"],
    "device": "nolat",
    "contexts": [2],
    "dirty_limits_mib": [128],
    "machine": "smp",
    "cpus": 2,
    "memory_mib": 2048,
}


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    """Return kernels of which the stock one is built, on a host with room."""

    def kernel(flavour: str) -> Kernel:
        return Kernel(tmp_path / flavour, flavour, "7.3.4", flavour, tmp_path / "config", "smp", change="c")

    def find(flavour: str, source: Source, machine: Machine) -> tuple[Kernel, bool]:
        assert (source, machine) == (SOURCE, "smp")
        return kernel(flavour), flavour == "stock"

    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "find", find)
    monkeypatch.setattr(host, "check", lambda _: None)
    monkeypatch.setattr(Hardware, "check", lambda _: None)
    return {name: kernel(name) for name in ("stock", "parallel")}


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "mine.fio"
    path.write_text("[a]\nrw=randwrite\nsize=1m\n")
    return path


def _said(job: Path, source: Source | None, where: Where = HERE) -> list[str]:
    return plan.plan(job, budget_min=15, source=source, where=where, **SETTINGS).splitlines()


def test_what_is_built_and_what_the_cache_has_is_said(
    job: Path, kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "known_surroundings", lambda: {"qemu": "10"})
    chosen = jobfile.scenario_of(job, **SETTINGS)
    [stock, *_] = schedule.boots(chosen)
    text = fiojob.inlined(chosen.name, chosen.job.text, tmp_path)
    task = boot_task.task(stock, chosen, kernels, text, tmp_path / "boot")
    task.folder.mkdir()
    Store({"qemu": "10"}).keep(task)

    first, second, whole, answer, built, *_ = _said(job, SOURCE)
    assert first == "2 CPUs nolat xfs stock: in the cache"
    assert second.startswith("2 CPUs nolat xfs 2 contexts: about ")
    assert whole.startswith("fio job file mine.fio: 1 boots, ")
    assert whole.endswith(" (1 more from the cache, --fresh measures them again)")
    # What the cache has of stock is not waited for.
    assert answer == f"first answer after {second.removeprefix('2 CPUs nolat xfs 2 contexts: ')}"
    assert built.endswith(" for each on two cores: parallel")
    monkeypatch.setattr(build, "find", lambda *_: (kernels["stock"], True))
    assert not any("not built" in line for line in _said(job, SOURCE))
    # Not what is another boot, what is to be measured again, and what nobody knows yet.
    for source, where in (
        (SOURCE, replace(HERE, profiled=True)),
        (SOURCE, replace(HERE, fresh=True)),
        (None, HERE),
    ):
        said = _said(job, source, where)
        assert said[0].startswith("2 CPUs nolat xfs stock: about ")
        assert said[2].startswith("fio job file mine.fio: 2 boots, ")
    assert said[5].endswith(" for each on two cores")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("numjobs", "is_said"), [(1, False), (2, True)])
def test_further_boots_are_said_of_a_job_that_gets_them(job: Path, numjobs: int, is_said: bool) -> None:
    job.write_text(f"[a]\nrw=randwrite\nsize=1m\nnumjobs={numjobs}\n")
    assert any("further boot" in line for line in _said(job, SOURCE)) == is_said


@pytest.mark.usefixtures("kernels")
def test_without_a_qemu_nothing_is_known_of_the_cache(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PWB_QEMU", raising=False)
    assert _said(job, SOURCE)[0].startswith("2 CPUs nolat xfs stock: about ")


def test_a_source_that_is_not_there_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path))
    assert plan.source_at_hand(None, None) is None
    tree = tmp_path / "source" / "linux-7.2-1"
    tree.mkdir(parents=True)
    (tree / ".pwb-source.json").write_text('{"version": "1"}')
    found = plan.source_at_hand(None, "7.2")
    assert found is not None
    assert found.path == tree


def _usual(job: Path, places: int, budget_min: float, **settings: Any) -> list[str]:
    """Return what is said with the command's own settings, where no others are given."""
    usual: dict[str, Any] = {
        "fs": ["xfs", "ext4", "f2fs"],
        "device": "brd",
        "contexts": [1, 2, 4, 8],
        "dirty_limits_mib": [128],
        "machine": "smp",
        "cpus": 8,
        "memory_mib": 8192,
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cluster, "places", lambda *_: places)
        return plan.plan(job, budget_min=budget_min, **(usual | settings)).splitlines()


def _answer(job: Path, places: int, budget_min: float, **settings: Any) -> list[str]:
    """Return what is said of the first answer."""
    said = _usual(job, places, budget_min, **settings)
    return [line for line in said if line.startswith("first answer after about ")]


def _then(budget_min: float, **settings: Any) -> str:
    """Return what is said of the time after the first round of a usual job, two boots side by side."""
    said = _usual(REPO / "examples" / "overwrite.fio", 2, budget_min, **settings)
    [then] = [line for line in said if line.startswith("then ")]
    return then


@pytest.mark.usefixtures("kernels")
def test_how_many_further_boots_fit_is_said_and_what_budget_all_of_them_need() -> None:
    usual = _then(15)
    assert usual.startswith("then about 4 further boots fit into the 15 min 0 s of --budget: one filesystem ")
    need = re.search(r"which need --budget (\d+) for the first verdict, (\d+) for all 3$", usual)
    assert need
    first, whole = map(int, need.groups())
    assert 15 < first < whole
    # So much is enough, and not much more than that: of three searches of nine boots.
    assert _then(whole).startswith("then 27 or more further boots fit ")
    assert " need " not in _then(whole)
    assert " need " in _then(whole - 2)
    assert _then(first, fs=["xfs"]).startswith("then 9 or more further boots fit ")


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("budget_min", [1, 10, 13])
def test_a_budget_that_leaves_nothing_for_further_boots_is_said_so(budget_min: float) -> None:
    need = _then(15).partition(", which ")[2]
    assert _then(budget_min) == (
        f"then no further boot fits into the {budget_min} min 0 s of --budget: {WHAT_ELSE} {need}"
    )
    assert re.search(r" need --budget \d+$", _then(1, fs=["xfs"]))


def _seconds(answer: str) -> int:
    minutes, seconds = answer.removeprefix("first answer after about ").removesuffix(" s").split(" min ")
    return 60 * int(minutes) + int(seconds)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", ["mail", "overwrite"])
def test_the_first_answer_of_a_usual_run_takes_two_minutes_at_most(name: str) -> None:
    job = REPO / "examples" / f"{name}.fio"
    [answer] = _answer(job, 2, 15)
    assert 60 < _seconds(answer) <= 120
    # One after the other, and where they take longer.
    for places, settings in ((1, {}), (2, {"cpus": 32}), (2, {"device": "disk"})):
        [other] = _answer(job, places, 15, **settings)
        assert _seconds(other) > 1.5 * _seconds(answer)


@pytest.mark.usefixtures("kernels")
def test_the_first_answer_takes_stock_and_a_setting_to_judge(job: Path) -> None:
    [early] = _answer(job, 1, 15, contexts=[2])
    assert _answer(job, 1, 15, contexts=[1, 2]) == [early]
    assert _answer(job, 1, 1, contexts=[2]) == []
