# SPDX-License-Identifier: GPL-2.0
"""The series that we would send, judged by the checkpatch of the kernel it is for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.series import write_series
from lab.source import Source

pytestmark = pytest.mark.guest

# MISSING_SIGN_OFF: only a person can sign off, and does when the series is sent.
# FILE_PATH_CHANGES: asks for a MAINTAINERS entry for new files, which whoever takes them in decides on.
IGNORED = "MISSING_SIGN_OFF,FILE_PATH_CHANGES"


def test_checkpatch_has_nothing_to_say(kernel_source: Source, tmp_path: Path) -> None:
    patches = write_series(kernel_source, tmp_path / "series")[1:]
    assert patches
    tree = kernel_source.path
    checkpatch = ["perl", str(tree / "scripts" / "checkpatch.pl"), f"--root={tree}"]
    options = ["--strict", "--terse", "--show-types", "--no-summary", "--color=never", f"--ignore={IGNORED}"]
    done = subprocess.run(
        [*checkpatch, *options, *map(str, patches)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr).splitlines() == []
    assert done.returncode == 0
