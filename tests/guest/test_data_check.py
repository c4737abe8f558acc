# SPDX-License-Identifier: GPL-2.0
"""What is written on 8 CPUs is what is read, mapped writes too, on stock and with 8 contexts.

User-mode Linux with more than one CPU loses mapped writes, on stock too: this is the other machine's part.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

CPUS = 8
OPERATIONS = 200
JOB = Path(__file__).with_name("verify.fio")
# Flushers begin at once, and writers are throttled.
LIMITS = {"/proc/sys/vm/dirty_background_bytes": str(1 << 20), "/proc/sys/vm/dirty_bytes": str(8 << 20)}


@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
@pytest.mark.parametrize(("kernel", "contexts"), [("smp_stock_kernel", 1), ("smp_parallel_kernel", 8)])
def test_every_byte_is_as_written(
    request: pytest.FixtureRequest, kernel: str, contexts: int, fs: str
) -> None:
    check = compiled(REPO / "guest" / "data_check.c")
    said = output_of(
        request.getfixturevalue(kernel),
        f"""
        {check} . {CPUS} {OPERATIONS} 1
        fio {JOB} > /tmp/written && sync && echo 3 > /proc/sys/vm/drop_caches
        fio --verify_only {JOB} > /tmp/verified && echo verified || cat /tmp/written /tmp/verified
        """,
        machine="smp",
        clock="virtual",
        cpus=CPUS,
        fs=fs,
        settings=LIMITS | ({"nwritebacks": str(contexts)} if contexts > 1 else {}),
    )
    assert "every byte is as written" in said, said
    # All that a file can go through was done.
    assert " 0, " not in said
    assert said.endswith("verified\n"), said
