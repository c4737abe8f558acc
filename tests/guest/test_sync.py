# SPDX-License-Identifier: GPL-2.0
"""What syncfs() promised is there after a cut-off, in a running debug kernel."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from lab import guest
from lab.build import Kernel

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
FILESYSTEMS = ["xfs", "ext4", "f2fs"]
ROUNDS = 5


def prove(kernel: Kernel, fs: str, *options: str, contexts: int, workers: int) -> None:
    """Run syncproof.py in the debug guest; what it has not found fails the test."""
    output = io.StringIO()
    result = guest.run(
        kernel.path,
        [sys.executable, str(HERE / "syncproof.py"), fs, str(ROUNDS), "--quick", *options],
        fs="none",
        settings={"nwritebacks": str(contexts), "wb_affinity": "rotor", "wb_workers": str(workers)},
        timeout_s=240,
        stream=output,
    )
    assert result.status == 0, output.getvalue()
    assert f"{ROUNDS} rounds" in output.getvalue()
    assert "all found" in output.getvalue()


@pytest.mark.parametrize("contexts,workers", [(1, 1), (1, 4), (8, 1)])
@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_syncfs_keeps_its_promise(debug_kernel: Kernel, fs: str, contexts: int, workers: int) -> None:
    prove(debug_kernel, fs, contexts=contexts, workers=workers)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_syncfs_keeps_its_promise_while_contexts_change(debug_kernel: Kernel, fs: str) -> None:
    prove(debug_kernel, fs, "--resize", contexts=1, workers=1)
