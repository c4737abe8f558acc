# SPDX-License-Identifier: GPL-2.0
"""What syncfs() promised is there after a cut-off, in a running debug kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.build import Kernel
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
FILESYSTEMS = ["xfs", "ext4", "f2fs"]
ROUNDS = 5


def prove(kernel: Kernel, fs: str, *options: str, contexts: int, workers: int) -> None:
    """Run syncproof.py in the debug guest; what it has not found fails the test."""
    command = [sys.executable, str(HERE / "syncproof.py"), fs, str(ROUNDS), "--quick", *options]
    settings = {"nwritebacks": str(contexts), "wb_affinity": "rotor", "wb_workers": str(workers)}
    report = output_of(kernel, command, fs="none", settings=settings)
    assert f"{ROUNDS} rounds" in report
    assert "all found" in report


@pytest.mark.parametrize("contexts,workers", [(1, 1), (1, 4), (8, 1)])
@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_syncfs_keeps_its_promise(debug_kernel: Kernel, fs: str, contexts: int, workers: int) -> None:
    prove(debug_kernel, fs, contexts=contexts, workers=workers)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_syncfs_keeps_its_promise_while_contexts_change(debug_kernel: Kernel, fs: str) -> None:
    prove(debug_kernel, fs, "--resize", contexts=1, workers=1)
