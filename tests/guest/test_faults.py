# SPDX-License-Identifier: GPL-2.0
"""Faults of the machine while several contexts write: nothing hangs, nothing is lost, nothing is leaked."""

from __future__ import annotations

import re
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import faults, leftovers, live_objects
from tests.guest.marks import long
from tests.guest.output import output_of
from tests.tried import Tried

pytestmark = pytest.mark.guest


def report_of(kernel: Kernel, fs: str, tried: Tried, *arguments: str, **settings: int) -> str:
    """Run every kind of fault, and return what was said after they were seen to be done."""
    report = output_of(
        kernel,
        ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "tests.guest.faults", fs],
        fs="none",
        possible_cpus=faults.CONTEXTS,
        kernel_arguments=[f"nwritebacks={faults.CONTEXTS}", *arguments],
        **settings,
    )
    done = re.findall(r"^(\w+): as it should be$", report, re.MULTILINE)
    # User-mode Linux cannot suspend with several CPUs.
    cases = faults.cases(fs, can_suspend=kernel.machine == "smp")
    assert done == [*(case.__name__ for case in cases), *(end.__name__ for end in faults.ENDS)]
    tried(kinds_of_fault=len(done))
    return report


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_machine_fails_while_contexts_write(debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    report_of(debug_kernel, fs, tried)


# One CPU, for a second one frees memory before it may, and kmemleak makes a report of that.
@pytest.mark.long
@pytest.mark.parametrize("fs", ["xfs", "ext4", "f2fs"])
def test_nothing_is_leaked(uml_debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    assert report_of(uml_debug_kernel, fs, tried, "kmemleak=on", cpus=1).endswith("leaks: none\n")


@pytest.mark.parametrize("fs", long("xfs", "ext4", "f2fs"))
def test_nothing_is_left_of_devices_and_cgroups(uml_debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    report = output_of(
        uml_debug_kernel,
        ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "tests.guest.leftovers", fs],
        fs="none",
        possible_cpus=faults.CONTEXTS,
        kernel_arguments=[f"nwritebacks={faults.CONTEXTS}", *live_objects.KERNEL_ARGUMENTS],
    )
    rounds = re.findall(r"^(\w+): nothing is left$", report, re.MULTILINE)
    assert rounds == ["devices", "cgroups"]
    tried(rounds=leftovers.ROUNDS * len(rounds))
