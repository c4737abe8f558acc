# SPDX-License-Identifier: GPL-2.0
"""Where the change weaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.check import everywhere
from lab.check.everywhere import Kernel
from lab.tree.source import Source
from lab.util.errors import LabError
from tests.madeup import linux_tree


def test_each_kernel_is_tried_also_after_one_that_refuses(
    source: Source, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = linux_tree(tmp_path / "other")
    (other / "mm/backing-dev.c").write_text("int nothing;\n")
    packaged = {"7.3": source, "7.4": Source(other, "7.4.1", "7.4", "07e4")}
    monkeypatch.setattr(everywhere, "packaged", lambda: list(packaged))
    monkeypatch.setattr(everywhere, "fetch", packaged.__getitem__)
    mine = linux_tree(tmp_path / "mine")
    seen: list[Kernel] = []
    kernels = everywhere.try_all([mine], seen.append, repo)
    assert seen == kernels
    good, bad, own = kernels
    assert good == Kernel("7.3.4", "linux-source-7.3", 2)
    assert (bad.version, bad.patches) == ("7.4.1", 0)
    assert "01-rename.cocci changed 0 places in mm/backing-dev.c, expected 1" in bad.refused
    assert own == Kernel("7.3.4", None, 2)


def test_series_that_cannot_be_fetched_does_not_lose_the_others(
    source: Source, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(series: str) -> Source:
        if series == "7.2":
            raise LabError("no mirror\nhas it")
        return source

    monkeypatch.setattr(everywhere, "packaged", lambda: ["7.2", "7.3"])
    monkeypatch.setattr(everywhere, "fetch", fetch)
    assert everywhere.try_all([], repo=repo) == [
        Kernel("7.2", "linux-source-7.2", 0, "not fetched: no mirror has it"),
        Kernel("7.3.4", "linux-source-7.3", 2),
    ]


def test_each_kernel_is_told_before_the_next_is_fetched(
    source: Source, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Kernel] = []
    before: list[int] = []

    def fetch(series: str) -> Source:
        before.append(len(seen))
        return source

    monkeypatch.setattr(everywhere, "packaged", lambda: ["7.3", "7.4"])
    monkeypatch.setattr(everywhere, "fetch", fetch)
    everywhere.try_all([], seen.append, repo)
    assert before == [0, 1]


def test_tree_that_is_not_linux_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everywhere, "packaged", lambda: pytest.fail("it was refused too late"))
    with pytest.raises(LabError, match="is not a Linux tree"):
        everywhere.try_all([tmp_path])


def test_table_says_where_and_why_not() -> None:
    kernels = [Kernel("7.3.4", "linux-source-7.3", 7), Kernel("7.4.0", None, 0, "hook x moved")]
    assert everywhere.table(kernels).splitlines()[2:] == [
        "| Linux 7.3.4 | `linux-source-7.3` | yes | 7 |",
        "| Linux 7.4.0 | a tree of one's own | hook x moved | - |",
    ]
