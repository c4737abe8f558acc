# SPDX-License-Identifier: GPL-2.0
"""Made-up records of a guest in virtual time, by names of functions."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

BASE = 0xFFFFFFFF81000000
SIZE = 0x100
USER_PC = 0x7F0000001000
# Outer ends of stacks, as they are on x86-64.
SYSCALL = ("x64_sys_call", "do_syscall_64", "entry_SYSCALL_64_after_hwframe")
WRITE = ("__x64_sys_pwrite64", *SYSCALL)
THREAD = ("kthread", "ret_from_fork", "ret_from_fork_asm")
WORK = ("process_one_work", "worker_thread", *THREAD)
IDLE_TASK = ("schedule_idle", "do_idle", "cpu_startup_entry", "start_secondary")
SLEEP = ("__schedule", "schedule")
MARK = (*SLEEP, "do_sigtimedwait", "__x64_sys_rt_sigtimedwait", *SYSCALL)


class Recorder:
    """Writes a record and the System.map that goes with it."""

    def __init__(self, folder: Path) -> None:
        self.record, self.symbols = folder / "samples", folder / "System.map"
        self._names: list[str] = []
        self._data = b"PWBVT001"

    def start_of(self, name: str) -> int:
        """Return the address of a function's first instruction."""
        if name not in self._names:
            self._names.append(name)
        return BASE + SIZE * self._names.index(name)

    def run(self, cpu: int, time_ns: int, stack: Sequence[str], ns: int = 1000, pause: bool = False) -> None:
        """Add a sample in the middle of the innermost function; without a stack one of user space."""
        inside = [self.start_of(name) + 0x20 for name in stack] or [USER_PC]
        self.add(1, cpu, time_ns, ns, int(pause), inside)

    def switch(self, cpu: int, time_ns: int, leaves: int, comes: int, stack: Sequence[str]) -> None:
        """Add a context switch with the stack of the task that leaves."""
        self.add(2, cpu, time_ns, leaves, comes, [self.start_of(name) + 0x20 for name in stack])

    def idle(self, cpu: int, until_ns: int, ns: int) -> None:
        """Add a time that a CPU was halted."""
        self.add(3, cpu, until_ns, ns, 0, [])

    def add(  # noqa: PLR0917
        self, kind: int, cpu: int, time_ns: int, a: int, b: int, addresses: Sequence[int], top: int = 0
    ) -> None:
        """Add a record as it is."""
        head = struct.pack("<BBHIQQQ", kind, cpu, len(addresses), top, time_ns, a, b)
        self._data += head + struct.pack(f"<{len(addresses)}Q", *addresses)

    def close(self, cut: int = 0) -> tuple[Path, Path]:
        """Write both files, the record without its last ``cut`` bytes; return their paths."""
        self.record.write_bytes(self._data[: len(self._data) - cut])
        lines = [f"{self.start_of(name):016x} t {name}\n" for name in self._names]
        self.symbols.write_text("".join(lines) + f"{BASE + 0x10000000:x} D jiffies\n")
        return self.record, self.symbols
