# SPDX-License-Identifier: GPL-2.0
"""Waits for spinlocks, from the lines of a trace."""

from __future__ import annotations

import pytest

from guest.list_lock import waited

TRACE = """
 kworker/u8:1-101 [000] d..1. 10.000010: contention_begin: 0000000061a2b3c4 (flags=SPIN)
 kworker/u8:1-101 [000] d..1. 10.000010: <stack trace>
 => save_stack_trace
 => stack_trace_save
 => __ftrace_trace_stack
 => __trace_stack
 => event_triggers_post_call
 => trace_event_raw_event_contention_begin
 => native_queued_spin_lock_slowpath
 => do_raw_spin_lock
 => _raw_spin_lock
 => writeback_sb_inodes
 => wb_writeback
            fio-77 [001] d..1. 10.000012: contention_begin: 0000000061a2b3c4 (flags=SPIN)
            fio-77 [001] d..1. 10.000012: <stack trace>
 => native_queued_spin_lock_slowpath
 => _raw_spin_lock
 => __mark_inode_dirty
 kworker/u8:1-101 [000] d..1. 10.000020: contention_end: 0000000061a2b3c4 (ret=0)
            fio-77 [001] d..1. 10.000042: contention_end: 0000000061a2b3c4 (ret=0)
            fio-78 [001] d..1. 10.000050: contention_end: 0000000061a2b3c4 (ret=0)
"""


def test_waits_go_to_the_function_that_took_the_lock() -> None:
    found = waited(TRACE.splitlines())
    counts = {caller: count for caller, (count, _) in found.items()}
    seconds = {caller: waited_s for caller, (_, waited_s) in found.items()}
    assert counts == {"writeback_sb_inodes": 1, "__mark_inode_dirty": 1}
    assert seconds == pytest.approx({"writeback_sb_inodes": 10e-6, "__mark_inode_dirty": 30e-6})
