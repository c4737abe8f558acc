# SPDX-License-Identifier: GPL-2.0
"""From samples and context switches to flame graphs and tables of who runs, spins and waits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lab.bench import bench
from lab.machine import smp
from lab.machine.hardware import Hardware
from lab.machine.qemu import Qemu
from lab.profile import flamegraph, stacks
from lab.profile.record import Record
from lab.profile.stacks import Departure
from lab.profile.summary import Profile, windows
from lab.profile.symbols import UNKNOWN, USER, Symbols
from lab.result import profile
from lab.tree.source import Source
from lab.util.errors import LabError
from tests.recorder import BASE, IDLE_TASK, MARK, SLEEP, SYSCALL, THREAD, WORK, WRITE, Recorder

MUTEX = (*SLEEP, "schedule_preempt_disabled", "__mutex_lock")
TASK, OTHER, SWAPPER = 0xFFFF888000001000, 0xFFFF888000002000, 0xFFFF888000003000


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path)


def reported(recorder: Recorder) -> Profile:
    record, symbols = recorder.close()
    return profile.report(record, symbols, record.parent / "out")


@pytest.mark.parametrize(
    ("stack", "kind", "who"),
    [
        ((*MUTEX, "ext4_write", *WRITE), "mutex", "ext4_write"),
        ((*MUTEX, "mutex_lock", "ext4_write", *WRITE), "mutex", "ext4_write"),
        (
            (*SLEEP, "rwsem_down_write_slowpath", "down_write", "ext4_write", *WRITE),
            "rwsem, write",
            "ext4_write",
        ),
        (
            (*SLEEP, "rwsem_down_read_slowpath", "down_read", "xfs_ilock", "xfs_bmapi_read", *WRITE),
            "rwsem, read",
            "xfs_ilock in xfs_bmapi_read",
        ),
        (
            (
                *(*SLEEP, "schedule_timeout", "___down_common", "__down", "down", "xfs_buf_lock"),
                *("xfs_buf_get_map", "xfs_buf_read_map", "xfs_trans_read_buf_map", "xfs_read_agf"),
            ),
            "semaphore",
            "xfs_buf_lock in xfs_read_agf",
        ),
        (
            (*SLEEP, "io_schedule", "folio_wait_bit_common", "folio_wait_writeback", "write_begin", *WRITE),
            "folio writeback",
            "write_begin",
        ),
        ((*SLEEP, "io_schedule", "folio_wait_bit_common", "__folio_lock", "f"), "folio lock", "f"),
        (
            (*SLEEP, "schedule_timeout", "io_schedule_timeout", "balance_dirty_pages", "iomap_write", *WRITE),
            "balance_dirty_pages",
            "iomap_write",
        ),
        (
            (
                *SLEEP,
                "io_schedule",
                "bit_wait_io",
                "__wait_on_bit",
                "out_of_line_wait_on_bit",
                "__wait_on_buffer",
                "bh_read",
            ),
            "buffer",
            "bh_read",
        ),
        (
            (*SLEEP, "schedule_timeout", "__wait_for_common", "wait_for_completion", "xfs_buf_iowait"),
            "completion",
            "xfs_buf_iowait",
        ),
        (
            (*SLEEP, "futex_do_wait", "__futex_wait", "do_futex", "__x64_sys_futex"),
            "futex",
            "__x64_sys_futex",
        ),
        ((*SLEEP, "io_schedule", "blk_mq_get_tag", "wb_workfn", *WORK), "I/O", "blk_mq_get_tag"),
        ((*SLEEP, "schedule_timeout", "labblk_queue_rq", "wb_workfn", *WORK), "timer", "labblk_queue_rq"),
        ((*SLEEP, "xlog_grant_head_wait", *WRITE), "wait queue", "xlog_grant_head_wait"),
        ((*SLEEP, "jbd2_log_wait_commit", "kjournald2", *THREAD), "wait queue", "jbd2_log_wait_commit"),
        # A lock that is taken in a poll, and in a thread's own function, is waited for all the same.
        ((*MUTEX, "ep_scan", "__x64_sys_epoll_wait", *SYSCALL), "mutex", "ep_scan"),
        ((*MUTEX, "worker_thread", *THREAD), "mutex", "worker_thread"),
    ],
)
def test_wait_is_named_by_primitive_and_who_waits(stack: tuple[str, ...], kind: str, who: str) -> None:
    assert stacks.wait(stack) == stacks.Wait(Departure.WAITS, kind, who)


@pytest.mark.parametrize(
    ("stack", "why"),
    [
        (("__schedule", *IDLE_TASK), Departure.IDLE),
        ((*SLEEP, "worker_thread", *THREAD), Departure.IDLE),
        ((*SLEEP, "schedule_timeout", "xfsaild", *THREAD), Departure.IDLE),
        ((*SLEEP, "schedule_timeout", "rcu_gp_fqs_loop", "rcu_gp_kthread", *THREAD), Departure.IDLE),
        ((*SLEEP, "smpboot_thread_fn", *THREAD), Departure.IDLE),
        ((*SLEEP, "devtmpfs_work_loop", "devtmpfsd", *THREAD), Departure.IDLE),
        ((*SLEEP, "schedule_preempt_disabled", *THREAD), Departure.IDLE),
        ((*SLEEP, "kthreadd", "ret_from_fork", "ret_from_fork_asm"), Departure.IDLE),
        (("__schedule", "preempt_schedule_irq", "irqentry_exit", "f", *WRITE), Departure.READY),
        (("__schedule", "preempt_schedule_common", "preempt_schedule_thunk", "f", *WRITE), Departure.READY),
        (("__schedule", "__cond_resched", "__x64_sys_ppoll", *SYSCALL), Departure.READY),
        ((*SLEEP, "exit_to_user_mode_loop", "sysvec_apic_timer_interrupt"), Departure.READY),
        ((*SLEEP, "do_syscall_64", "entry_SYSCALL_64_after_hwframe"), Departure.READY),
        ((*SLEEP, "irqentry_exit_to_user_mode", "asm_sysvec_apic_timer_interrupt"), Departure.READY),
        (("__schedule", "do_task_dead", "do_exit", "__x64_sys_exit_group", *SYSCALL), Departure.ENDED),
        ((*SLEEP, "do_nanosleep", "hrtimer_nanosleep", "__x64_sys_clock_nanosleep"), Departure.CHOSE),
        ((*SLEEP, "do_wait", "kernel_wait4", "__x64_sys_wait4", *SYSCALL), Departure.CHOSE),
        ((*SLEEP, "anon_pipe_read", "vfs_read", "ksys_read"), Departure.CHOSE),
        ((*SLEEP, "io_schedule", "p9_client_rpc", "p9_client_open"), Departure.HOST),
        (MARK, Departure.MARK),
    ],
)
def test_other_departures_are_no_waits(stack: tuple[str, ...], why: Departure) -> None:
    assert stacks.wait(stack) == stacks.Wait(why)


@pytest.mark.parametrize(
    ("stack", "primitive", "who"),
    [
        (
            ("native_queued_spin_lock_slowpath", "_raw_spin_lock", "xas_store"),
            "native_queued_spin_lock_slowpath",
            "xas_store",
        ),
        (("osq_lock", "rwsem_optimistic_spin", "down_write", "ext4_write"), "osq_lock", "ext4_write"),
        (
            ("rwsem_spin_on_owner", "rwsem_down_write_slowpath", "down_write", "xfs_ilock", "xfs_write"),
            "rwsem_spin_on_owner",
            "xfs_ilock in xfs_write",
        ),
        (("mutex_spin_on_owner", "__mutex_lock", "f"), "mutex_spin_on_owner", "f"),
    ],
)
def test_spin_is_named_by_primitive_and_who_wants_the_lock(
    stack: tuple[str, ...], primitive: str, who: str
) -> None:
    assert stacks.spin(stack, is_pause=False) == stacks.Spin(primitive, who)


def test_pause_is_spinning_wherever_it_is() -> None:
    assert stacks.spin(("smp_call_function_many_cond", "flush_tlb"), is_pause=True) == stacks.Spin(
        "smp_call_function_many_cond", "flush_tlb"
    )
    assert stacks.spin((USER,), is_pause=True) == stacks.Spin(USER, USER)
    assert stacks.spin((USER,), is_pause=False) is None


def test_interrupt_of_a_spin_does_not_spin() -> None:
    interrupt = ("tick", "asm_sysvec_apic_timer_interrupt", "osq_lock", "mutex_lock", "f", *WRITE)
    assert stacks.spin(interrupt, is_pause=False) is None


@pytest.mark.parametrize(
    ("stack", "group", "root"),
    [
        ((USER,), USER, USER),
        (("f", *WRITE), stacks.TASKS, "__x64_sys_pwrite64"),
        (("f", "asm_exc_page_fault"), stacks.TASKS, "asm_exc_page_fault"),
        (("do_writepages", "wb_workfn", *WORK), stacks.FLUSHERS, "wb_workfn"),
        (("do_writepages", "wb_sibling_workfn", *WORK), stacks.FLUSHERS, "wb_sibling_workfn"),
        (("f", "xfs_end_io", *WORK), stacks.THREADS, "xfs_end_io"),
        (("f", "kjournald2", *THREAD), stacks.THREADS, "kjournald2"),
        (("f", "io_wq_worker", "ret_from_fork", "ret_from_fork_asm"), stacks.THREADS, "io_wq_worker"),
        (("tick", "common_interrupt"), stacks.INTERRUPTS, "common_interrupt"),
        (("tick", "asm_sysvec_apic_timer_interrupt"), stacks.INTERRUPTS, "asm_sysvec_apic_timer_interrupt"),
        (
            ("tick", "asm_sysvec_apic_timer_interrupt", "f", *WRITE),
            stacks.INTERRUPTS,
            "asm_sysvec_apic_timer_interrupt",
        ),
        (("tick", "do_idle", "cpu_startup_entry", "start_secondary"), stacks.IDLE_LOOP, "do_idle"),
        (("f", "start_kernel"), stacks.OTHER, "start_kernel"),
    ],
)
def test_group_and_root_of_a_stack(stack: tuple[str, ...], group: str, root: str) -> None:
    found, index = stacks.group(stack)
    assert (found, stack[index]) == (group, root)


def test_cpu_time_is_split_into_user_kernel_spinning_idle(recorder: Recorder) -> None:
    recorder.run(0, 1000, [])
    recorder.run(0, 2000, ["f", *WRITE])
    recorder.run(0, 3000, ["osq_lock", "mutex_lock", "f", *WRITE], pause=True)
    recorder.idle(0, 9000, 5000)
    found = reported(recorder)
    assert found.shares == {"user": 0.125, "kernel": 0.125, "spinning": 0.125, "idle": 0.625}
    assert found.groups == pytest.approx({USER: 1 / 3, "tasks": 2 / 3})
    by_name = {(one.name, one.kind): one for one in found.functions}
    assert by_name["f", "kernel"].self_ms == pytest.approx(0.001)
    assert by_name["f", "kernel"].total_ms == pytest.approx(0.002)
    assert by_name["osq_lock", "spinning"].share == pytest.approx(1 / 3)
    assert by_name[USER, "user"].share == pytest.approx(1 / 3)
    [spin] = found.spins
    assert (spin.group, spin.primitive, spin.who) == ("tasks", "osq_lock", "f")
    assert spin.share == pytest.approx(1 / 3)


def test_time_of_an_interrupt_is_not_that_of_what_it_interrupted(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["tick", "asm_sysvec_apic_timer_interrupt", "f", *WRITE], ns=3000)
    recorder.run(0, 1500, ["f", *WRITE], ns=1000)
    found = reported(recorder)
    assert {one.name: one.total_ms for one in found.functions} == pytest.approx({"tick": 0.003, "f": 0.001})


def test_wait_lasts_until_the_task_is_on_any_cpu_again(recorder: Recorder) -> None:
    waits = (*MUTEX, "ext4_write", *WRITE)
    recorder.switch(0, 1000, TASK, SWAPPER, waits)
    recorder.switch(1, 4000, SWAPPER + 1, TASK, ["__schedule", *IDLE_TASK])
    recorder.switch(1, 5000, TASK, SWAPPER + 1, waits)
    recorder.switch(0, 6000, SWAPPER, TASK, ["__schedule", *IDLE_TASK])
    recorder.run(0, 11000, ["f", *WRITE])
    found = reported(recorder)
    [wait] = found.waits
    assert (wait.group, wait.kind, wait.who, wait.count) == ("tasks", "mutex", "ext4_write", 2)
    assert wait.total_ms == pytest.approx(0.004)
    assert wait.mean_us == pytest.approx(2.0)
    assert wait.share == 1.0
    assert found.waiting_ms == pytest.approx(0.004)


def test_preempted_task_is_ready_and_does_not_wait(recorder: Recorder) -> None:
    preempted = ["__schedule", "preempt_schedule_irq", "irqentry_exit", "f", *WRITE]
    recorder.switch(0, 1000, TASK, OTHER, preempted)
    recorder.switch(0, 3000, OTHER, TASK, preempted)
    recorder.run(0, 4000, ["f", *WRITE])
    found = reported(recorder)
    assert found.waits == []
    # One until it was on the CPU again, the other until the end.
    assert found.ready_ms == pytest.approx(0.002 + 0.001)


def test_skew_between_cpus_does_not_mix_up_waits(recorder: Recorder) -> None:
    # CPU 1, behind CPU 0 by less than a quantum, has the task before it left CPU 0.
    recorder.switch(0, 10_000, TASK, SWAPPER, [*MUTEX, "f", *WRITE])
    recorder.switch(1, 9_500, SWAPPER + 1, TASK, ["__schedule", *IDLE_TASK])
    recorder.switch(1, 12_000, TASK, SWAPPER + 1, [*MUTEX, "g", *WRITE])
    recorder.switch(0, 13_000, SWAPPER, TASK, ["__schedule", *IDLE_TASK])
    recorder.run(0, 14_000, ["f", *WRITE])
    [wait] = reported(recorder).waits
    assert wait.who == "g"
    assert wait.total_ms == pytest.approx(0.001)


def test_wait_that_never_ends_lasts_to_the_end(recorder: Recorder) -> None:
    recorder.switch(0, 1000, TASK, SWAPPER, [*MUTEX, "f", *WRITE])
    recorder.idle(0, 9000, 8000)
    [wait] = reported(recorder).waits
    assert wait.total_ms == pytest.approx(0.008)


def test_throttled_writers_are_counted_over_the_time(recorder: Recorder) -> None:
    pauses = ["__schedule", "schedule", "schedule_timeout", "balance_dirty_pages", "iomap_write", *WRITE]
    recorder.run(0, 1000, ["f", *WRITE])
    recorder.switch(0, 11_000, TASK, SWAPPER, pauses)
    recorder.switch(1, 21_000, OTHER, SWAPPER, pauses)
    recorder.switch(1, 22_000, SWAPPER, OTHER, [*MUTEX, "f", *WRITE])
    recorder.switch(0, 31_000, SWAPPER, TASK, ["__schedule", *IDLE_TASK])
    recorder.run(0, 41_000, ["f", *WRITE])
    writers = reported(recorder).throttled
    # 1 us each: nobody, one, and for one of them the other one, too.
    assert writers == [0] * 10 + [1] * 10 + [2] + [1] * 9 + [0] * 10


def test_without_throttling_no_writer_is_counted(recorder: Recorder) -> None:
    recorder.switch(0, 1000, TASK, SWAPPER, [*MUTEX, "f", *WRITE])
    recorder.run(0, 41_000, ["f", *WRITE])
    assert set(reported(recorder).throttled) == {0}


def test_missing_switch_is_noticed(recorder: Recorder) -> None:
    recorder.switch(0, 1000, TASK, SWAPPER, [*MUTEX, "f", *WRITE])
    recorder.switch(0, 2000, OTHER, TASK, [*MUTEX, "g", *WRITE])
    assert any("1 context switches are missing" in note for note in reported(recorder).notes)


def test_what_was_not_recorded_is_idle_unless_idle_time_was(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["f", *WRITE])
    recorder.run(0, 101_000, ["f", *WRITE])
    found = reported(recorder)
    assert found.shares["idle"] == 0.98
    assert found.notes == []
    recorder.idle(0, 50_000, 10_000)
    found = reported(recorder)
    assert found.shares["idle"] == pytest.approx(10 / 12)
    [note] = found.notes
    assert note.startswith("the record has 12% of the CPUs' time")


def test_only_what_the_marks_enclose_counts(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["boots", *WRITE])
    recorder.switch(1, 2000, TASK, SWAPPER, [*MUTEX, "f", *WRITE])
    recorder.switch(0, 10_000, OTHER, SWAPPER, MARK)
    recorder.run(0, 15_000, ["works", *WRITE])
    recorder.idle(0, 18_000, 10_000)
    recorder.switch(0, 19_000, SWAPPER, OTHER, ["__schedule", *IDLE_TASK])
    recorder.switch(0, 20_000, OTHER, SWAPPER, MARK)
    recorder.run(0, 30_000, ["ends", *WRITE])
    found = reported(recorder)
    assert found.seconds == pytest.approx(10e-6)
    assert [one.name for one in found.functions] == ["works"]
    assert found.shares["idle"] == pytest.approx(8 / 9)
    [wait] = found.waits
    assert wait.total_ms == pytest.approx(0.010)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([], [(0, 100)]),
        ([10], [(10, 100)]),
        ([10, 90], [(10, 90)]),
        ([10, 20, 90], [(20, 90)]),
        # What the command marks itself wins.
        ([10, 20, 30, 90], [(20, 30)]),
        ([10, 20, 30, 40, 50, 90], [(20, 30), (40, 50)]),
    ],
)
def test_windows_lie_between_marks(marks: list[int], expected: list[tuple[int, int]]) -> None:
    assert windows(marks, 0, 100) == expected


def test_return_address_belongs_to_the_function_that_called(recorder: Recorder) -> None:
    # The call is the last instruction of "caller": the return address is where "next" begins.
    inside, caller = recorder.start_of("inside"), recorder.start_of("caller")
    recorder.add(1, 0, 1000, 1000, 0, [inside, recorder.start_of("next")])
    record, symbols = recorder.close()
    assert caller < recorder.start_of("next")
    [stack] = Record.read(record).stacks
    assert stacks.frames(stack, Symbols(symbols)) == ("inside", "caller")


def test_interrupted_address_is_taken_as_it_is(recorder: Recorder) -> None:
    entry = recorder.start_of("asm_sysvec_apic_timer_interrupt") + 0x20
    recorder.add(
        1, 0, 1000, 1000, 0, [recorder.start_of("tick") + 8, entry, recorder.start_of("interrupted")]
    )
    record, symbols = recorder.close()
    [stack] = Record.read(record).stacks
    assert stacks.frames(stack, Symbols(symbols))[-1] == "interrupted"


def test_caller_of_a_function_that_has_no_frame_yet_is_at_the_top_of_the_stack(recorder: Recorder) -> None:
    caller = recorder.start_of("caller") + 0x10
    outer = recorder.start_of("outer") + 0x10
    top = caller & 0xFFFFFFFF
    recorder.add(1, 0, 1000, 1, 0, [recorder.start_of("begins"), outer], top)
    recorder.add(1, 0, 2000, 1, 0, [recorder.start_of("memcpy") + 4, outer], top)
    recorder.add(1, 0, 3000, 1, 0, [recorder.start_of("amid") + 4, outer], top)
    record, symbols = recorder.close()
    named = [stacks.frames(stack, Symbols(symbols)) for stack in Record.read(record).stacks]
    assert named == [("begins", "caller", "outer"), ("memcpy", "caller", "outer"), ("amid", "outer")]


def test_symbols_are_functions_by_their_plain_names(tmp_path: Path) -> None:
    (tmp_path / "System.map").write_text(
        "0000000000000000 A __per_cpu_start\n"
        "ffffffff81000000 T _stext\n"
        "ffffffff81000000 T do_one\n"
        "ffffffff81000100 t two.isra.0\n"
        "ffffffff810001f0 t __pfx_three\n"
        "ffffffff81000200 W three\n"
        "ffffffff82000000 D jiffies\n"
    )
    symbols = Symbols(tmp_path / "System.map")
    names = [symbols.name(BASE + offset) for offset in (0, 0x1FF, 0x200, 0x1000000)]
    assert names == ["do_one", "two", "three", UNKNOWN]
    assert symbols.name(0x400000) == USER
    assert symbols.name(BASE - 1) == UNKNOWN


def test_record_that_was_cut_off_is_read_up_to_there(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["f"])
    recorder.run(0, 2000, ["f", "g"])
    for cut in (1, 8, 20, 40):
        record, _ = recorder.close(cut)
        assert Record.read(record).time_ns.tolist() == [1000]


def test_bad_files_are_refused(recorder: Recorder, tmp_path: Path) -> None:
    record, symbols = recorder.close()
    with pytest.raises(LabError, match="found none"):
        profile.report(record, symbols, tmp_path)
    with pytest.raises(LabError, match=r"expected what the guest's machine recorded"):
        profile.report(tmp_path / "nowhere", symbols, tmp_path)
    with pytest.raises(LabError, match="begins with"):
        profile.report(symbols, symbols, tmp_path)
    recorder.add(9, 0, 0, 0, 0, [])
    record, _ = recorder.close()
    with pytest.raises(LabError, match="found 9 at byte 8"):
        profile.report(record, symbols, tmp_path)
    recorder = Recorder(tmp_path)
    recorder.run(0, 1000, ["f"])
    record, symbols = recorder.close()
    symbols.write_text("nothing\n")
    with pytest.raises(LabError, match="no function"):
        profile.report(record, symbols, tmp_path)
    symbols.unlink()
    with pytest.raises(LabError, match=r"expected the System\.map"):
        profile.report(record, symbols, tmp_path)


def test_report_writes_pictures_tables_and_figures(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["f<T>", "wb_workfn", *WORK])
    recorder.run(0, 2000, ["osq_lock", "mutex_lock", "f<T>", *WRITE], pause=True)
    recorder.run(0, 3000, [])
    recorder.switch(0, 3000, TASK, SWAPPER, [*MUTEX, "ext4_write", *WRITE])
    recorder.switch(0, 3500, SWAPPER, TASK, ["__schedule", *IDLE_TASK])
    found = reported(recorder)
    folder = recorder.record.parent / "out"
    assert Profile.model_validate_json((folder / "profile.json").read_text()) == found
    table = (folder / "profile.md").read_text()
    assert "| f<T> | kernel | 0.00 | 33.3% | 0.00 |" in table
    assert "| tasks | mutex | ext4_write | 1 | 0.00 | 0.5 | 100.0% |" in table
    assert "| tasks | osq_lock | f<T> | 0.00 | 33.3% |" in table
    ran, slept = (folder / "profile.svg").read_text(), (folder / "profile-sleep.svg").read_text()
    assert titles(ran) >= {"flushers", "wb_workfn", "f<T>", "tasks", "osq_lock", USER}
    assert "process_one_work" not in titles(ran)
    assert titles(slept) == {"all", "tasks", "__x64_sys_pwrite64", "ext4_write", *MUTEX}


def titles(svg: str) -> set[str]:
    """Return the names of the frames of a picture."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")
    return {(title.text or "").rpartition(":")[0] for title in found}


def test_frames_are_as_wide_as_their_time_and_stand_on_their_callers() -> None:
    root = flamegraph.tree(
        [
            ([("a", "kernel"), ("b", "kernel")], 3.0),
            ([("a", "kernel"), ("b", "spinning")], 1.0),
            ([("c", "user")], 4.0),
        ]
    )
    svg = flamegraph.draw(root, "title", "ms")
    boxes = {
        name: (float(x), float(y), float(width), colour)
        for name, x, y, width, colour in re.findall(
            r'<title>(.*?)</title><rect x="([\d.]+)" y="([-\d.]+)" width="([\d.]+)" .*? fill="(.*?)"',
            svg,
        )
    }
    colours = flamegraph.COLOURS
    assert boxes["a: 4 ms, 50.0%"] == (0.0, -18.0, 600.0, colours["kernel"])
    assert boxes["b: 3 ms, 37.5%"] == (0.0, -36.0, 450.0, colours["kernel"])
    assert boxes["b: 1 ms, 12.5%"] == (450.0, -36.0, 150.0, colours["spinning"])
    assert boxes["c: 4 ms, 50.0%"] == (600.0, -18.0, 600.0, colours["user"])


def test_graph_of_nothing_is_empty() -> None:
    assert titles(flamegraph.draw(flamegraph.tree([]), "title", "ms")) == set()


def test_summary_is_small(recorder: Recorder) -> None:
    for number in range(60):
        recorder.run(0, 1000 * number, [f"f{number}", *WRITE], ns=1000 + number)
    found = reported(recorder)
    assert [one.name for one in found.functions] == [f"f{number}" for number in range(59, 39, -1)]
    assert len(json.dumps(found.model_dump())) < 5000


def test_what_would_be_shown_as_nothing_is_left_out(recorder: Recorder) -> None:
    recorder.run(0, 1000, ["f", *WRITE], ns=100_000)
    recorder.run(0, 2000, ["g", *WRITE], ns=49)
    assert [one.name for one in reported(recorder).functions] == ["f"]


def test_machine_is_told_where_the_kernel_changes_tasks(tmp_path: Path) -> None:
    clock = smp.Clock(tmp_path / "vtime.so", 1000, 2000, 140, None, 3, tmp_path / "sam,ples")
    machine = smp.Smp(Qemu(tmp_path / "qemu", "10.0.2"), clock)
    kernel = tmp_path / "bzImage"
    head = bytearray(1024)
    head[0x202:0x206], head[0x236] = b"HdrS", 1
    kernel.write_bytes(head)
    with pytest.raises(LabError, match=r"System\.map beside it"):
        machine.check_kernel(kernel)
    symbols = tmp_path / "System.map"
    symbols.write_text("ffffffff81000000 T _text\n")
    with pytest.raises(LabError, match="has no __switch_to_asm"):
        machine.check_kernel(kernel)
    symbols.write_text("ffffffff81002930 T __pfx___switch_to_asm\nffffffff81002940 T __switch_to_asm\n")
    machine.check_kernel(kernel)
    arguments = clock.argument(kernel).replace(",,", ";").split(",")
    assert f"samples={tmp_path}/sam;ples" in arguments
    assert "switch=0xffffffff81002940" in arguments


@pytest.mark.parametrize(("machine", "clock"), [("uml", "virtual"), ("smp", "host")])
def test_profile_without_virtual_time_is_refused(tmp_path: Path, machine: str, clock: str) -> None:
    with pytest.raises(LabError, match="a profile is of virtual time"):
        Hardware(machine=machine, clock=clock, samples=tmp_path)


def test_profile_of_a_guest_goes_into_its_results(recorder: Recorder, tmp_path: Path) -> None:
    recorder.run(0, 1000, ["f", *WRITE])
    record, symbols = recorder.close()
    seen: dict[str, object] = {}

    def run(kernel: Path, command: list[str], *, samples: Path, **options: object) -> int:
        seen.update(options, command=command)
        samples.write_bytes(record.read_bytes())
        return 7

    results = tmp_path / "results"
    status = profile.profiled(run, symbols.parent / "bzImage", ["true"], results=results, cpus=8)
    assert status == 7
    assert seen == {"command": ["true"], "results": results, "cpus": 8}
    assert (results / "profile.svg").is_file()


def test_each_time_that_the_command_marked_has_a_profile(recorder: Recorder, tmp_path: Path) -> None:
    for number, ran in enumerate(["boots", "lays out", "first", "ends", "second", "third", "off"]):
        recorder.run(0, 1000 * number + 500, [ran, *WRITE])
    for number in range(1, 7):
        recorder.switch(0, 1000 * number, OTHER, OTHER, MARK)
    record, symbols = recorder.close()
    found = profile.report(record, symbols, tmp_path / "out", ["limit-128"])
    assert [one.name for one in found.functions] == ["first", "second"]
    for folder, ran in (("limit-128", "first"), ("2", "second")):
        part = Profile.model_validate_json((tmp_path / "out" / folder / "profile.json").read_text())
        assert [one.name for one in part.functions] == [ran]


@pytest.mark.parametrize("names", [["limit-128", "limit-1024"], ["limit-128"]])
def test_runs_of_a_plan_name_their_profiles(recorder: Recorder, tmp_path: Path, names: list[str]) -> None:
    for number in range(2 * len(names) + 2):
        recorder.run(0, 1000 * number + 500, ["f", *WRITE])
        recorder.switch(0, 1000 * number + 900, OTHER, OTHER, MARK)
    record, symbols = recorder.close()
    (tmp_path / "plan.json").write_text(json.dumps({"runs": [{"name": name} for name in names]}))
    profile.profiled(
        lambda kernel, command, *, results, samples: samples.write_bytes(record.read_bytes()),
        symbols.parent / "bzImage",
        ["true"],
        results=tmp_path,
    )
    assert {path.parent.name for path in tmp_path.glob("*/profile.svg")} == {*names}


def test_bench_refuses_a_profile_without_virtual_time() -> None:
    with pytest.raises(LabError, match="expected the machine smp"):
        bench.bench(
            "t2", source=Source(Path(), "7.3", "7.3", ""), machine="uml", where=bench.Where(profiled=True)
        )
