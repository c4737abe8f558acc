# SPDX-License-Identifier: GPL-2.0
"""One run at a time: advisory locks on files, released by the kernel whatever ends the process."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from lab.util.errors import LabError
from lab.util.paths import cache_dir


@contextmanager
def exclusive(path: Path, what: str, *, waits: bool = False) -> Iterator[None]:
    """Hold the lock file ``path`` for the length of a ``with`` block.

    Args:
        path: the lock file; made where missing and left in place, for removing it would race with a waiter.
        what: what is done under the lock, such as ``"building the stock kernel"``; whoever comes second
            is told.
        waits: whether to wait for another process that does something else, and say so. One that does the
            same was started twice.

    Raises:
        LabError: another process holds it, and is not waited for; names that process and what it is doing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder, _, doing = file.read().strip().partition(" ")
            if not waits or doing == what:
                raise LabError(
                    f"two runs at once: process {holder or 'unknown'} is "
                    f"{doing or 'busy with the same thing'}; "
                    f"wait until it ends, or stop it with: kill {holder or 'PID'}"
                ) from None
            print(f"{what} waits for process {holder}, which is {doing}", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"{os.getpid()} {what}\n")
        file.flush()
        yield


def whole_machine(what: str) -> AbstractContextManager[None]:
    """Hold this machine for guests that nothing else may disturb, or that would disturb a measurement.

    Args:
        what: as for :func:`exclusive`.

    Raises:
        LabError: as exclusive does.
    """
    return exclusive(cache_dir() / "bench.lock", what)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold the lock file ``path`` for the length of a ``with`` block, after whoever has it, in silence.

    Args:
        path: the lock file; made where missing and left in place.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
