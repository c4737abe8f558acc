# SPDX-License-Identifier: GPL-2.0
"""One boot that judges the guest's clock: a program of this folder, on a machine in some setting."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.machine import guest
from lab.machine.hardware import Hardware
from lab.util.errors import LabError
from lab.util.program import compiled

PROGRAMS = Path(__file__).parent
# What a loaded host does beside the guest: more than it has cores for.
LOOPS_PER_CORE = 2
NOISE = "while True: pass"


@dataclass(frozen=True)
class Trial:
    """What to boot and to run.

    Attributes:
        script: shell script, in which programs are found by their names.
        programs: those of this folder that it starts.
        kernel: flavour of the kernel.
        machine: ``smp`` or ``uml``.
        cpus: the guest's CPUs.
        fs: filesystem, or ``none``.
        mkfs: further arguments of its mkfs.
        device: name in the device table.
        device_mib: size of the device.
        mem_mib: the guest's memory.
        limit_mib: dirty limit; None: the kernel's own.
        mips: million instructions a second.
        quantum_ns: length of a quantum.
        pause: instructions that PAUSE counts for.
        lanes: CPUs that run at once on the host, one as in the cells of a measurement; None: as many as it
            has cores.
        loaded: whether the host is busy with something else.
        turn: number of this boot among equal ones.
    """

    script: str
    programs: tuple[str, ...] = ()
    kernel: str = "stock"
    machine: str = "smp"
    cpus: int = 8
    fs: str = "none"
    mkfs: tuple[str, ...] = ()
    device: str = "brd"
    device_mib: int = 64
    mem_mib: int = 1024
    limit_mib: int | None = None
    mips: int = Hardware.mips
    quantum_ns: int = Hardware.quantum_ns
    pause: int = Hardware.pause
    lanes: int | None = 1
    loaded: bool = False
    turn: int = 1

    def __str__(self) -> str:
        """Say what is booted, for the line of progress."""
        beside = ", beside a load" if self.loaded else ""
        return f"{self.kernel} kernel, {self.machine}, {self.cpus} CPUs, {self.fs}{beside}"


@dataclass(frozen=True)
class Outcome:
    """How a trial went.

    Attributes:
        lines: what the programs wrote.
        at_s: when each line came, in seconds of the host since the start of the boot.
        clock: the counters of virtual time.
    """

    lines: list[str]
    at_s: list[float]
    clock: dict[str, float] = field(default_factory=dict)

    def figures(self) -> list[list[float]]:
        """Return the numbers of each line that has nothing else."""
        return [[float(word) for word in line.split()] for line in self.lines if line not in ("begin", "end")]

    def windows_s(self) -> list[float]:
        """Return the host's seconds from each "begin" to the "end" after it."""
        begins, ends = (
            [at for line, at in zip(self.lines, self.at_s, strict=True) if line == word]
            for word in ("begin", "end")
        )
        return [end - begin for begin, end in zip(begins, ends, strict=True)]


Run = Callable[[Trial], Outcome]


class Stamped(io.StringIO):
    """Takes a guest's output, and notes when each line was whole."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        super().__init__()
        self._clock = clock
        self._start = clock()
        self._partial = ""
        self.lines: list[str] = []
        self.at_s: list[float] = []

    def write(self, text: str) -> int:
        """Take some text."""
        at = self._clock() - self._start
        *whole, self._partial = (self._partial + text).split("\n")
        self.lines += whole
        self.at_s += [at] * len(whole)
        return len(text)


@contextmanager
def load(loaded: bool) -> Iterator[None]:
    """Keep the host busy for the length of a ``with`` block, if asked to."""
    count = LOOPS_PER_CORE * len(os.sched_getaffinity(0)) if loaded else 0
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-I", "-S", "-c", NOISE]
    loops = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def boot(trial: Trial, kernel: Path) -> Outcome:
    """Boot a guest for a trial.

    Args:
        trial: what to do.
        kernel: path of the kernel that it names.

    Raises:
        LabError: the guest failed, or what it ran.
    """
    programs = [compiled(PROGRAMS / f"{name}.c") for name in trial.programs]
    path = ":".join(str(program.parent) for program in programs)
    settings = {}
    if trial.limit_mib:
        settings["/proc/sys/vm/dirty_bytes"] = str(trial.limit_mib << 20)
        settings["/proc/sys/vm/dirty_background_bytes"] = str(trial.limit_mib << 19)
    said = Stamped()
    with load(trial.loaded):
        result = guest.run(
            kernel,
            ["sh", "-ec", f'PATH="{path}:$PATH"; {trial.script}'],
            machine=trial.machine,
            cpus=trial.cpus,
            fs=trial.fs,
            mkfs=trial.mkfs,
            device=trial.device,
            device_size_mib=trial.device_mib,
            mem_mib=trial.mem_mib,
            settings=settings,
            stream=said,
            mips=trial.mips,
            quantum_ns=trial.quantum_ns,
            pause=trial.pause,
            lanes=trial.lanes,
        )
    if result.status:
        raise LabError(f"{trial}: status {result.status}: {' '.join(result.output.split())}")
    return Outcome(said.lines, said.at_s, result.clock)
