# SPDX-License-Identifier: GPL-2.0
"""What is written is what is read, mapped writes too: on both machines, with several CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest.marks import long
from tests.guest.output import output_of
from tests.tried import Tried

pytestmark = pytest.mark.guest

CPUS = 8
OPERATIONS = 200
PROCESSES = 6
# Without hooks/0-um-tlb stock lost a mapped write after some 900 operations on XFS, and 8,000 on ext4.
UML_OPERATIONS = 3000
JOB = Path(__file__).with_name("verify.fio")
# Flushers begin at once, and writers are throttled.
LIMITS = {"/proc/sys/vm/dirty_background_bytes": str(1 << 20), "/proc/sys/vm/dirty_bytes": str(8 << 20)}


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
@pytest.mark.parametrize(("kernel", "contexts"), [("smp_stock_kernel", 1), ("smp_parallel_kernel", 8)])
def test_every_byte_is_as_written(
    request: pytest.FixtureRequest, tried: Tried, kernel: str, contexts: int, fs: str
) -> None:
    check = compiled(REPO / "tests" / "guest" / "data_check.c")
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
    tried(operations=CPUS * OPERATIONS)


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_mapped_writes_of_several_cpus(debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    check_mapped(debug_kernel, fs, UML_OPERATIONS, tried)


@pytest.mark.parametrize("fs", long("xfs", "ext4", "f2fs"))
@pytest.mark.parametrize("kernel", ["uml_stock_kernel", "uml_parallel_kernel"])
def test_mapped_writes_of_several_cpus_for_long(
    request: pytest.FixtureRequest, tried: Tried, kernel: str, fs: str
) -> None:
    check_mapped(request.getfixturevalue(kernel), fs, 40_000, tried)


def check_mapped(kernel: Kernel, fs: str, operations: int, tried: Tried) -> None:
    """Have six processes change files in so many ways each, and compare."""
    check = compiled(REPO / "tests" / "guest" / "data_check.c")
    command = [str(check), ".", str(PROCESSES), str(operations), "7"]
    said = output_of(kernel, command, fs=fs, settings=LIMITS)
    assert "every byte is as written" in said, said
    assert " 0, " not in said
    tried(operations=PROCESSES * operations)
