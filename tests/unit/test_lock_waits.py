# SPDX-License-Identifier: GPL-2.0
"""Sleeps for locks, from the lines of a trace."""

from __future__ import annotations

import pytest

from guest.lock_waits import waited

TRACE = """
 iou-wrk-7-101 [000] ..... 10.000010: contention_begin: 0000000061a2b3c4 (flags=)
 iou-wrk-7-101 [000] ..... 10.000010: <stack trace>
 => __down_common
 => xfs_buf_lock
 => xfs_read_agf
 => xfs_alloc_read_agf
           fio-77 [001] ..... 10.000012: contention_begin: 0000000061a2b3c8 (flags=WRITE)
           fio-77 [001] ..... 10.000012: <stack trace>
 => rwsem_down_write_slowpath
 => xfs_ilock
 iou-wrk-7-101 [000] ..... 10.000020: contention_end: 0000000061a2b3c4 (ret=0)
           fio-77 [001] ..... 10.000042: contention_end: 0000000061a2b3c8 (ret=0)
           fio-78 [001] ..... 10.000050: contention_end: 0000000061a2b3c4 (ret=0)
           fio-79 [001] ..... 10.000060: contention_begin: 0000000061a2b3cc (flags=MUTEX)
           fio-79 [001] ..... 10.000060: <stack trace>
 => __mutex_lock
 => io_uring_enter
           fio-79 [001] ..... 10.000065: contention_end: 0000000061a2b3cc (ret=0)
"""


def test_waits_go_to_the_lock_that_the_stack_tells() -> None:
    found = waited(TRACE.splitlines())
    assert {name: count for name, (count, _) in found.items()} == {"AGF": 1, "inode lock": 1, "other": 1}
    seconds = {name: asleep for name, (_, asleep) in found.items()}
    assert seconds == pytest.approx({"AGF": 10e-6, "inode lock": 30e-6, "other": 5e-6})
