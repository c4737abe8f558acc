# SPDX-License-Identifier: GPL-2.0
"""tests/guest/data_check.c on this machine: it passes where nothing goes wrong, and sees what does."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.util.paths import REPO
from lab.util.program import compiled

# More operations than a test waits for: it is the fault that ends the check.
FOR_EVER = 1 << 40
SPOIL_EVERY_S = 0.02


@pytest.fixture(scope="module")
def data_check() -> Path:
    return compiled(REPO / "tests" / "guest" / "data_check.c")


def command(program: Path, folder: Path, operations: int, seed: int = 1) -> list[str]:
    return [str(program), str(folder), "2", str(operations), str(seed)]


def done(said: str) -> dict[str, int]:
    """Return how often each operation was done."""
    return {name: int(count) for name, count in re.findall(r"([a-z ]+?) (\d+), ", said)}


def test_clean(data_check: Path, tmp_path: Path) -> None:
    ran = subprocess.run(command(data_check, tmp_path, 3000), capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("seed 1: every byte is as written\n")
    counts = done(ran.stdout)
    assert len(counts) == 13
    # Not every filesystem of a host can do the others.
    assert min(counts[name] for name in ("write", "mapped write", "punch", "truncate", "drop")) > 100
    assert 5000 < sum(counts.values()) <= 6000


def test_same_seed_does_the_same(data_check: Path, tmp_path: Path) -> None:
    def content(seed: int) -> bytes:
        subprocess.run(command(data_check, tmp_path, 300, seed), capture_output=True, check=True)
        return (tmp_path / "data.1").read_bytes()

    assert content(7) == content(7) != content(8)


@pytest.mark.parametrize(
    ("fault", "words"),
    [("a byte", r"wrong bytes, the first at \d+ of"), ("the length", "bytes long instead of")],
)
def test_fault_is_found(data_check: Path, tmp_path: Path, fault: str, words: str) -> None:
    path = tmp_path / "data.0"
    with subprocess.Popen(
        command(data_check, tmp_path, FOR_EVER),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as check:
        try:
            while check.poll() is None:
                # It may be written to at any moment: what is seen of it must still hold when it is changed.
                with all_stopped(check.pid):
                    if path.exists():
                        spoil(path, fault)
                time.sleep(SPOIL_EVERY_S)
        except BaseException:
            os.killpg(check.pid, signal.SIGKILL)
            raise
        said, complaint = check.communicate()
    assert check.returncode == 1
    assert said.endswith("seed 1: wrong data\n")
    assert re.search(rf"file 0, operation \d+: .*{words} \d+", complaint), complaint


@contextlib.contextmanager
def all_stopped(group: int) -> Iterator[None]:
    """Let no process of a group run meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGSTOP)
    while set(states(group)) - {"T", "Z"}:
        time.sleep(0.001)
    yield
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGCONT)


def states(group: int) -> Iterator[str]:
    """Return the state of each process of a group, as in proc_pid_stat(5)."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group:
                yield state


def spoil(path: Path, fault: str) -> None:
    """Change the file behind the back of the check."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        if fault == "a byte":
            # A write past the end would change the length.
            os.pwrite(file.fileno(), b"\xa5" * min(size, 16), 0)
        else:
            file.truncate(size + 1)
