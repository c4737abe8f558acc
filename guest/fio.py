# SPDX-License-Identifier: GPL-2.0
"""fio, watched while it runs. Python's standard library only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from guest.plan import LoadError
from guest.sampler import Sampler

# fio's exit status when it was told to stop.
FIO_STOPPED = 128
MARK_S = 0.0001


def start(
    program: list[str], job: Path, output: Path, mount: Path, env: dict[str, str]
) -> subprocess.Popen[str]:
    """Start fio on ``job`` with ``mount`` as its working directory, as the leader of a process group."""
    return subprocess.Popen(
        [*program, "--output-format=json+", f"--output={output}", str(job)],
        cwd=mount,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def fail(words: str, output: Path, what: str) -> None:
    """Raise what fio said, on its streams or ahead of its JSON."""
    notes = output.read_text().split("{", 1)[0] if output.exists() else ""
    said = [line for line in (words + "\n" + notes).splitlines() if line.startswith("fio:") or "rror" in line]
    raise LoadError(f"fio failed in {what}: {'; '.join(dict.fromkeys(said)) or 'it said nothing'}")


def wait(process: subprocess.Popen[str], seconds: float) -> bool:
    """Wait until a process has ended or the time is over; return whether it has ended."""
    end = os.pidfd_open(process.pid)
    try:
        # Not select(): it takes no descriptor above 1023.
        ready = select.poll()
        ready.register(end, select.POLLIN)
        ready.poll(1000 * seconds)
    finally:
        os.close(end)
    return process.poll() is not None


def watch(
    process: subprocess.Popen[str], sampler: Sampler, sample_s: float, enough: Callable[[], bool]
) -> str | None:
    """Sample until fio has ended, and ask it to end once there is enough.

    Args:
        process: fio, just started.
        sampler: has had its first sample; the last one is that of when fio had ended.
        sample_s: seconds between samples.
        enough: says, after each sample, whether fio has done what the run is about.

    Returns:
        None, or fio's words where it failed.
    """
    words: list[str] = []
    reader = threading.Thread(target=lambda: words.append(process.stdout.read() if process.stdout else ""))
    reader.start()
    marks = Marks()
    stopped = False
    while not wait(process, sample_s):
        sampler.sample()
        if sampler.written_mib() > 0:
            marks.begin()
        if not stopped and enough() and jobs_run(process.pid):
            marks.end()
            process.send_signal(signal.SIGINT)
            stopped = True
    marks.end()
    sampler.sample()
    failed = process.returncode and not (stopped and process.returncode == FIO_STOPPED)
    if failed:
        end_jobs(process)
    reader.join()
    return "".join(words) if failed else None


def end_jobs(process: subprocess.Popen[str]) -> None:
    """Kill the jobs that fio has left behind: in sessions of their own, they outlive a fio that is killed.

    They are forks of fio, and have its command line, in which the file for its output is like no other's.
    """
    assert isinstance(process.args, list)
    output_and_job = "".join(f"{word}\0" for word in process.args[-2:]).encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        # One that has ended meanwhile, or that is another account's.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if Path("/proc", pid, "cmdline").read_bytes().endswith(output_and_job):
                os.kill(int(pid), signal.SIGKILL)


def jobs_run(pid: int) -> bool:
    """Say whether fio's jobs are under way: then it has a thread beside the first one, which tells progress.

    Later it sums up. Its handler of a signal allocates memory, and one that interrupts malloc() waits for the
    lock of malloc() for ever.
    """
    return len(os.listdir(f"/proc/{pid}/task")) > 1


class Marks:
    """Shows the profiler, where there is one, what to look at, as the agent does for the whole command.

    A run has two marks, whatever becomes of it.
    """

    def __init__(self) -> None:
        """Nothing is marked yet."""
        self._left = 2 if "PWB_PROFILED" in os.environ else 0

    def begin(self) -> None:
        """Mark the beginning, once."""
        if self._left == 2:
            self._mark()

    def end(self) -> None:
        """Mark the end, once, and the beginning if there was none."""
        while self._left:
            self._mark()

    def _mark(self) -> None:
        signal.sigtimedwait((), MARK_S)
        self._left -= 1
