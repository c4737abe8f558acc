# SPDX-License-Identifier: GPL-2.0
"""The configurations in which each patch is compiled."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from lab.tree import config
from lab.util.errors import LabError
from lab.util.paths import REPO

# Folders of the kernel in which is what the series changes, and whatever uses that.
FOLDERS = ("block/", "drivers/block/", "fs/", "mm/")
_ALL = ("common", "contexts", "hints", "check")


@dataclass(frozen=True)
class Configuration:
    """One way to compile the kernel.

    Attributes:
        name: what users call it.
        arch: the kernel's name of the architecture.
        fragments: names of files in ``config/``, the one that wins last.
        cross: what the names of the cross-compiler's programs begin with; empty: the machine's own.
        package: Debian package of the cross-compiler.
    """

    name: str
    arch: str
    fragments: tuple[str, ...]
    cross: str = ""
    package: str = "gcc"

    def requests(self) -> list[config.Request]:
        """Return the settings that it asks for."""
        return config.merge([REPO / "config" / f"{name}.config" for name in self.fragments])

    def variables(self) -> tuple[str, ...]:
        """Return the variables that make is given."""
        return f"ARCH={self.arch}", f"CROSS_COMPILE={self.cross}", f"CC=ccache {self.cross}gcc"

    def compiler(self) -> str:
        """Return the version of its compiler.

        Raises:
            LabError: it is missing.
        """
        program = f"{self.cross}gcc"
        try:
            done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        except (FileNotFoundError, subprocess.CalledProcessError):
            raise LabError(
                f"{program} is missing, {self.name} is compiled with it: install the Debian package "
                f"{self.package}, or leave {self.name} out with --checks"
            ) from None
        return done.stdout.partition("\n")[0]


CONFIGURATIONS = (
    Configuration("um", "um", ("common", "uml", "contexts", "hints", "check")),
    Configuration("x86-64", "x86_64", (*_ALL, "check-x86")),
    Configuration("no-cgroup", "x86_64", (*_ALL, "check-x86", "check-nocgroup")),
    Configuration("no-block", "x86_64", (*_ALL, "check-x86", "check-noblock")),
    Configuration("i386", "i386", (*_ALL, "check-x86", "check-i386")),
    Configuration("arm64", "arm64", _ALL, "aarch64-linux-gnu-", "gcc-aarch64-linux-gnu"),
)
