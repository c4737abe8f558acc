# SPDX-License-Identifier: GPL-2.0
"""Settings and the ioctl take what they should and nothing else, whoever tries and whatever comes.

guest/hostile.c has the rules.
"""

from __future__ import annotations

import re

import pytest

from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

# Contexts for each CPU that the kernel prepares for, as in include/linux/bdi-writeback-ctx.h.
CONTEXTS_PER_CPU = 4
CPUS = 2


# A million take ten minutes on User-mode Linux, and hours on an emulated machine.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kernel", "count"),
    [("debug_kernel", 30_000), pytest.param("uml_debug_kernel", 1_000_000, marks=pytest.mark.long)],
)
def test_nothing_gets_in_that_should_not(request: pytest.FixtureRequest, kernel: str, count: int) -> None:
    # Writers keep the flushers at work, so that contexts, workers and modes change under load.
    script = f"""
        echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
        for file in 1 2 3 4; do
            while nice -n 19 dd if=/dev/zero of=$file bs=64k count=64 conv=notrunc 2>/dev/null; do :; done &
            load="$load $!"
        done
        bdi=/sys/class/bdi/$(cat /sys/block/$(basename $PWB_DEV)/dev)
        {compiled(REPO / "guest" / "hostile.c")} 1 {count} $bdi /sys/fs/xfs/$(basename $PWB_DEV) \\
            {CONTEXTS_PER_CPU * CPUS}
        status=$?
        kill $load
        exit $status
    """
    said = output_of(request.getfixturevalue(kernel), script, fs="xfs", cpus=CPUS, timeout_s=1800)
    assert f"{count} inputs, all as documented" in said, said
    # Each was tried both ways, and nobody's settings were all refused.
    of_root = re.findall(r"^root (\S+): (\d+) taken, (\d+) refused$", said, re.MULTILINE)
    assert len(of_root) == 10, said
    assert all(int(taken) and int(refused) for _, taken, refused in of_root), said
    others = re.findall(r"^nobody (\S+): (\d+) taken, (\d+) refused$", said, re.MULTILINE)
    assert all(taken == "0" for name, taken, _ in others if name != "ioctl"), said
