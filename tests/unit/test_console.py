# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from lab.machine import console

CONSOLES = Path(__file__).parent / "fixtures" / "console"


def read(name: str) -> str:
    return (CONSOLES / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("name", "kind", "first", "last"),
    [
        ("oops", "oops", "general protection fault", "---[ end trace"),
        ("warn", "WARN", "inode_to_wb+0x40", "---[ end trace"),
        ("lockdep", "lockdep report", "possible circular locking", "dump_stack_lvl"),
        ("kasan", "KASAN report", "slab-use-after-free", "======"),
        ("data-race", "data race", "wb_next_context / wb_resize_contexts", "======"),
        ("ubsan", "UBSAN report", "array-index-out-of-bounds", "---[ end trace"),
        ("hung-task", "hung task", "umount:102 blocked", "sync_inodes_sb"),
        ("panic", "panic", "Segfault with no mm", "panic+0x3c"),
        ("bug", "kernel BUG", "sleeping function", "__might_resched"),
        ("stall", "stall", "rcu_sched detected stalls", "softirq=99"),
        ("corruption", "filesystem corruption", "xfs_agf_verify", "xfs_repair"),
        ("oom", "out of memory", "Killed process 71", "Killed process 71"),
    ],
)
def test_report_is_found_from_its_title_to_its_end(name: str, kind: str, first: str, last: str) -> None:
    (found,) = console.findings(read(name))
    assert found.kind == kind
    assert first in found.lines[0]
    assert last in found.lines[-1]


@pytest.mark.parametrize("name", ["clean", "early-exit"])
def test_ordinary_lines_are_no_report(name: str) -> None:
    assert console.findings(read(name)) == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("INFO: trying to register non-static key.", "lockdep report"),
        ("turning off the locking correctness validator.", "lockdep report"),
        ("ODEBUG: Out of memory. ODEBUG disabled", "debugging that gave up"),
        ("XFS (labblk0): Internal error i != 1 at line 1 of file fs/xfs/a.c.", "filesystem corruption"),
        ("XFS (labblk0): Corruption of on-disk metadata detected.", "filesystem corruption"),
        ("XFS (labblk0): Corruption detected! Free inode 0x83 not marked free", "filesystem corruption"),
        ("XFS (labblk0): Corruption detected. Unmount and run xfs_repair", "filesystem corruption"),
        ("EXT4-fs (labblk0): This should not happen!! Data will be lost", "filesystem corruption"),
        ("F2FS-fs (labblk0): Found FS corruption, run fsck to fix.", "filesystem corruption"),
        ("F2FS-fs (labblk0): SIT is corrupted node# 1 vs 2", "filesystem corruption"),
        ("F2FS-fs (labblk0): access invalid blkaddr:7 run fsck to fix", "filesystem corruption"),
        ("F2FS-fs (labblk0): Found nat_bits in checkpoint", None),
        ("F2FS-fs (labblk0): Stopped filesystem due to reason: 0", None),
        ("XFS (labblk0): User initiated shutdown received.", None),
    ],
)
def test_what_the_kernel_says_of_itself_and_of_filesystems(line: str, kind: str | None) -> None:
    assert console.kind_of(f"[    1.000000] {line}") == kind


def test_every_report_is_found_in_order() -> None:
    text = read("warn") + read("clean") + read("kasan") + read("hung-task")
    assert [found.kind for found in console.findings(text)] == ["WARN", "KASAN report", "hung task"]


def test_breakpoint_that_is_gone_is_stale_code() -> None:
    (found,) = console.findings(read("stale-code"))
    assert found.kind == "oops"
    assert console.is_stale_code(found)


@pytest.mark.parametrize(
    ("was", "now"),
    [("0f <1f>", "cc <1f>"), ("Oops: int3:", "Oops: invalid opcode:"), ("] Code: ", "] Data: ")],
)
def test_report_of_the_kernel_is_no_stale_code(was: str, now: str) -> None:
    text = read("stale-code")
    assert was in text
    (found,) = console.findings(text.replace(was, now))
    assert not console.is_stale_code(found)


def test_abort_of_qemu_over_a_map_that_is_gone_is_told_from_others() -> None:
    text = read("stale-map")
    assert console.findings(text) == []
    assert console.has_stale_map(text)
    assert not console.has_stale_map(text.replace("iotlb_to_section", "memory_region_find"))


def test_report_without_end_mark_is_cut_off() -> None:
    text = read("panic") + "more\n" * 1000
    (found,) = console.findings(text)
    assert len(found.lines) == console.MAX_REPORT_LINES


@pytest.mark.parametrize(
    "title",
    [
        "WARNING: possible recursive locking detected",
        "WARNING: possible irq lock inversion dependency detected",
        "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
        "WARNING: suspicious RCU usage",
        "WARNING: bad unlock balance detected!",
        "[ BUG: Invalid wait context ]",
        "WARNING: inconsistent lock state",
    ],
)
def test_lockdep_is_told_from_a_plain_warning(title: str) -> None:
    assert console.kind_of(title) == "lockdep report"


def test_tail_gives_the_last_lines() -> None:
    assert console.tail(read("early-exit"), 1) == "reboot: Restarting system"
