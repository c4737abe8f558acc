# SPDX-License-Identifier: GPL-2.0
"""No memory, at every allocation of calls that make contexts, workers and modes, and of those that sync."""

from __future__ import annotations

import re
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.program import compiled
from tests.guest import allocations, mount_allocations, sync_allocations
from tests.guest.output import LONG_S, output_of
from tests.guest.scarce import CONTEXTS, MAKE
from tests.tried import Tried

# Hundreds of numbers, each with a load of its own.
pytestmark = [pytest.mark.guest, pytest.mark.timeout(3600)]


def said_by(kernel: Kernel, module: str, *arguments: str) -> str:
    """Return what a module says that calls system calls without memory."""
    program = compiled(REPO / "tests" / "guest" / "fail_nth.c")
    command = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", module, str(program), *arguments]
    # All that is said of the mounts of one part is read after it.
    return output_of(kernel, command, fs="none", timeout_s=LONG_S, kernel_arguments=["log_buf_len=1M"])


@pytest.mark.parametrize("fs", MAKE)
def test_no_call_of_ours_breaks_without_memory(uml_debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    said = said_by(uml_debug_kernel, "tests.guest.allocations", fs)
    failed, sites = {}, {}
    for part, count, where in re.findall(r"^(\w+): (\d+) allocations failed in (.*)$", said, re.MULTILINE):
        failed[part], sites[part] = int(count), set(where.split())
    assert list(failed) == [part.__name__ for part in allocations.PARTS]
    assert failed["inodes"]
    assert failed["flushers"]
    # The others have no settings of ours; what all have for contexts: mount_allocations.py.
    assert (failed["mounts"] > 0) == (fs == "xfs")
    # A compiler may make one function of two.
    assert sites["inodes"] & {"cgwb_create_in_ctx", "wb_in_ctx"}
    assert sites["flushers"] & {"wb_create_siblings", "wb_wake_sibling", "wb_worker_begin"}
    durable = re.search(r"^without memory: (\d+) files are durable", said, re.MULTILINE)
    assert durable
    assert int(durable[1])
    assert fs != "xfs" or any(site.startswith("xfs_agwb_") for site in sites["flushers"])
    tried(allocations_failed=sum(failed.values()))


@pytest.mark.parametrize("fs", MAKE)
def test_mount_without_memory_for_contexts_has_one(uml_debug_kernel: Kernel, fs: str) -> None:
    said = said_by(uml_debug_kernel, "tests.guest.mount_allocations", fs)
    assert f"contexts: 1 without memory for more, {mount_allocations.CONTEXTS} with" in said


@pytest.mark.parametrize("fs", MAKE)
def test_sync_keeps_its_promise_without_memory(uml_debug_kernel: Kernel, tried: Tried, fs: str) -> None:
    said = said_by(uml_debug_kernel, "tests.guest.sync_allocations", fs)
    failed = {
        name: (int(calls), int(orders))
        for name, calls, orders in re.findall(
            r"^([\w ]+): (\d+) calls, (\d+) orders failed$", said, re.MULTILINE
        )
    }
    assert {name for name in failed if " " not in name} == {"nothing", *sync_allocations.OPERATIONS}
    writebacks = len(sync_allocations.GROUPS) * CONTEXTS
    # One of each writeback in turn, and all in one call.
    for name in ("syncfs", "syncfs without any", "umount", "umount without any"):
        assert failed[name][1] >= writebacks, name
    assert failed["syncfs without any"][0] == 1
    tried(calls=sum(calls for calls, _ in failed.values()), orders_failed=sum(n for _, n in failed.values()))
