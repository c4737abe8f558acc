# SPDX-License-Identifier: GPL-2.0
"""Supervisor of one guest: runs it, and sees to it that no process of it outlives the caller.

Run as a script (standard library only): ``supervise.py FOLDER FDS KERNEL ARGUMENT...``. Standard input
is the read end of a pipe that only the caller holds open: when it closes, because the caller asks or because
it is dead (even by SIGKILL), everything is killed. A guest is more than one process, and its user processes
may be in sessions of their own, so a process group is not enough: as child subreaper the supervisor becomes
the parent of every process that its guest leaves behind, and it ends only when it has no children any more.
Should it be killed itself, the kernel process gets SIGKILL from the host (parent-death signal), UML's user
processes from that, and the caller kills one that had not asked for the signal yet.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STDIN, STDOUT, STDERR = 0, 1, 2
CANNOT_EXECUTE = 126


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl: {os.strerror(error)}")


def _replace(fd: int) -> None:
    """Let ``fd`` be /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


def _start(command: list[str]) -> int:
    """Start the guest kernel and return its process id."""
    me = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == me:
            # A panicking UML kernel dumps core; nobody reads it.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            _replace(STDIN)
            os.execv(command[0], command)
    except OSError as error:
        os.write(STDERR, f"cannot start {command[0]}: {error}\n".encode())
    finally:
        os._exit(CANNOT_EXECUTE)


def _children() -> list[int]:
    """Return the process ids of all children of this process."""
    me = os.getpid()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything; state and parent follow the last parenthesis.
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                if parent == me:
                    found.append(int(entry.name))
    return found


def _kill_all(kernel: int) -> int:
    """Kill and reap every descendant; return the wait status of the kernel process."""
    status = 0
    while True:
        # The children of a killed child become ours, so this ends when no descendant is left.
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, result = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == kernel:
            status = result


def main(folder: str, fds: list[int], command: list[str]) -> int:
    """Run the guest until it ends or the caller is gone.

    Args:
        folder: folder of the run, removed at the end.
        fds: file descriptors that are meant for the kernel only.
        command: path of the kernel and its arguments.

    Returns:
        The kernel's exit status, 128 + signal when it was killed.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    kernel = _start(command)
    # An end of file on the caller's side must mean that the guest is gone.
    for fd in fds:
        os.close(fd)
    for fd in (STDOUT, STDERR):
        _replace(fd)
    poll = select.poll()
    poll.register(STDIN, select.POLLIN)
    poll.register(os.pidfd_open(kernel), select.POLLIN)
    poll.poll()
    status = _kill_all(kernel)
    shutil.rmtree(folder, ignore_errors=True)
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], [int(fd) for fd in sys.argv[2].split(",")], sys.argv[3:]))
