# SPDX-License-Identifier: GPL-2.0
"""A kernel configuration without the modules that a server has not loaded, by the kernel's own script."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.util.errors import LabError

#: The script behind ``make localmodconfig``.
SCRIPT = Path("scripts/kconfig/streamline_config.pl")
_HEAD = ["Module", "Size", "Used"]


def check(listed: Path) -> None:
    """Raise unless a file is what ``lsmod`` prints: the script would take anything.

    Args:
        listed: the file.

    Raises:
        LabError: it is not, or cannot be read.
    """
    try:
        head, *modules = listed.read_text(encoding="utf-8").strip().splitlines() or [""]
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"the list of modules {listed} cannot be read: {error}") from None
    if head.split()[:3] != _HEAD:
        raise LabError(
            f"{listed} is not what lsmod prints: expected a first line 'Module Size Used by'; on the server "
            "that the packages are for, with all of its disks in use, run: lsmod > FILE"
        )
    if not modules:
        raise LabError(
            f"{listed} names no module: expected the disk's driver and the filesystem among others; a kernel "
            "that has all built in tells nothing, run lsmod on one of Debian's"
        )


def only(settings: str, tree: Path, listed: Path, show: Callable[[str], None]) -> str:
    """Return settings in which a module is left on if it is loaded, or if one that is loaded needs it.

    Args:
        settings: a whole ``.config``, for x86-64.
        tree: kernel source of its own files: the script looks for makefiles, and follows no links.
        listed: what ``lsmod`` printed on the server.
        show: called with each line of what the script complains about.

    Raises:
        LabError: the script failed, with its words.
    """
    tree = tree.resolve()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".config").write_text(settings, encoding="utf-8")
        done = subprocess.run(
            ["perl", tree / SCRIPT, "--localmodconfig", tree, "Kconfig"],
            cwd=folder,
            env=os.environ | {"SRCARCH": "x86", "LSMOD": str(listed.resolve())},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise LabError(f"{tree / SCRIPT} failed with status {done.returncode}: {done.stderr.strip()}")
    # Such as a module for which it finds no setting: it may be the disk's driver.
    for line in done.stderr.splitlines():
        show(line)
    return done.stdout
