# SPDX-License-Identifier: GPL-2.0
"""Every byte is as it was written, after each patch: the guest test that needs nothing but a filesystem."""

from __future__ import annotations

import hashlib
import sys

from lab.check.booted import Booted
from lab.check.patches import Patch
from lab.util.paths import REPO

SCRIPT = REPO / "tests" / "guest" / "resize.py"
FILESYSTEMS = ("xfs", "ext4", "f2fs")
_SECONDS = 2


class Load(Booted):
    """Writers, cgroups, sync and unmounts, while what the patches so far can change is changed."""

    name = "load"

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: the compiler is missing.
        """
        scripts = sorted(path for path in SCRIPT.parent.glob("*.py") if not path.name.startswith("test_"))
        digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in scripts)).hexdigest()
        return [*super().inputs(patch), digest]

    def after(self, patch: Patch) -> list[str]:
        """Boot a kernel for each filesystem; return what is wrong."""
        found = []
        for fs in FILESYSTEMS:
            command = [sys.executable, str(SCRIPT), fs, str(_SECONDS), "--quick", "--any-kernel"]
            found += [f"{fs}: {failure}" for failure in self._run(command).failures]
        return found
