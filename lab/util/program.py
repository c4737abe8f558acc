# SPDX-License-Identifier: GPL-2.0
"""Small C programs of this clone, compiled when first needed and kept in the cache by their content."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from lab.util.errors import LabError
from lab.util.paths import cache_dir

FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread")


def compiled(source: Path) -> Path:
    """Return the program made from a C file, a static one: a guest starts it by reading one file.

    Args:
        source: the C file; headers of its folder count as part of it.

    Raises:
        LabError: there is no compiler, or it refuses the file, with its first complaint.
    """
    parts = [source, *sorted(source.parent.glob("*.h"))]
    text = b"\0".join([*(part.read_bytes() for part in parts), " ".join(FLAGS).encode()])
    program = cache_dir() / "program" / hashlib.sha256(text).hexdigest()[:16] / source.stem
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
        made = Path(scratch, "made")
        try:
            done = subprocess.run(
                ["gcc", *FLAGS, "-o", str(made), str(source)], capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise LabError(
                f"gcc is missing, {source.name} is compiled with it: install the packages with: make setup"
            ) from None
        if done.returncode:
            complaints = [line for line in done.stderr.splitlines() if "error:" in line] or [
                done.stderr.strip()
            ]
            raise LabError(f"gcc refuses a program of this clone: {complaints[0]}")
        # Two runs at once make the same program, and the second puts it over the first.
        os.replace(made, program)
    return program
