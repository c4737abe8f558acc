# SPDX-License-Identifier: GPL-2.0
"""Where the change weaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tree import everywhere
from lab.tree.everywhere import Kernel
from lab.tree.source import Source
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


def test_table_says_where_and_why_not() -> None:
    kernels = [Kernel("7.3.4", "linux-source-7.3", 7), Kernel("7.4.0", None, 0, "hook x moved")]
    assert everywhere.table(kernels).splitlines()[2:] == [
        "| Linux 7.3.4 | `linux-source-7.3` | yes | 7 |",
        "| Linux 7.4.0 | a tree of one's own | hook x moved | - |",
    ]
