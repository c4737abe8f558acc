# SPDX-License-Identifier: GPL-2.0
"""Every commit of the woven tree, judged by the checkpatch of the kernel it is for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.tree.source import Source
from lab.tree.weave import BRANCH, STOCK_TAG, git, weave

pytestmark = pytest.mark.guest

# MISSING_SIGN_OFF: only a person can sign off, and does when the series is sent.
# FILE_PATH_CHANGES: asks for a MAINTAINERS entry for new files, which whoever takes them in decides on.
IGNORED = "MISSING_SIGN_OFF,FILE_PATH_CHANGES"


def test_checkpatch_has_nothing_to_say(kernel_source: Source, tmp_path: Path) -> None:
    woven = weave(kernel_source).path
    git(woven, "format-patch", "--quiet", "-o", str(tmp_path), f"{STOCK_TAG}..{BRANCH}")
    patches = sorted(tmp_path.glob("*.patch"))
    assert patches
    tree = kernel_source.path
    checkpatch = ["perl", str(tree / "scripts" / "checkpatch.pl"), f"--root={tree}"]
    options = ["--strict", "--terse", "--show-types", "--no-summary", "--color=never", f"--ignore={IGNORED}"]
    done = subprocess.run(
        [*checkpatch, *options, *map(str, patches)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr).splitlines() == []
    assert done.returncode == 0
