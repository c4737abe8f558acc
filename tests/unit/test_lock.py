# SPDX-License-Identifier: GPL-2.0
"""The lock: one holder at a time, and gone with its holder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO

HOLD = """
import sys
from pathlib import Path
from lab.util.lock import exclusive
with exclusive(Path(sys.argv[1]), "building the stock kernel"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_told_who_is_first(tmp_path: Path) -> None:
    path = tmp_path / "below" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        pid = holder.pid
        said = f"process {pid} is building the stock kernel; wait until it ends, or stop it with: kill {pid}"
        with pytest.raises(LabError, match=said), exclusive(path, "building again"):
            pass
        holder.kill()
        holder.wait()
        with exclusive(path, "building again"):
            assert path.read_text() == f"{os.getpid()} building again\n"


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"), exclusive(tmp_path / "lock", "one"):
        raise ValueError("broken")
    with exclusive(tmp_path / "lock", "two"):
        pass
