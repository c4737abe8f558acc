# SPDX-License-Identifier: GPL-2.0
"""Extents of the files below a folder, by filefrag. Python's standard library only."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# More files than this are not worth a filefrag each; the largest are taken.
MAX_FILES = 64


def count_extents(filefrag: str, mount: Path) -> dict[str, int]:
    """Return extents by file name, for the files under ``mount``."""
    files = regular_files(mount)
    if not files:
        return {}
    done = subprocess.run([filefrag, *map(str, files)], capture_output=True, text=True, check=False)
    return {str(Path(name).relative_to(mount)): count for name, count in parse_filefrag(done.stdout).items()}


def parse_filefrag(text: str) -> dict[str, int]:
    """Return path -> extents from what filefrag prints."""
    return {
        name: int(count) for name, count in re.findall(r"^(.*): (\d+) extents? found$", text, re.MULTILINE)
    }


def regular_files(mount: Path) -> list[Path]:
    """Return the largest files under ``mount``, behind links too, by name."""
    found = [path for path in sorted(mount.rglob("*")) if path.is_file()]
    return sorted(sorted(found, key=lambda path: -path.stat().st_size)[:MAX_FILES])
