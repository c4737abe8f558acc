# SPDX-License-Identifier: GPL-2.0
"""The machine that a guest gets: which kind, how large, whose time; checked before anything is built."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.machine import smp, vtime
from lab.machine.process import Machine
from lab.machine.qemu import find
from lab.machine.uml import Uml
from lab.util import host
from lab.util.errors import LabError, unknown_name

MACHINES = ("uml", "smp")
CLOCKS = ("virtual", "host")
# Seconds of the host that a guest has unless the caller says otherwise. In virtual time a second of eight
# busy CPUs takes half a minute.
TIMEOUT_S, VIRTUAL_TIMEOUT_S = 300.0, 1800.0
# Shorter than the kernel's 120 s, and longer where CPUs wait for their turn on the host.
HUNG_TASK_S, PATIENT_HUNG_TASK_S = 30, 240
# What a guest needs besides the blocks of its memory-backed devices.
BASE_MIB = 256
# More of that on the machine smp, for each CPU.
CPU_MIB = 4
# The kernel's limit of nwritebacks (BDI_WB_CTX_PER_CPU).
CONTEXTS_PER_CPU = 4
# What QEMU takes besides the guest's memory: translated code and its own.
QEMU_MIB = 512


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A machine as it is asked for.

    Attributes:
        machine: ``uml`` or ``smp``.
        clock: on ``smp``, ``virtual`` or ``host``; on ``uml`` time is always the host's.
        mem_mib: memory in MiB.
        cpus: CPUs.
        possible_cpus: CPUs that the kernel prepares for; None: cpus.
        memory: for ``uml``, descriptor of a file to take the memory from.
        mips: in virtual time, million instructions that a CPU executes in a second.
        quantum_ns: in virtual time, how far a CPU may be ahead of another one, in ns.
        pause: in virtual time, instructions that PAUSE counts for.
        lanes: in virtual time, CPUs that run at once on the host; None: as many as it has cores.
        samples: in virtual time, file for the profiler's samples.
        stalls: in virtual time, where CPUs stall.
    """

    machine: str = "uml"
    clock: str = "virtual"
    mem_mib: int = 2048
    cpus: int = 2
    possible_cpus: int | None = None
    memory: int | None = None
    mips: int = 1000
    quantum_ns: int = 5000
    pause: int = 140
    lanes: int | None = None
    samples: Path | None = None
    stalls: smp.Stalls | None = None

    @property
    def is_virtual(self) -> bool:
        """Whether the guest lives in virtual time."""
        return self.machine == "smp" and self.clock == "virtual"

    @property
    def timeout_s(self) -> float:
        """Seconds of the host that a guest has unless the caller says otherwise."""
        return VIRTUAL_TIMEOUT_S if self.is_virtual else TIMEOUT_S

    @property
    def hung_task_s(self) -> int:
        """Seconds of the guest after which a task that sleeps on is reported as hung.

        An emulated CPU that runs in the host's time may wait long for its turn there.
        """
        return PATIENT_HUNG_TASK_S if self.machine == "smp" and not self.is_virtual else HUNG_TASK_S

    @property
    def base_mib(self) -> int:
        """What the guest needs besides the blocks of its devices, in MiB."""
        return (
            BASE_MIB
            if self.machine == "uml"
            else BASE_MIB + CPU_MIB * max(self.cpus, self.possible_cpus or 0)
        )

    def __post_init__(self) -> None:
        """Raise LabError unless there is such a machine."""
        if self.machine not in MACHINES:
            raise unknown_name("machine", self.machine, MACHINES)
        if self.clock not in CLOCKS:
            raise unknown_name("clock", self.clock, CLOCKS)
        if self.samples and not self.is_virtual:
            raise LabError("a profile is of virtual time: expected the machine smp and the virtual clock")
        if self.stalls and not self.is_virtual:
            raise LabError("CPUs stall in virtual time: expected the machine smp and the virtual clock")
        if self.machine == "uml":
            self._check_uml()
        else:
            self._check_smp()

    def _check_uml(self) -> None:
        cores = len(os.sched_getaffinity(0))
        if not 1 <= self.cpus <= cores:
            raise LabError(
                f"{self.cpus} guest CPUs: expected 1 to {cores}, the cores of this host; ask for fewer, or "
                "for the machine smp, which may have more"
            )

    def _check_smp(self) -> None:
        most = smp.MAX_CPUS
        if not 1 <= self.cpus <= most:
            raise LabError(f"{self.cpus} guest CPUs: expected 1 to {most}, which its kernels are built for")
        if not self.cpus <= (self.possible_cpus or self.cpus) <= smp.MAX_POSSIBLE_CPUS:
            raise LabError(
                f"{self.possible_cpus} possible CPUs: expected {self.cpus} to {smp.MAX_POSSIBLE_CPUS}"
            )
        if self.memory is not None:
            raise LabError("memory from a file is for the machine uml only: leave it out")
        lanes = 1 if self.lanes is None else self.lanes
        numbers = {
            "MIPS": self.mips,
            "ns of a quantum": self.quantum_ns,
            "instructions of PAUSE": self.pause,
            "lanes": lanes,
        }
        for what, number in numbers.items():
            if number < 1:
                raise LabError(f"{number} {what}: expected 1 or more")

    def check(self) -> None:
        """Raise LabError unless the host can be this machine; fetch QEMU and compile what is missing."""
        if self.machine == "smp":
            host.check(host.Need(packages=False, memory_bytes=(self.mem_mib + QEMU_MIB) << 20))
            found = find()
            if self.is_virtual:
                vtime.build(found)
        elif self.memory is None:
            host.check(host.Need(packages=False, guest_mem_bytes=self.mem_mib << 20))

    @contextmanager
    def built(self) -> Iterator[Built]:
        """Hold the machine for the length of a ``with`` block.

        Raises:
            LabError: as check does.
        """
        self.check()
        if self.machine == "uml":
            yield Built(Uml(self.memory))
        elif not self.is_virtual:
            yield Built(smp.Smp(find(), None))
        else:
            counters = os.memfd_create("clock")
            found = find()
            plugin = vtime.build(found)
            clock = smp.Clock(
                plugin,
                self.mips,
                self.quantum_ns,
                self.pause,
                self.lanes,
                counters,
                self.samples,
                self.stalls,
            )
            try:
                yield Built(smp.Smp(found, clock), counters)
            finally:
                os.close(counters)


def check_contexts(what: str, contexts: int, cpus: int) -> None:
    """Check that a kernel takes so many contexts.

    Args:
        what: asks for them.
        contexts: how many.
        cpus: that the kernel prepares for.

    Raises:
        LabError: it does not.
    """
    most = CONTEXTS_PER_CPU * cpus
    if not 1 <= contexts <= most:
        raise LabError(
            f"{what}: {contexts} contexts on {cpus} CPUs: expected 1 to {most}, {CONTEXTS_PER_CPU} for each "
            "CPU; ask for a number among these, or for more CPUs"
        )


@dataclass(frozen=True)
class Built:
    """A machine that is ready.

    Attributes:
        machine: the machine.
        counters: descriptor of the file that virtual time writes its counters to, if there is virtual time.
    """

    machine: Machine
    counters: int | None = None

    def clock(self) -> dict[str, float]:
        """Return the counters of virtual time once the guest is gone; empty in the host's time."""
        if self.counters is None:
            return {}
        size = os.fstat(self.counters).st_size
        return dict(json.loads(os.pread(self.counters, size, 0) or b"{}"))
