# SPDX-License-Identifier: GPL-2.0
"""No memory, at every allocation of the calls that make contexts, workers and modes."""

from __future__ import annotations

import re
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

PARTS = ["settings", "inodes", "flushers", "mounts"]


def test_no_call_of_ours_breaks_without_memory(uml_debug_kernel: Kernel) -> None:
    program = compiled(REPO / "tests" / "guest" / "fail_nth.c")
    command = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "tests.guest.allocations", str(program)]
    said = output_of(uml_debug_kernel, command, fs="none")
    failed = {
        (fs, part): int(count)
        for fs, part, count in re.findall(r"^(\w+), (\w+): (\d+) allocations failed$", said, re.MULTILINE)
    }
    assert set(failed) == {(fs, part) for fs in ("xfs", "ext4", "f2fs") for part in PARTS}
    assert all(failed[fs, part] for fs in ("xfs", "ext4", "f2fs") for part in ("inodes", "flushers"))
    assert failed["xfs", "mounts"], "the other filesystems have nothing of ours to be mounted"
