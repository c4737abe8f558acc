# SPDX-License-Identifier: GPL-2.0
"""The Debian package of ``wbctl``, by debhelper from ``tools/wbctl/debian``."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from lab.package import folder
from lab.tree import change
from lab.util import host
from lab.util.errors import LabError
from lab.util.paths import REPO
from lab.util.process import stream

_TREE = REPO / "tools" / "wbctl"
_UAPI = REPO / "kernel" / "include" / "uapi"
_SHOWN_LINES = 8
# As a kernel's package has one that is written when it is made.
_CHANGELOG = """\
wbctl (1.0+{time:%Y%m%d%H%M%S}) unstable; urgency=medium

  * Made from the sources of this time.

 -- parallel writeback <pwb@pwb.invalid>  {date}
"""


def make(output: Path) -> Path:
    """Compile ``wbctl`` and pack it, in a copy of its folder.

    Its version has the time when a file of it was last changed, so that apt takes a changed one for newer.

    Args:
        output: folder for the package (:mod:`lab.package.folder`); it has to exist.

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
        "UAPI": str(_UAPI),
    }
    with tempfile.TemporaryDirectory(prefix="wbctl-") as name:
        tree = Path(name, "wbctl")
        commit = change.commit()
        shutil.copytree(_TREE, tree, ignore=shutil.ignore_patterns("wbctl"))
        files = (path for path in (*tree.rglob("*"), *_UAPI.rglob("*")) if path.is_file())
        time = datetime.fromtimestamp(int(max(path.stat().st_mtime for path in files)), UTC)
        text = _CHANGELOG.format(time=time, date=format_datetime(time))
        (tree / "debian" / "changelog").write_text(text, encoding="utf-8")
        command = ["dpkg-buildpackage", "--build=binary", "--unsigned-changes", "--unsigned-buildinfo"]
        if stream(command, tree, environment, said.append) != 0:
            raise LabError(
                "the package of wbctl cannot be built, mend tools/wbctl; dpkg-buildpackage says:\n"
                + "".join(f"  {line}" for line in said[-_SHOWN_LINES:])
            )
        [package] = tree.parent.glob("wbctl_*.deb")
        return folder.put(package, output, change=None, commit=commit)
