# SPDX-License-Identifier: GPL-2.0
"""One guest as a set of host processes, whatever its machine: start it, follow what it says, see it gone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import selectors
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

from lab.machine import console
from lab.util.paths import REPO

AGENT = REPO / "guest" / "agent.py"
SUPERVISOR = REPO / "lab" / "machine" / "supervise.py"
# After a line of a report on the console, how long the kernel may take to print the next.
REPORT_GRACE_S = 2.0
# The kernel drops console lines rather than wait; a pipe this large takes a burst of them.
CONSOLE_PIPE_BYTES = 1 << 20
OUTPUT_KEPT_BYTES = 4 << 20


@dataclass(frozen=True)
class Start:
    """What a machine needs to know for its command line.

    Attributes:
        kernel: path of the kernel.
        arguments: kernel arguments that every machine takes.
        init: path, in the guest's root, of its first program.
        folder: folder of the run, which has no space in its name and is gone afterwards.
        results: host folder for /results, if any.
        mem_mib: the guest's memory in MiB.
        cpus: the guest's CPUs.
        possible_cpus: CPUs that its kernel prepares for.
        output: the guest's end of the line for the command's output, or of its terminal.
        report: the guest's end of the line to the agent.
        terminal: whether the command has a terminal.
    """

    kernel: Path
    arguments: list[str]
    init: str
    folder: str
    results: str | None
    mem_mib: int
    cpus: int
    possible_cpus: int
    output: int
    report: int
    terminal: bool


class Machine(Protocol):
    """What differs from one machine to the other."""

    @property
    def name(self) -> str:
        """What the agent knows the machine by."""

    @property
    def passed(self) -> tuple[int, ...]:
        """Further descriptors that the command line speaks of."""

    @property
    def answers(self) -> bool:
        """Whether the agent waits for answers to its reports: a write does not mean that it arrived."""

    def check_kernel(self, kernel: Path) -> None:
        """Raise LabError unless the machine can boot ``kernel``."""

    def line(self) -> tuple[int, int]:
        """Return our end and the guest's end of a new line."""

    def terminal(self) -> tuple[int, int]:
        """Return our end and the guest's end of a new terminal."""

    def command(self, start: Start) -> list[str]:
        """Return the program that is the guest, and its arguments."""


@dataclass
class Guest:
    """A guest, from its start (entering the context) until no process of it is left (leaving it).

    Attributes:
        machine: what it runs on.
        on_output: gets what the command writes, as it comes.
        on_console: gets what the kernel prints, as it comes.
        terminal: whether the command has a terminal instead of a line for output.
        stop_at_report: end the guest when its kernel starts a report.
        step: what the guest is doing, as its agent says.
        status: the command's exit status, None as long as it has none.
        seconds: how long the command ran.
        error: what the agent could not do.
        done: everything was unmounted and the agent powers off.
        timed_out: the guest was killed because its time was up.
        exit_status: the exit status of the program that is the guest.
        console: everything the kernel printed.
        output: the last 4 MiB of what the command wrote.
    """

    machine: Machine
    on_output: Callable[[bytes], None]
    on_console: Callable[[bytes], None] = lambda data: None
    terminal: bool = False
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
    # Lines of the first report on the console, and until when the next one may come.
    _report_lines: int = 0
    _report_ends: float | None = None
    _taken_bytes: int = 0
    _unanswered_bytes: int | None = None
    _report: int = -1
    _output: int = -1
    _lines: dict[int, Callable[[bytes], None]] = field(default_factory=dict)
    _supervisor: subprocess.Popen[bytes] | None = None
    _end: int | None = None
    _folder: str = ""

    def start(
        self,
        kernel: Path,
        plan: dict[str, object],
        arguments: list[str],
        *,
        mem_mib: int,
        cpus: int,
        possible_cpus: int,
    ) -> None:
        """Start the guest.

        Args:
            kernel: path of the kernel.
            plan: what the agent shall do, see guest/agent.py.
            arguments: kernel arguments beyond those of the machine.
            mem_mib: the guest's memory in MiB.
            cpus: the guest's CPUs.
            possible_cpus: CPUs that its kernel prepares for.
        """
        # A kernel argument cannot hold a space, so the folder of the run must have none.
        temporary = tempfile.gettempdir()
        self._folder = tempfile.mkdtemp(prefix="pwb-guest-", dir="/tmp" if " " in temporary else temporary)
        init = self._write_init(plan)
        results = plan["results"]
        assert results is None or isinstance(results, str)
        console_ours, console_theirs = os.pipe()
        fcntl.fcntl(console_ours, fcntl.F_SETPIPE_SZ, CONSOLE_PIPE_BYTES)
        self._report, report_theirs = self.machine.line()
        self._output, output_theirs = self.machine.terminal() if self.terminal else self.machine.line()
        self._lines = {
            console_ours: self._take_console,
            self._report: self._take_report,
            self._output: self._take_output,
        }
        command = self.machine.command(
            Start(
                kernel=kernel.resolve(),
                arguments=arguments,
                init=init,
                folder=self._folder,
                results=results,
                mem_mib=mem_mib,
                cpus=cpus,
                possible_cpus=possible_cpus,
                output=output_theirs,
                report=report_theirs,
                terminal=self.terminal,
            )
        )
        theirs = (output_theirs, report_theirs)
        passed = (*theirs, *self.machine.passed)
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
        plan_path.write_text(json.dumps({**plan, "machine": self.machine.name}))
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
        latest = time.monotonic() + timeout_s
        deadline = latest
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
                    self.timed_out = self._report_ends is None
                    deadline = math.inf
                    self.stop()
                if self._report_ends is not None and self.stop_at_report and deadline != math.inf:
                    deadline = min(latest, self._report_ends)
        self.stop()

    def resize(self, rows: int, columns: int) -> None:
        """Tell the guest's terminal its size."""
        if self.machine.answers:
            self._answer(f"size {rows} {columns}")
        else:
            fcntl.ioctl(self._output, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _type(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._output, data)

    def _take_console(self, data: bytes) -> None:
        self.console += data
        self.on_console(data)
        self._partial_console += data
        *lines, rest = self._partial_console.split(b"\n")
        self._partial_console = bytearray(rest)
        for line in lines:
            is_first = not self._report_lines and console.kind_of(line.decode(errors="replace")) is not None
            if is_first or 0 < self._report_lines < console.MAX_REPORT_LINES:
                self._report_lines += 1
                self._report_ends = time.monotonic() + REPORT_GRACE_S

    def _take_output(self, data: bytes) -> None:
        self.output += data
        del self.output[:-OUTPUT_KEPT_BYTES]
        self._taken_bytes += len(data)
        self.on_output(data)
        self._answer_when_all_is_here()

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
            if self.machine.answers:
                self._unanswered_bytes = said.get("sent", 0)
        self._answer_when_all_is_here()

    def _answer_when_all_is_here(self) -> None:
        """Answer a report once all the output that was sent ahead of it is here."""
        if self._unanswered_bytes is not None and self._taken_bytes >= self._unanswered_bytes:
            self._unanswered_bytes = None
            self._answer("ok")

    def _answer(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._report, line.encode() + b"\n")


def _read(fd: int) -> bytes:
    """Read what is there; nothing means the end, which a pseudo-terminal tells by an error."""
    try:
        return os.read(fd, 1 << 16)
    except OSError:
        return b""
