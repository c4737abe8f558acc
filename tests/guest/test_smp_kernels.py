# SPDX-License-Identifier: GPL-2.0
"""The kernels for the machine of many CPUs, running: free of virtual time, which only measurements need."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from tests.guest.marks import long
from tests.guest.output import output_of

pytestmark = pytest.mark.guest
HERE = Path(__file__).parent


@pytest.mark.parametrize("flavour", ["stock", "parallel", *long("debug")])
def test_kernel_has_its_cpus_and_says_what_it_is(request: pytest.FixtureRequest, flavour: str) -> None:
    kernel: Kernel = request.getfixturevalue(f"smp_{flavour}_kernel")
    script = """
        nproc
        zcat /proc/config.gz | grep -Ec '^CONFIG_(PREEMPT|KASAN|PROVE_LOCKING)=y'
        ls $PWB_BDI | grep -c nwritebacks
        true
    """
    checks, contexts = {"stock": ("0", "0"), "parallel": ("0", "1"), "debug": ("3", "1")}[flavour]
    assert output_of(kernel, script, cpus=4).split() == ["4", checks, contexts]


@pytest.mark.parametrize("fs", ["xfs", *long("ext4", "f2fs")])
def test_every_byte_arrives_under_preemption(smp_debug_kernel: Kernel, fs: str) -> None:
    settings = {"nwritebacks": "4", "wb_affinity": "rotor", "wb_workers": "2"}
    command = [sys.executable, str(HERE / "compare.py"), fs]
    report = output_of(smp_debug_kernel, command, fs="none", cpus=4, settings=settings)
    assert "every byte is as written" in report
