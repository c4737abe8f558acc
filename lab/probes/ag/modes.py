# SPDX-License-Identifier: GPL-2.0
"""The modes of XFS's AG-aware writeback, of the test device's filesystem. Python's standard library only."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def folder() -> Path:
    """Return the folder of the modes, in sysfs; exit where there is none."""
    path = Path("/sys/fs/xfs", Path(os.environ["PWB_DEV"]).name, "writeback")
    if not path.is_dir():
        sys.exit(f"{path} is missing: expected XFS on a kernel with AG-aware writeback, as with --fs xfs")
    return path


def choose(path: Path, mode: str) -> None:
    """Switch to a mode, for overwrites and for delayed allocation.

    Args:
        path: folder of the modes.
        mode: ``off``, ``ag-hint``, ``rotor`` or ``generic``.
    """
    for kind in ("overwrite", "delalloc"):
        (path / kind).write_text(mode)
