# SPDX-License-Identifier: GPL-2.0
"""The machine ``uml``: User-mode Linux, a kernel that is an ordinary program of the host."""

from __future__ import annotations

import mmap
import os
import pty
from dataclasses import dataclass
from pathlib import Path

from lab.machine.process import Start
from lab.util.errors import LabError


@dataclass(frozen=True)
class Uml:
    """A User-mode Linux machine.

    Attributes:
        memory: descriptor of a file to take the guest's memory from; None: the kernel makes one.
    """

    memory: int | None = None
    name = "uml"
    answers = False

    @property
    def passed(self) -> tuple[int, ...]:
        """The file of the memory."""
        return () if self.memory is None else (self.memory,)

    def check_kernel(self, kernel: Path) -> None:
        """Raise LabError unless ``kernel`` is an executable User-mode Linux kernel."""
        if not kernel.is_file():
            raise LabError(
                f"guest kernel {kernel}: no such file; expected the path of a User-mode Linux kernel"
            )
        if not os.access(kernel, os.X_OK | os.R_OK):
            raise LabError(f"guest kernel {kernel} cannot be executed: expected mode rx (chmod +rx {kernel})")
        # Every UML kernel carries its configuration in plain text, for its option --showconfig.
        with kernel.open("rb") as file:
            empty = os.fstat(file.fileno()).st_size == 0
            if empty or mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).find(b"CONFIG_UML=y") < 0:
                raise LabError(
                    f"guest kernel {kernel} is not User-mode Linux: expected one built with ARCH=um"
                )

    def line(self) -> tuple[int, int]:
        """Return our end and the guest's end of a pipe, which the guest writes to."""
        return os.pipe()

    def terminal(self) -> tuple[int, int]:
        """Return our end and the guest's end of a pseudo-terminal."""
        return pty.openpty()

    def command(self, start: Start) -> list[str]:
        """Return the kernel and its arguments."""
        output = f"fd:{start.output}" if start.terminal else f"null,fd:{start.output}"
        own_memory = [] if self.memory is None else [f"mem_fd={self.memory}"]
        return [
            *(str(start.kernel), "seccomp=on", "noreboot", f"uml_dir={start.folder}/", "umid=uml"),
            *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={start.init}"),
            *("console=tty0", "con=null", "con0=null,fd:1"),
            *("ssl=null", f"ssl0={output}", f"ssl1=null,fd:{start.report}"),
            *own_memory,
            *(f"mem={start.mem_mib}M", f"maxcpus={start.cpus}", f"ncpus={start.possible_cpus}"),
            *start.arguments,
        ]
