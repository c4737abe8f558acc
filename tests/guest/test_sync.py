# SPDX-License-Identifier: GPL-2.0
"""What syncfs() promised is there after a cut-off, in a running debug kernel."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.tree.build import Kernel
from tests.guest.marks import long
from tests.guest.output import LONG_S, output_of
from tests.tried import Tried

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
ROUNDS = 5
# Contexts, workers, and a further option of syncproof.py.
Way = tuple[int, int, str]
WAYS: list[Way] = [(1, 1, ""), (1, 4, ""), (8, 1, ""), (1, 1, "--resize")]


def prove(
    kernel: Kernel, fs: str, ways: list[Way], rounds: int, tried: Tried, *options: str, **settings: Any
) -> None:
    """Have each way keep its promise for so many rounds; what is not found fails syncproof.py.

    The ways share a boot; each has a filesystem of its own.
    """
    script = "set -e\necho rotor > $PWB_BDI/wb_affinity\n" + "".join(
        f"""
        echo {contexts} > $PWB_BDI/nwritebacks
        echo {workers} > $PWB_BDI/wb_workers
        {sys.executable} {HERE / "syncproof.py"} {fs} {rounds} {" ".join(options)} {option}
        """
        for contexts, workers, option in ways
    )
    report = output_of(kernel, script, fs="none", **settings)
    promised = re.findall(rf"{rounds} rounds, (\d+) records promised, all found", report)
    assert len(promised) == len(ways), report
    tried(rounds=rounds * len(ways), records_promised=sum(map(int, promised)))


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_syncfs_keeps_its_promise(debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    prove(debug_kernel, fs, WAYS, ROUNDS, tried, "--quick")


# Of all ways together a thousand rounds with each filesystem. This machine's timer comes every 10 ms, and as
# long takes a command of any device with latency: with 16 of them in flight a sync would take ten seconds.
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way)).rstrip("-"))
@pytest.mark.parametrize("fs", long("xfs", "ext4", "f2fs"))
def test_syncfs_keeps_its_promise_for_long(
    uml_parallel_kernel: Kernel, tried: Tried, fs: str, way: Way
) -> None:
    prove(uml_parallel_kernel, fs, [way], 1000 // len(WAYS), tried, device="wide", timeout_s=LONG_S)
