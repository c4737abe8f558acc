# SPDX-License-Identifier: GPL-2.0
"""The profile of a guest in virtual time: who writes, who writes back, and who waits for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.machine import guest
from lab.profile.summary import Profile
from lab.result import profile
from lab.tree.build import Kernel
from tests.unit.test_profile import titles

pytestmark = pytest.mark.guest
COMMAND = ["sh", "-c", "dd if=/dev/zero of=file bs=64k count=200 && sync"]


@pytest.fixture(scope="module")
def folder(smp_stock_kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the profile of COMMAND."""
    results = tmp_path_factory.mktemp("profile")
    done = profile.profiled(
        guest.run,
        smp_stock_kernel.path,
        COMMAND,
        machine="smp",
        cpus=2,
        mem_mib=1024,
        device_size_mib=400,
        results=results,
    )
    assert done.status == 0, done.output
    return results


def test_writers_and_flushers_are_seen_at_work(folder: Path) -> None:
    found = Profile.model_validate_json((folder / profile.JSON).read_text())
    assert found.notes == []
    assert {"tasks", "flushers"} <= set(found.groups)
    shown = titles((folder / profile.SVG).read_text())
    assert {"__x64_sys_write", "vfs_write", "wb_workfn", "do_writepages", "user space"} <= shown


def test_sync_is_seen_to_wait_for_the_flusher(folder: Path) -> None:
    found = Profile.model_validate_json((folder / profile.JSON).read_text())
    assert ("tasks", "wb_wait_for_completion") in {(one.group, one.who) for one in found.waits}
    assert "wb_wait_for_completion" in titles((folder / profile.SLEEP_SVG).read_text())


def test_neither_boot_nor_set_up_is_in_it(folder: Path) -> None:
    shown = titles((folder / profile.SVG).read_text())
    assert not {"start_kernel", "kernel_init", "__x64_sys_mount", "__x64_sys_reboot"} & shown
