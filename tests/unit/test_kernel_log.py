# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from lab.machine.console import CORRUPTION, LEAK
from tests.guest.kernel_log import Log

USUAL = "7\t4\t1\t7\n"
STALL = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"
CRC = "XFS (tested): Metadata CRC error detected at xfs_agf_read_verify+0x40/0xa0, xfs_agf block 0x1"


@pytest.fixture
def log_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Return what has a log say something, and raises what a program ends with."""
    level = tmp_path / "printk"
    level.write_text(USUAL)
    monkeypatch.setattr("tests.guest.kernel_log.LEVEL", level)
    monkeypatch.setattr("tests.guest.kernel_log.KMSG", os.devnull)

    def say(*records: str | OSError, log: type[Log] = Log, **settings: Collection[str]) -> None:
        left = iter([*records, BlockingIOError()])

        def read(fd: int, size: int) -> bytes:
            record = next(left)
            if isinstance(record, OSError):
                raise record
            return f"6,1,1,-;{record}\n".encode()

        try:
            with log().only_reports(**settings):
                assert level.read_text() == "1"
                monkeypatch.setattr(os, "read", read)
        finally:
            assert level.read_text() == USUAL

    return say


@pytest.mark.parametrize(
    "report",
    [
        STALL,
        "WARNING: fs/fs-writeback.c:1 at wb_writeback+0x1/0x2",
        "UBSAN: shift-out-of-bounds in fs/xfs/xfs_agwb.c:1:2",
        "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
    ],
)
def test_report_ends_the_program_with_what_follows(log_of: Callable[..., None], report: str) -> None:
    with pytest.raises(SystemExit, match="(?s)" + re.escape(report) + ".*and more"):
        log_of("before", CRC, report, "and more")


def test_corruption_is_no_report_only_where_the_device_fails(log_of: Callable[..., None]) -> None:
    log_of("ordinary", CRC)
    log_of(CRC, allowed=(CORRUPTION, LEAK))
    with pytest.raises(SystemExit, match="Metadata CRC error"):
        log_of(CRC, allowed=())


def test_what_is_excused_hides_nothing_else(log_of: Callable[..., None]) -> None:
    class Excused(Log):
        excused = re.compile("xfs_agf_read_verify")

    log_of(CRC, log=Excused, allowed=())
    with pytest.raises(SystemExit, match="detected stalls"):
        log_of(CRC, STALL, log=Excused, allowed=())


def test_records_that_were_overwritten_are_no_silence(log_of: Callable[..., None]) -> None:
    with pytest.raises(SystemExit, match="log_buf_len"):
        log_of("ordinary", BrokenPipeError())
