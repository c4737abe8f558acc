# SPDX-License-Identifier: GPL-2.0
"""Debian's own configuration of a kernel series for cloud machines, from the package that brings it."""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path

from lab.tree.source import SUITE
from lab.util.apt import reachable, unpack
from lab.util.errors import LabError
from lab.util.paths import cache_dir

_FILE = "config.amd64_none_cloud-amd64.xz"
_INSTEAD = "name a packaged series with --series, or a tree of one with --source"


def fetch(series: str) -> Path:
    """Return a configuration, from the cache or else from the machine's Debian mirror.

    The source package of a kernel is built together with it, so a series that has the one has the other.

    Args:
        series: kernel series, such as ``7.3``.

    Returns:
        A ``.config``.

    Raises:
        LabError: there is none for the series or this computer's architecture, or no mirror can be reached.
    """
    kept = cache_dir() / "source" / f"config-{series}"
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".config-", dir=kept.parent) as name:
        work = Path(name)
        apt = reachable(work, [SUITE], "Debian's kernel configuration", _INSTEAD)
        package = f"linux-config-{series}"
        if apt.version(package) is None:
            raise LabError(
                f"Debian's configuration of kernel series {series} is not packaged in {SUITE}: {_INSTEAD}"
            )
        unpack([apt.download(package)], work / "package", package, mib=10)
        packed = work / "package" / "usr" / "src" / package / _FILE
        if not packed.is_file():
            raise LabError(f"{package} has no {_FILE}: make packages of the kernel on an amd64 computer")
        (work / "config").write_bytes(lzma.decompress(packed.read_bytes()))
        (work / "config").replace(kept)
    return kept
