# SPDX-License-Identifier: GPL-2.0
"""One User-mode Linux guest as a set of host processes: start it, follow what it says, see it gone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import mmap
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from lab.machine import console
from lab.util.errors import LabError
from lab.util.paths import REPO

AGENT = REPO / "guest" / "agent.py"
SUPERVISOR = REPO / "lab" / "supervise.py"
# After a report starts on the console, how long the kernel may go on printing it.
REPORT_GRACE_S = 2.0
# The kernel drops console lines rather than wait; a pipe this large takes a burst of them.
CONSOLE_PIPE_BYTES = 1 << 20
OUTPUT_KEPT_BYTES = 4 << 20


def check_kernel(kernel: Path) -> None:
    """Raise LabError unless ``kernel`` is an executable User-mode Linux kernel."""
    if not kernel.is_file():
        raise LabError(f"guest kernel {kernel}: no such file; expected the path of a User-mode Linux kernel")
    if not os.access(kernel, os.X_OK | os.R_OK):
        raise LabError(f"guest kernel {kernel} cannot be executed: expected mode rx (chmod +rx {kernel})")
    # Every UML kernel carries its configuration in plain text, for its option --showconfig.
    with kernel.open("rb") as file:
        empty = os.fstat(file.fileno()).st_size == 0
        if empty or mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).find(b"CONFIG_UML=y") < 0:
            raise LabError(f"guest kernel {kernel} is not User-mode Linux: expected one built with ARCH=um")


@dataclass
class Guest:
    """A guest, from its start (entering the context) until no process of it is left (leaving it).

    Attributes:
        on_output: gets what the command writes, as it comes.
        on_console: gets what the kernel prints, as it comes.
        terminal: a pseudo-terminal (our end, the guest's end) for the command, instead of a line for output.
        stop_at_report: end the guest when its kernel starts a report.
        step: what the guest is doing, as its agent says.
        status: the command's exit status, None as long as it has none.
        seconds: how long the command ran.
        error: what the agent could not do.
        done: everything was unmounted and the agent powers off.
        timed_out: the guest was killed because its time was up.
        exit_status: the kernel process's exit status.
        console: everything the kernel printed.
        output: the last 4 MiB of what the command wrote.
    """

    on_output: Callable[[bytes], None]
    on_console: Callable[[bytes], None] = lambda data: None
    terminal: tuple[int, int] | None = None
    stop_at_report: bool = True
    step: str = "booting"
    status: int | None = None
    seconds: float = 0.0
    error: str | None = None
    done: bool = False
    timed_out: bool = False
    exit_status: int | None = None
    console: bytearray = field(default_factory=bytearray)
    output: bytearray = field(default_factory=bytearray)
    _partial: bytearray = field(default_factory=bytearray)
    _partial_console: bytearray = field(default_factory=bytearray)
    _reported: bool = False
    _lines: dict[int, Callable[[bytes], None]] = field(default_factory=dict)
    _supervisor: subprocess.Popen[bytes] | None = None
    _end: int | None = None
    _folder: str = ""

    def start(
        self, kernel: Path, plan: dict[str, object], arguments: list[str], memory: int | None = None
    ) -> None:
        """Start the kernel.

        Args:
            kernel: path of the kernel.
            plan: what the agent shall do, see guest/agent.py.
            arguments: kernel arguments beyond those every guest has.
            memory: descriptor of a file to take the memory from; None: the kernel makes one.
        """
        # A kernel argument cannot hold a space, so the folder of the run must have none.
        temporary = tempfile.gettempdir()
        self._folder = tempfile.mkdtemp(prefix="pwb-guest-", dir="/tmp" if " " in temporary else temporary)
        init = self._write_init(plan)
        console_ours, console_theirs = os.pipe()
        fcntl.fcntl(console_ours, fcntl.F_SETPIPE_SZ, CONSOLE_PIPE_BYTES)
        report_ours, report_theirs = os.pipe()
        output_ours, output_theirs = self.terminal or os.pipe()
        self._lines = {
            console_ours: self._take_console,
            report_ours: self._take_report,
            output_ours: self._take_output,
        }
        command_line = f"fd:{output_theirs}" if self.terminal else f"null,fd:{output_theirs}"
        theirs = (output_theirs, report_theirs)
        passed = theirs if memory is None else (*theirs, memory)
        own_memory = [] if memory is None else [f"mem_fd={memory}"]
        command = [str(kernel.resolve()), "seccomp=on", "noreboot", f"uml_dir={self._folder}/", "umid=uml"]
        command += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}"]
        command += ["console=tty0", "con=null", "con0=null,fd:1"]
        command += [
            "ssl=null",
            f"ssl0={command_line}",
            f"ssl1=null,fd:{report_theirs}",
            *own_memory,
            *arguments,
        ]
        supervisor = [sys.executable, "-I", "-S", str(SUPERVISOR), self._folder, ",".join(map(str, passed))]
        try:
            self._supervisor = subprocess.Popen(
                supervisor + command,
                stdin=subprocess.PIPE,
                stdout=console_theirs,
                stderr=console_theirs,
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            for fd in (console_theirs, *theirs):
                os.close(fd)
        self._end = os.pidfd_open(self._supervisor.pid)

    def _write_init(self, plan: dict[str, object]) -> str:
        """Write the plan and the guest's first program into the folder of the run; return the program."""
        plan_path = Path(self._folder, "plan.json")
        plan_path.write_text(json.dumps(plan))
        python = os.path.realpath(sys.executable)
        init = Path(self._folder, "init")
        init.write_text(f"#!/bin/sh\nexec {shlex.join([python, '-I', '-S', str(AGENT), str(plan_path)])}\n")
        init.chmod(0o755)
        return str(init)

    def __enter__(self) -> Guest:
        """Return the guest; leaving the context ends it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the guest: afterwards no process of it is left."""
        self.stop()
        for fd in (*self._lines, *([] if self._end is None else [self._end])):
            os.close(fd)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """Kill the guest, if it is there, and wait until no process of it is left."""
        if self._supervisor is not None:
            assert self._supervisor.stdin is not None
            # The supervisor takes the end of this pipe as the order to kill.
            with contextlib.suppress(BrokenPipeError):
                self._supervisor.stdin.close()
            self.exit_status = self._supervisor.wait()
            if self.exit_status < 0:
                self._kill_orphans()

    def _kill_orphans(self) -> None:
        """Kill what a killed supervisor leaves: a user process that was being made dies with no one yet."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # UML leads a session, and its user processes stay in its process group: none escapes one signal.
            os.killpg(int(Path(self._folder, "uml", "pid").read_text()), signal.SIGKILL)

    def follow(self, timeout_s: float, keyboard: int | None = None) -> None:
        """Read what the guest says until it is gone; stop it at a report or when its time is up.

        Args:
            timeout_s: seconds from now on.
            keyboard: a descriptor to pass on to the guest's terminal.
        """
        assert self._supervisor is not None and self._end is not None
        deadline = time.monotonic() + timeout_s
        grace = False
        readers = dict(self._lines)
        if keyboard is not None:
            readers[keyboard] = self._type
        with selectors.DefaultSelector() as selector:
            for fd in (self._end, *readers):
                selector.register(fd, selectors.EVENT_READ)
            while True:
                # Once the supervisor is gone nothing is left that could write: what is there by then is all.
                ended = self._supervisor.poll() is not None
                left = 0 if ended else deadline - time.monotonic()
                ready = [key.fd for key, _ in selector.select(None if math.isinf(left) else max(left, 0))]
                for fd in ready:
                    if fd == self._end or not (data := _read(fd)):
                        selector.unregister(fd)
                        if fd == keyboard:
                            self.stop()
                    else:
                        readers[fd](data)
                if ended and not ready:
                    break
                if left <= 0 and not ended:
                    self.timed_out = not grace
                    deadline = math.inf
                    self.stop()
                if self._reported and self.stop_at_report and not grace:
                    grace = True
                    deadline = min(deadline, time.monotonic() + REPORT_GRACE_S)
        self.stop()

    def _type(self, data: bytes) -> None:
        assert self.terminal is not None
        with contextlib.suppress(OSError):
            os.write(self.terminal[0], data)

    def _take_console(self, data: bytes) -> None:
        self.console += data
        self.on_console(data)
        self._partial_console += data
        *lines, rest = self._partial_console.split(b"\n")
        self._partial_console = bytearray(rest)
        for line in lines:
            self._reported |= console.kind_of(line.decode(errors="replace")) is not None

    def _take_output(self, data: bytes) -> None:
        self.output += data
        del self.output[:-OUTPUT_KEPT_BYTES]
        self.on_output(data)

    def _take_report(self, data: bytes) -> None:
        self._partial += data
        *lines, rest = self._partial.split(b"\n")
        self._partial = bytearray(rest)
        for line in lines:
            said = json.loads(line)
            self.step = said.get("step", self.step)
            self.status = said.get("status", self.status)
            self.seconds = said.get("seconds", self.seconds)
            self.error = said.get("error", self.error)
            self.done = said.get("done", self.done)


def _read(fd: int) -> bytes:
    """Read what is there; nothing means the end, which a pseudo-terminal tells by an error."""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""
