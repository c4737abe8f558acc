# SPDX-License-Identifier: GPL-2.0
"""How a fio run is ended, and what the profiler is shown of it."""

from __future__ import annotations

import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, cast

import pytest

from guest import fio
from guest.sampler import Sampler

# Ends with its input, or by a signal as fio does.
PROGRAM = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, lambda *_: os._exit(128))
{}
sys.stdin.read()
"""
THREAD = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


class ThreeSamples:
    """Stands for a sampler; the program's input ends with the third sample."""

    def __init__(self, stdin: IO[str]) -> None:
        """Nothing has been sampled yet."""
        self.stdin = stdin
        self.count = 0

    def sample(self) -> None:
        """Count."""
        self.count += 1
        if self.count == 3:
            self.stdin.close()

    def written_mib(self) -> float:
        """Say that something was written."""
        return 1


class Endless(ThreeSamples):
    """The same for a program that has to be stopped."""

    def sample(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("thread", "sampler", "status"), [("", ThreeSamples, 0), (THREAD, Endless, fio.FIO_STOPPED)]
)
def test_fio_is_asked_to_end_while_its_jobs_run(
    thread: str, sampler: type[ThreeSamples], status: int
) -> None:
    """With one thread it sums up; a signal might find it in malloc(), for whose lock its handler waits."""
    process: Any = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(thread)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    samples = cast(Sampler, sampler(process.stdin))
    assert fio.watch(process, samples, 0.01, lambda: True) is None
    assert process.returncode == status
    process.stdin.close()


def test_fio_is_waited_for_with_many_files_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pidfd_open = os.pidfd_open

    def high(pid: int) -> int:
        low = pidfd_open(pid)
        try:
            return fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1100)
        finally:
            os.close(low)

    monkeypatch.setattr(os, "pidfd_open", high)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    try:
        assert not fio.wait(process, 0.01)
        process.stdin.close()
        assert fio.wait(process, 60)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


# The first word of its command line is Python, as the first ones of fio's are not looked at.
LEAVES_A_JOB = """
import os, signal
if os.fork():
    os.kill(os.getpid(), signal.SIGKILL)
os.setsid()
signal.pause()
"""


def test_jobs_end_with_fio(tmp_path: Path) -> None:
    """In sessions of their own they hold its output open, which would be waited for without end."""
    started = subprocess.Popen(
        [sys.executable, "-c", LEAVES_A_JOB, f"--output={tmp_path}", "job"], stdout=subprocess.PIPE, text=True
    )
    samples = cast(Sampler, SimpleNamespace(sample=lambda: None, written_mib=lambda: 0))
    assert fio.watch(started, samples, 0.01, lambda: False) == ""


def test_each_run_has_two_marks_for_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    monkeypatch.setattr("signal.sigtimedwait", lambda _, seconds: made.append(seconds))
    monkeypatch.delenv("PWB_PROFILED", raising=False)
    fio.Marks().end()
    assert made == []
    monkeypatch.setenv("PWB_PROFILED", "1")
    marks = fio.Marks()
    for step, expected in ((marks.begin, 1), (marks.begin, 1), (marks.end, 2), (marks.end, 2)):
        step()
        assert len(made) == expected
    # The jobs ended before anything was written.
    fio.Marks().end()
    assert len(made) == 4
