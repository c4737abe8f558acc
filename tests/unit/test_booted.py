# SPDX-License-Identifier: GPL-2.0
"""Checks that boot a patch: what KUnit results say, and when a patch fails by them or by its load."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

from lab.check import kunit, load
from lab.check.patches import Patch
from lab.machine import guest
from lab.util.errors import GuestError, LabError
from tests.madeup import write_files

GOOD = """\
    KTAP version 1
    # Subtest: bdi_wb_auto
    1..1
    ok 1 it_doubles
ok 1 bdi_wb_auto
"""
BAD = GOOD.replace("ok 1", "not ok 1")
SUITE = """\
static struct kunit_suite auto_test_suite = {
	.name = "bdi_wb_auto",
	.test_cases = auto_test_cases,
};
"""
PATCH = Patch(1, "wb: x", "c", "b", "k", ("mm/tests/auto_kunit.c", "mm/gone_kunit.c"), 0, 0)


@pytest.fixture(autouse=True)
def tree(tmp_path: Path) -> SimpleNamespace:
    """A tree at a patch that brings a suite."""
    write_files(tmp_path, {"mm/tests/auto_kunit.c": SUITE})
    return SimpleNamespace(path=tmp_path, patches=[PATCH])


class MadeUpFolder:
    """A folder that links, or says why not."""

    configuration = SimpleNamespace(name="um")
    objects = Path("/objects")

    def __init__(self, failures: list[str] | None = None) -> None:
        self.failures = failures or []

    def make(self, goals: tuple[str, ...]) -> list[str]:
        assert goals == ("linux",)
        return self.failures


def outcome(
    monkeypatch: pytest.MonkeyPatch, tree: SimpleNamespace, report: str, status: int = 0
) -> list[str]:
    def run(kernel: Path, command: list[str], *, stream: TextIO, **_: Any) -> SimpleNamespace:
        assert kernel == Path("/objects/linux")
        stream.write(report)
        return SimpleNamespace(status=status)

    monkeypatch.setattr(guest, "run", run)
    return kunit.KUnit(MadeUpFolder(), tree).after(PATCH)  # type: ignore[arg-type]


def test_results_name_suites_and_failures() -> None:
    assert kunit.suites(GOOD) == ["bdi_wb_auto"]
    assert kunit.failed(GOOD) == []
    assert kunit.failed(BAD) == ["not ok 1 it_doubles", "not ok 1 bdi_wb_auto"]


def test_script_runs_all_suites_unless_some_are_named() -> None:
    assert "for suite in *;" in kunit.script()
    assert "for suite in one two;" in kunit.script(["one", "two"])


def test_patch_fails_with_its_suites(monkeypatch: pytest.MonkeyPatch, tree: SimpleNamespace) -> None:
    assert outcome(monkeypatch, tree, GOOD) == []
    assert outcome(monkeypatch, tree, BAD) == ["not ok 1 it_doubles", "not ok 1 bdi_wb_auto"]
    assert outcome(monkeypatch, tree, "") == ["the suite bdi_wb_auto is not there"]
    assert outcome(monkeypatch, tree, "cd: no\n", status=1) == ["status 1: cd: no"]


@pytest.mark.parametrize(
    "report",
    [
        GOOD.replace("    ok 1 it_doubles\n", ""),
        GOOD.replace("it_doubles", "it_doubles # SKIP no memory"),
    ],
)
def test_suite_that_did_not_run_has_not_passed(
    monkeypatch: pytest.MonkeyPatch, tree: SimpleNamespace, report: str
) -> None:
    assert outcome(monkeypatch, tree, report) == ["of the suite bdi_wb_auto 0 of 1 tests ran"]


def test_fault_of_the_host_is_not_the_patchs(monkeypatch: pytest.MonkeyPatch, tree: SimpleNamespace) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise LabError("no room for guest RAM")

    monkeypatch.setattr(guest, "run", refuse)
    with pytest.raises(LabError, match="no room for guest RAM"):
        kunit.KUnit(MadeUpFolder(), tree).after(PATCH)  # type: ignore[arg-type]


def test_patch_fails_whose_kernel_does_not_link_or_boot(
    monkeypatch: pytest.MonkeyPatch, tree: SimpleNamespace
) -> None:
    broken = kunit.KUnit(MadeUpFolder(["undefined reference to `x'"]), tree)  # type: ignore[arg-type]
    assert broken.after(PATCH) == ["undefined reference to `x'"]

    def panic(*_: Any, **__: Any) -> None:
        raise GuestError("the kernel reported:\n  oops")

    monkeypatch.setattr(guest, "run", panic)
    assert kunit.KUnit(MadeUpFolder(), tree).after(PATCH) == [  # type: ignore[arg-type]
        "the kernel reported: oops"
    ]


def test_patch_fails_with_its_load_on_any_filesystem(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(_: Path, command: list[str], *, fs: str, stream: TextIO, **__: Any) -> SimpleNamespace:
        assert fs == "none"
        ran.append(command[2])
        stream.write("made\nresize: page 3 is wrong\n" if command[2] == "ext4" else "every byte\n")
        return SimpleNamespace(status=int(command[2] == "ext4"))

    monkeypatch.setattr(guest, "run", run)
    found = load.Load(MadeUpFolder()).after(PATCH)  # type: ignore[arg-type]
    assert found == ["ext4: status 1: resize: page 3 is wrong"]
    assert ran == ["xfs", "ext4", "f2fs"]


def test_load_is_made_again_when_its_script_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "resize.py"
    script.write_text("1")
    monkeypatch.setattr(load, "SCRIPT", script)
    check = load.Load(MadeUpFolder())  # type: ignore[arg-type]
    monkeypatch.setattr(check, "_compiled", SimpleNamespace(inputs=lambda patch: [patch.key]))
    before = check.inputs(PATCH)
    (tmp_path / "test_resize.py").write_text("no part of it")
    assert check.inputs(PATCH) == before
    (tmp_path / "helper.py").write_text("a part")
    assert check.inputs(PATCH) != before
