# SPDX-License-Identifier: GPL-2.0
"""Settings and the ioctl take what they should and nothing else, whoever tries and whatever comes.

tests/guest/hostile.c has the rules.
"""

from __future__ import annotations

import re

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest.output import output_of
from tests.tried import Tried

pytestmark = pytest.mark.guest

# Contexts for each CPU that the kernel prepares for, as in include/linux/bdi-writeback-ctx.h.
CONTEXTS_PER_CPU = 4
CPUS = 2
NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"
# How to become what tests/guest/hostile.c knows. The /sys of a container has nothing mounted below it.
WAYS = {
    "root": "",
    "nobody": NOBODY,
    "container": "unshare -m sh -ec 'umount -R /sys; mount -t sysfs -o ro sysfs /sys; "
    'exec setpriv --bounding-set=-all --inh-caps=-all "$@"\' -',
}
# Of 10 inputs root's are most: they change something.
SHARES = {"root": 6, "nobody": 2, "container": 2}
OF_ROOT = 9 + 3 + 1 + 1


def hostile(kernel: Kernel, tries: list[tuple[str, str, int]], seed: int) -> str:
    """Have each make its inputs, one after the other, and return what they say.

    Writers keep the flushers at work, so that contexts, workers and modes change under load.

    Args:
        kernel: what to boot.
        tries: who it is for the program, how to become that, and how many inputs it makes.
        seed: makes up the inputs.
    """
    # The cache may be in a folder that is for its owner only.
    script = f"""
        install -m 755 {compiled(REPO / "tests" / "guest" / "hostile.c")} /run/hostile
        echo $((4 << 20)) > /proc/sys/vm/dirty_bytes
        for file in 1 2 3 4; do
            while nice -n 19 dd if=/dev/zero of=$file bs=64k count=64 conv=notrunc 2>/dev/null; do :; done &
            load="$load $!"
        done
        chmod 777 .
        bdi=/sys/class/bdi/$(cat /sys/block/$(basename $PWB_DEV)/dev)
        xfs=/sys/fs/xfs/$(basename $PWB_DEV)
        try() {{
            who=$1 count=$2; shift 2
            "$@" /run/hostile $who {seed} $count $bdi $xfs {CONTEXTS_PER_CPU * CPUS}
        }}
    """
    script += " && ".join(f"try {who} {count} {way}" for who, way, count in tries)
    script += """
        status=$?
        kill $load
        exit $status
    """
    said = output_of(kernel, script, fs="xfs", cpus=CPUS, timeout_s=1800)
    for who, _, count in tries:
        assert f"{count} inputs of {who}, all as documented" in said, said
    return said


# The long ones are a million: six minutes on two idle cores, and ten times that on busy ones.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kernel", "count", "seed"),
    [
        ("debug_kernel", 30_000, 1),
        *(pytest.param("uml_debug_kernel", 125_000, seed, marks=pytest.mark.long) for seed in range(2, 10)),
    ],
)
def test_nothing_gets_in_that_should_not(
    request: pytest.FixtureRequest, tried: Tried, kernel: str, count: int, seed: int
) -> None:
    tries = [(who, way, count * SHARES[who] // 10) for who, way in WAYS.items()]
    said = hostile(request.getfixturevalue(kernel), tries, seed)
    # Root was taken and refused everywhere, the others were refused everywhere but by the ioctl.
    found = re.findall(r"^(\w+) (\S+): (\d+) taken, (\d+) refused$", said, re.MULTILINE)
    assert len(found) == len(WAYS) * OF_ROOT, said
    assert all(int(refused) for _, _, _, refused in found), said
    assert all(bool(int(taken)) == (who == "root" or name == "ioctl") for who, name, taken, _ in found), said
    tried(inputs=sum(number for _, _, number in tries), seeds=1)


def test_a_user_namespace_gives_no_rights(debug_kernel: Kernel, tried: Tried) -> None:
    count = 10_000
    hostile(debug_kernel, [("nobody", f"{NOBODY} unshare -Urmpf --mount-proc", count)], 1)
    tried(inputs=count, seeds=1)
