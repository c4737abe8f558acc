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
with exclusive(Path(sys.argv[1]), sys.argv[2], waits=True):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(path: Path, what: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock, waiting for it where it has to, until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), what],
        cwd=REPO,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_run_is_told_who_is_first(tmp_path: Path) -> None:
    path = tmp_path / "below" / "lock"
    with hold(path, "building the stock kernel") as holder:
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


def test_one_that_does_something_else_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with exclusive(path, "building a package"):
        waiter = hold(path, "building the traced kernel")
        assert waiter.stderr is not None
        said = f"building the traced kernel waits for process {os.getpid()}, which is building a package\n"
        assert waiter.stderr.readline() == said
    with waiter:
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "held\n"
        assert path.read_text() == f"{waiter.pid} building the traced kernel\n"
        waiter.kill()


def test_one_that_does_the_same_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        exclusive(path, "building a package"),
        pytest.raises(LabError, match="two runs at once"),
        exclusive(path, "building a package", waits=True),
    ):
        pass


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"), exclusive(tmp_path / "lock", "one"):
        raise ValueError("broken")
    with exclusive(tmp_path / "lock", "two"):
        pass
