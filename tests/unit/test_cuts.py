# SPDX-License-Identifier: GPL-2.0
"""Power cuts: how they are dealt out to guests, and the table of what they found."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

from lab import cli
from lab.bench import cluster
from lab.cli import proving
from lab.machine import guest
from lab.machine.guest import GuestResult
from lab.proof import cuts
from lab.proof.cuts import Outcome
from lab.result import provenance
from lab.tree import build, source
from lab.tree.build import Kernel
from lab.util.errors import GuestError
from tests.unit.test_cluster import LOST, of_others

FOUND = Outcome(
    fs="xfs",
    kernel="parallel",
    machine="uml",
    cpus=2,
    seed=1,
    cuts=50,
    promised=3000,
    longer=1,
    mended=0,
    passes=1200,
    lost=[],
    host_s=1800.0,
)
JOB = cuts.Job(Path("/kernel"), "parallel", "uml", 2, "xfs", seed=1, cuts=3)


def test_cuts_are_dealt_out_to_boots_with_seeds_of_their_own() -> None:
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", Path("config"))
    wanted = cuts.jobs(kernel, ["xfs", "ext4"], cpus=2, cuts=120, seed=7)
    dealt = [(job.fs, job.seed, job.cuts) for job in wanted]
    assert dealt == [
        ("xfs", 7, 50),
        ("ext4", 7, 50),
        ("xfs", 8, 50),
        ("ext4", 8, 50),
        ("xfs", 9, 20),
        ("ext4", 9, 20),
    ]


def test_outcomes_come_together_in_a_table(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    cuts.keep([FOUND], kernel, tmp_path)
    again = replace(FOUND, promised=4000)
    more = [again, replace(FOUND, seed=2, lost=["a file"]), replace(FOUND, fs="f2fs")]
    cuts.keep(more, kernel, tmp_path)
    assert (tmp_path / provenance.TABLE).read_text().splitlines()[2:] == [
        "| parallel | uml | f2fs | 1 to 1 | 2 | 50 | 3,000 | 0 | 0 | 1 | 0 | 1,200 | 0.50 |",
        "| parallel | uml | xfs | 1 to 2 | 2 | 100 | 7,000 | 1 | 1 | 2 | 0 | 2,400 | 1.00 |",
    ]


def test_what_a_seed_has_lost_is_there_when_it_loses_nothing_later(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    lost = [replace(FOUND, lost=[what]) for what in ("a file", "another", "another")]
    for outcome in (*lost, FOUND, FOUND):
        cuts.keep([outcome], kernel, tmp_path)
    assert (tmp_path / provenance.TABLE).read_text().splitlines()[2:] == [
        "| parallel | uml | xfs | 1 to 1 | 2 | 150 | 9,000 | 2 | 2 | 3 | 0 | 3,600 | 1.50 |"
    ]


def test_how_many_cuts_had_a_setting_stands_below() -> None:
    noted = replace(FOUND, settings={"nwritebacks auto": 13, "mode rotor": 9})
    text = cuts.table([noted, replace(noted, seed=2), replace(FOUND, fs="ext4", settings={"mode off": 1})])
    assert text.splitlines()[-6:] == [
        "",
        "| setting | ext4 | xfs |",
        "|---|---:|---:|",
        "| mode off | 1 | 0 |",
        "| mode rotor | 0 | 18 |",
        "| nwritebacks auto | 0 | 26 |",
    ]
    assert "setting" not in cuts.table([FOUND])


def test_how_often_a_filesystem_took_what_it_may_refuse_stands_below() -> None:
    text = cuts.table([replace(FOUND, taken={"stream": 1200}), replace(FOUND, fs="ext4")])
    assert text.splitlines()[-4:] == [
        "",
        "| taken | ext4 | xfs |",
        "|---|---:|---:|",
        "| stream | 0 | 1,200 |",
    ]


def test_a_result_names_the_commands_of_all_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    for fs in ("xfs", "ext4", "ext4"):
        monkeypatch.setattr("sys.argv", ["pwb", "cuts", "--fs", fs])
        cuts.keep([replace(FOUND, fs=fs)], kernel, tmp_path)
    command = json.loads((tmp_path / provenance.META).read_text())["command"]
    assert command == "./pwb cuts --fs xfs && ./pwb cuts --fs ext4"


def test_what_is_added_without_a_command_line_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    for argv in (["pwb", "cuts", "--fs", "xfs"], ["-c"]):
        monkeypatch.setattr("sys.argv", argv)
        cuts.keep([replace(FOUND, seed=len(argv))], kernel, tmp_path)
    assert json.loads((tmp_path / provenance.META).read_text())["command"] == "./pwb cuts --fs xfs"


def test_outcomes_of_another_kernel_are_left_behind(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    # What the clone holds by the time a result is written is not what was measured.
    earlier, later = (
        Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config, change=of) for of in ("a", "b")
    )
    cuts.keep([FOUND], earlier, tmp_path)
    cuts.keep([replace(FOUND, fs="ext4")], earlier, tmp_path)
    table, meta = tmp_path / provenance.TABLE, tmp_path / provenance.META
    assert "xfs" in table.read_text()
    cuts.keep([replace(FOUND, fs="f2fs")], later, tmp_path)
    assert "xfs" not in table.read_text()
    assert json.loads(meta.read_text())["change"] == "b"


def test_outcomes_of_another_linux_are_left_behind_and_all_kernels_are_named(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    stock, ours, newer = (
        Kernel(Path("/kernel"), flavour, version, "i", config, change="a")
        for flavour, version in (("stock", "7.3.4"), ("parallel", "7.3.4"), ("parallel", "7.3.9"))
    )
    table, meta = tmp_path / provenance.TABLE, tmp_path / provenance.META
    cuts.keep([replace(FOUND, kernel="stock")], stock, tmp_path)
    cuts.keep([FOUND], ours, tmp_path)
    assert sorted(json.loads(meta.read_text())["kernels"]) == ["parallel", "stock"]
    cuts.keep([replace(FOUND, fs="f2fs")], newer, tmp_path)
    assert "xfs" not in table.read_text()
    assert [one["version"] for one in json.loads(meta.read_text())["kernels"].values()] == ["7.3.9"]


def test_outcomes_of_two_changes_get_no_company(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("")
    one, other = (Kernel(Path("/kernel"), of, "7.3.4", "i", config, change=of) for of in ("a", "b"))
    provenance.write(tmp_path, "cuts", [asdict(FOUND)], [one, other], table="")
    assert json.loads((tmp_path / provenance.META).read_text())["change"] is None
    assert provenance.earlier_rows(tmp_path, [one, other]) == []


def test_what_one_cut_loses_is_one_cut_with_a_loss() -> None:
    one_cut = ['{"cut": 39, "way": {}, "what": "a file"}', '{"cut": 39, "way": {}, "what": "another"}']
    assert FOUND.cuts_with_a_loss == 0
    assert replace(FOUND, lost=one_cut).cuts_with_a_loss == 1
    assert replace(FOUND, lost=[*one_cut, "a report of the kernel"]).cuts_with_a_loss == 2


def test_a_line_says_what_was_lost() -> None:
    assert FOUND.line.endswith("50 cuts, 3,000 promises, nothing lost (30 min 0 s)")
    assert "LOST 1: a file" in replace(FOUND, lost=["a file"]).line


class Crew:
    """Ends the same guest for ever, and knows whether it was told to stop."""

    is_over = False

    def each(self, *_: Any, **__: Any) -> Iterator[Outcome]:
        """Return an outcome again and again."""
        try:
            while True:
                yield FOUND
        finally:
            self.is_over = True


def no_room(outcome: object) -> None:
    raise OSError("no room left")


def test_when_an_outcome_cannot_be_kept_guests_are_ended_at_once() -> None:
    crew: Any = Crew()
    # Whoever keeps the error keeps what it came through.
    with pytest.raises(OSError, match="no room left") as kept:
        cuts.run([], no_room, crew)
    assert crew.is_over
    assert kept.value.__traceback__


@pytest.mark.parametrize(("machine", "own_cores"), [("smp", True), ("uml", False)])
def test_without_a_cluster_guests_run_side_by_side_here(
    monkeypatch: pytest.MonkeyPatch, machine: str, own_cores: bool
) -> None:
    asked = []

    def local(count: int, runner: Any, *, own_cores: bool) -> Any:
        asked.append((count, own_cores))
        return contextlib.nullcontext(SimpleNamespace(each=lambda *_, **__: (one for one in [FOUND])))

    monkeypatch.setattr(cluster, "places", lambda mem_mib, boots: boots)
    monkeypatch.setattr(cluster, "local", local)
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", Path("config"), machine)
    taken: list[Outcome] = []
    cuts.run(cuts.jobs(kernel, ["xfs"], cpus=2, cuts=120, seed=1), taken.append)
    assert asked == [(3, own_cores)]
    assert taken == [FOUND]


def have_a_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a made-up kernel built, whose configuration lies in a folder."""
    config = folder / "config"
    config.write_text("")
    kernel = Kernel(Path("/kernel"), "parallel", "7.3.4", "i", config)
    monkeypatch.setattr(source, "fetch", lambda: None)
    monkeypatch.setattr(build, "build", lambda *_: kernel)


def test_no_guest_begins_after_so_many_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    have_a_kernel(tmp_path, monkeypatch)
    now = 1000.0
    monkeypatch.setattr(proving, "time", SimpleNamespace(monotonic=lambda: now))

    @contextlib.contextmanager
    def local(*_: Any, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(each=each)

    def each(
        _: Any, jobs: list[cuts.Job], go_on: Callable[[], bool] | None, *, mem_mib: int
    ) -> Iterator[Outcome]:
        nonlocal now
        assert go_on
        for job in jobs:
            yield replace(FOUND, seed=job.seed)
            now += 50
            if not go_on():
                return

    monkeypatch.setattr(cluster, "local", local)
    asked = ["cuts", "--fs", "xfs", "--cuts", "500", "--minutes", "1.5", "--output", str(tmp_path)]
    assert cli._run(asked) == 0
    assert "2 of 10 guests were run: none began after 1.5 minutes" in capsys.readouterr().out


def told(number: int, **more: Any) -> str:
    """Return what a guest tells of a cut."""
    counts = {"promised": 60, "longer": 1, "mended": 0, "passes": 3}
    one = {"cut": number, "way": {"mode": "off"}, **counts, "lost": [], "taken": {"stream": 2}}
    return json.dumps(one | more) + "\n"


def test_guest_that_ends_amid_a_cut_has_told_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: Any, stream: TextIO, **__: Any) -> GuestResult:
        stream.write("something else\n" + told(0) + told(1, lost=["a file", "another"]) + told(2)[:-1])
        raise GuestError("a report of the kernel")

    monkeypatch.setattr(guest, "run", end)
    outcome = cuts.boot(JOB)
    assert (outcome.cuts, outcome.promised, outcome.longer, outcome.passes) == (2, 120, 2, 6)
    assert (outcome.settings, outcome.taken) == ({"mode off": 2}, {"stream": 4})
    *lost, report = outcome.lost
    way = {"mode": "off"}
    assert [json.loads(text) for text in lost] == [
        {"cut": 1, "way": way, "what": what} for what in ("a file", "another")
    ]
    assert report == "a report of the kernel"
    assert outcome.cuts_with_a_loss == 2


@pytest.mark.parametrize(
    ("status", "number", "lost"),
    [
        (0, 3, ""),
        (0, 2, "the guest told of 2 cuts, expected 3"),
        (1, 2, "the guest's program ended with status 1"),
    ],
)
def test_guest_tells_of_every_cut(
    monkeypatch: pytest.MonkeyPatch, status: int, number: int, lost: str
) -> None:
    def run(*_: Any, stream: TextIO, **__: Any) -> GuestResult:
        stream.write("".join(told(cut) for cut in range(number)))
        return GuestResult(status, "", 1.0, "")

    monkeypatch.setattr(guest, "run", run)
    outcome = cuts.boot(JOB)
    assert outcome.cuts == number
    assert [text.startswith(lost) for text in outcome.lost] == ([True] if lost else [])


def ends_scheduler(kernel: Path, command: list[str], *, stream: TextIO, **_: Any) -> GuestResult:
    """Be a guest whose cuts lose nothing; of the second seed on, end the process once the first was kept."""
    if int(command[-2]) > 1:
        while not Path(os.environ["PWB_TEST_KEPT"]).exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    stream.write("".join(told(number) for number in range(int(command[-1]))))
    return GuestResult(0, "", 1.0, "")


SETUP = """
from lab.machine import guest
from tests.unit.test_cuts import ends_scheduler
guest.run = ends_scheduler
"""


def test_cluster_of_others_cuts_the_power_until_it_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    have_a_kernel(tmp_path, monkeypatch)
    monkeypatch.setenv("PWB_TEST_KEPT", str(tmp_path / provenance.TABLE))
    asked = ["cuts", "--fs", "xfs", "--output", str(tmp_path)]
    with of_others(tmp_path, SETUP) as (address, _):
        assert cli._run([*asked, "--cuts", "50", "--scheduler", address]) == 0
        assert "seed 1: 50 cuts, 3,000 promises, nothing lost" in capfd.readouterr().out
        (tmp_path / provenance.TABLE).unlink()
        assert cli._run([*asked, "--cuts", "150", "--scheduler", address]) == 1
    said = capfd.readouterr()
    assert said.err.startswith(f"pwb: error: {LOST.format(address=address)}")
    assert said.err.count("\n") == 1
    rows = json.loads((tmp_path / provenance.SUMMARY).read_text())
    assert [(row["seed"], row["cuts"]) for row in rows] == [(1, 50)]


def test_cluster_that_is_not_there_is_named_before_any_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    monkeypatch.setattr(source, "fetch", None)
    for command in ("cuts", "schedules"):
        assert cli._run([command, "--scheduler", "tcp://127.0.0.1:1"]) == 1
        assert "scheduler tcp://127.0.0.1:1 does not answer within 1 s: expected" in capsys.readouterr().err
