# SPDX-License-Identifier: GPL-2.0
"""What syncfs() promised is there after a cut-off, in a running debug kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from tests.guest.marks import long
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
ROUNDS = 5
# Contexts, workers, and a further option of syncproof.py.
WAYS = [(1, 1, ""), (1, 4, ""), (8, 1, ""), (1, 1, "--resize")]


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_syncfs_keeps_its_promise(debug_kernel: Kernel, fs: str) -> None:
    # All ways share a boot; each has a filesystem of its own. What is not found fails syncproof.py.
    script = "set -e\necho rotor > $PWB_BDI/wb_affinity\n" + "".join(
        f"""
        echo {contexts} > $PWB_BDI/nwritebacks
        echo {workers} > $PWB_BDI/wb_workers
        {sys.executable} {HERE / "syncproof.py"} {fs} {ROUNDS} --quick {option}
        """
        for contexts, workers, option in WAYS
    )
    report = output_of(debug_kernel, script, fs="none")
    assert report.count(f"{ROUNDS} rounds") == report.count("all found") == len(WAYS), report
