# SPDX-License-Identifier: GPL-2.0
"""Every commit of the woven tree, judged by the checkpatch of the kernel it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.check import checkpatch
from lab.tree.source import Source
from lab.tree.weave import BRANCH, STOCK_TAG, git, weave

pytestmark = pytest.mark.guest


def test_checkpatch_has_nothing_to_say(kernel_source: Source, tmp_path: Path) -> None:
    woven = weave(kernel_source).path
    git(woven, "format-patch", "--quiet", "-o", str(tmp_path), f"{STOCK_TAG}..{BRANCH}")
    patches = sorted(tmp_path.glob("*.patch"))
    assert patches
    assert checkpatch.complaints(kernel_source.path, patches) == []
