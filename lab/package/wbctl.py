# SPDX-License-Identifier: GPL-2.0
"""The Debian package of ``wbctl``, by debhelper from ``tools/wbctl/debian``."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from lab.machine import host
from lab.util.errors import LabError
from lab.util.paths import REPO
from lab.util.process import stream

_SHOWN_LINES = 8


def make(output: Path) -> Path:
    """Compile ``wbctl`` and pack it, in a copy of its folder.

    Args:
        output: folder for the package; it has to exist.

    Returns:
        The package, ``wbctl_*.deb``.

    Raises:
        LabError: this computer lacks a package, or dpkg-buildpackage failed, with its last words.
    """
    host.check(host.Need())
    said: list[str] = []
    environment = {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C",
        "DEB_BUILD_OPTIONS": "noautodbgsym",
        "UAPI": str(REPO / "kernel" / "include" / "uapi"),
    }
    with tempfile.TemporaryDirectory(prefix="wbctl-") as name:
        tree = Path(name, "wbctl")
        shutil.copytree(REPO / "tools" / "wbctl", tree, ignore=shutil.ignore_patterns("wbctl"))
        command = ["dpkg-buildpackage", "--build=binary", "--unsigned-changes", "--unsigned-buildinfo"]
        if stream(command, tree, environment, said.append) != 0:
            raise LabError(
                "the package of wbctl cannot be built, mend tools/wbctl; dpkg-buildpackage says:\n"
                + "".join(f"  {line}" for line in said[-_SHOWN_LINES:])
            )
        [package] = tree.parent.glob("wbctl_*.deb")
        return Path(shutil.copy(package, output))
