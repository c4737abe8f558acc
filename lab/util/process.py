# SPDX-License-Identifier: GPL-2.0
"""Run a program in a process group of its own, so that ending it ends everything it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lab.util.errors import LabError

_GRACE_S = 5.0


def stream(command: Sequence[str], cwd: Path, env: Mapping[str, str], seen: Callable[[str], None]) -> int:
    """Run a program and hand over each line of its output, standard error included, as it comes.

    Whatever ends this call early, such as Ctrl-C, ends the program and all that it started. If this process
    is killed outright, the host's kernel asks the program to end.

    Args:
        command: program and arguments.
        cwd: folder to run it in.
        env: its whole environment.
        seen: called with each line, newline included.

    Returns:
        The program's exit status.

    Raises:
        LabError: there is no such program.
    """
    if shutil.which(command[0], path=env.get("PATH")) is None:
        raise LabError(f"{command[0]} is missing: install the packages with: make setup")
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", *command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        for line in child.stdout:
            seen(line)
        return child.wait()
    except BaseException:
        end_group(child)
        raise


def end_group(child: subprocess.Popen[str], *, patient: bool = True) -> None:
    """End a process group, gently first: make removes half-written files when it is asked to end.

    Args:
        child: its leader.
        patient: whether to wait for what the kernel does not let go, such as for a disk that does not answer.
    """
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_S)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        child.wait(None if patient else _GRACE_S)


def output(command: Sequence[str]) -> str:
    """Return what a program prints, without blanks around it; nothing when it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""
