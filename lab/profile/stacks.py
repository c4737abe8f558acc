# SPDX-License-Identifier: GPL-2.0
"""What a stack says: whose it is, whether a CPU spins there, and why a task left its CPU.

Functions are those of Linux 7.3 on x86-64, built with frame pointers. Frames are innermost first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lab.profile.record import Stack
from lab.profile.symbols import UNKNOWN, USER, Symbols

Frames = tuple[str, ...]

# The groups that a stack may belong to.
TASKS, FLUSHERS, THREADS = "tasks", "flushers", "kernel threads"
INTERRUPTS, IDLE_LOOP, OTHER = "interrupts", "idle loop", "other"
# The flusher of a context, its further workers, and those of the AGs of XFS.
_FLUSHER_WORK = {"wb_workfn", "wb_sibling_workfn", "xfs_agwb_work"}
_ENTRY = re.compile(r"asm_\w+")
_INTERRUPT = re.compile(r"(asm_)?(sysvec|exc)_\w+|(asm_)?common_interrupt\w*|error_(entry|return)")
# By what is innermost: the group, and how many frames further in its root is.
_ROOTS = tuple(
    (re.compile(pattern), found, inwards)
    for pattern, found, inwards in (
        (r"asm_(sysvec_\w+|common_interrupt)", INTERRUPTS, 0),
        (r"do_syscall_64|x64_sys_call|entry_SYSCALL_64\w*|syscall_return_via_sysret", TASKS, 1),
        ("process_one_work", THREADS, 1),
        ("kthread", THREADS, 1),
        ("ret_from_fork", THREADS, 1),
        ("do_idle", IDLE_LOOP, 0),
        ("cpu_startup_entry", IDLE_LOOP, 0),
        ("asm_exc_page_fault", TASKS, 0),
        (_INTERRUPT.pattern, INTERRUPTS, 0),
    )
)
_KERNEL_TEXT_HIGH = 0xFFFFFFFF << 32
# Assembly that sets up no frame: its caller is at the top of the stack, not in the frame.
_FRAMELESS = re.compile(
    r"memcpy\w*|__memcpy|memset\w*|__memset|memmove|__memmove|rep_(movs|stos)_alternative|clear_pages?_\w+"
    r"|copy_page\w*|copy_mc_\w+|__copy_user_nocache|__copy_user_\w+|__(get|put)_user_\w+"
)


class Departure(Enum):
    """Why a task left its CPU."""

    WAITS = "waits for something in the kernel"
    HOST = "waits for the host to read or write one of its files"
    CHOSE = "has nothing to do: a timer, a child, input"
    READY = "could go on, without a CPU"
    IDLE = "a kernel thread without work, or the idle task"
    ENDED = "is gone"
    MARK = "the agent's mark"


@dataclass(frozen=True)
class Wait:
    """What a task that left its CPU waits for.

    Attributes:
        departure: why it left.
        kind: the outermost primitive, such as ``mutex``; empty unless it waits.
        who: the first function outside of the primitives.
    """

    departure: Departure
    kind: str = ""
    who: str = ""


@dataclass(frozen=True)
class Spin:
    """A place where a CPU spins.

    Attributes:
        primitive: the function that does.
        who: the first function outside of the primitives.
    """

    primitive: str
    who: str


#: The kind of wait of a writer that the kernel throttles.
THROTTLE = "balance_dirty_pages"

# Sleeping, whatever for.
_SLEEP = re.compile(
    r"__switch_to_asm|__schedule|schedule|schedule_preempt_disabled|schedule_idle|schedule_(hr)?timeout\w*"
    r"|io_schedule\w*|preempt_schedule\w*|do_wait_intr\w*"
)
_PRIMITIVES = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("mutex", r"_*(ww_)?mutex_lock\w*"),
        ("rwsem, read", r"_*down_read\w*|rwsem_down_read_slowpath|rwsem_read_\w+"),
        ("rwsem, write", r"_*down_write\w*|rwsem_down_write_slowpath|rwsem_write_\w+"),
        ("percpu rwsem", r"_*percpu_(down|rwsem)\w*"),
        ("semaphore", r"_*down(_common|_timeout|_interruptible|_killable)?"),
        ("rt mutex", r"_*rt_mutex_\w+|rtlock_\w+|rt_spin_lock\w*"),
        ("folio writeback", r"folio_wait_writeback\w*|folio_wait_stable"),
        ("folio lock", r"__folio_lock\w*"),
        ("folio", r"folio_wait_bit\w*|folio_put_wait_locked"),
        ("buffer", r"_*wait_on_buffer"),
        ("bit", r"(out_of_line_|_*)wait_on_\w+|bit_wait\w*"),
        ("RCU", r"synchronize_s?rcu\w*|_*synchronize_srcu\w*|wait_rcu_\w+|rcu_barrier\w*"),
        ("completion", r"_*wait_for_completion\w*|(_*|do_)wait_for_common\w*"),
        (THROTTLE, r"balance_dirty_pages\w*"),
        ("futex", r"_*futex_\w+|do_futex"),
    )
)
_SPINS = re.compile(
    r"(native_)?queued_(spin|read|write)_lock_slowpath|osq_lock|(rwsem|mutex)_spin_on_owner"
    r"|(rwsem|mutex)_optimistic_spin"
)
_SPIN_LOCKS = re.compile(
    r"_*raw_(spin|read|write)_(try)?lock\w*|do_raw_\w+|queued_\w+|rwsem_\w+|_*spin_lock\w*"
)
# From the innermost frame on, so many may be helpers of the spin itself.
_SPIN_DEPTH = 2
# Functions that only take a filesystem's lock: who calls them says more.
_WRAPPERS = re.compile(
    r"xfs_i(un)?lock\w*|xfs_buf_(find_)?lock|xfs_(buf|trans)_(get|read)(_buf)?_map|f2fs_(down|lock)\w+"
    r"|jbd2_\w*lock\w*|lock_(mount|rename|two)\w*|inode_lock\w*|folio_lock\w*|lock_page\w*|folio_lruvec_lock\w*"
)
# Called from here, schedule() gives way: the task stays ready to run.
_GIVES_WAY = re.compile(
    r"exit_to_user_mode\w*|irqentry_exit\w*|syscall_exit\w*|raw_irqentry_\w+|_*cond_resched\w*|dynamic_cond_resched"
    r"|do_sched_yield|__x64_sys_sched_yield|yield|do_syscall_64|ret_from_fork|" + _INTERRUPT.pattern
)
_PREEMPTED = re.compile(r"preempt_schedule\w*")
_ENDS = re.compile(r"do_task_dead|do_exit|make_task_dead")
_IDLE_TASK = {"do_idle", "cpu_startup_entry"}
# Where kernel threads wait for work in a function below their own.
_IDLE_THREADS = re.compile(
    r"rcu_gp_fqs_loop|rcu_gp_kthread|rcu_tasks_\w+|rcu_nocb_\w+|smpboot_thread_fn|kthread_worker_fn|rescuer_thread"
    r"|worker_thread|kthread|devtmpfs_work_loop|kcompactd|kswapd\w*|_*kthread_parkme|kthreadd|io_wq_worker|kauditd_thread|oom_reap\w+"
)
# The guest's programs are files of the host: to wait for them is the machine's affair, not the workload's.
_HOST_FILES = re.compile(r"p9_(client|virtio)_\w+")
_BY_PLACE = (
    (_GIVES_WAY, Departure.READY),
    (_ENDS, Departure.ENDED),
    (_IDLE_THREADS, Departure.IDLE),
    (_HOST_FILES, Departure.HOST),
)
_OWN_CHOICE = re.compile(
    r"__x64_sys_(wait4|waitid|p?poll|p?select6?|epoll_p?wait2?|(clock_)?nanosleep|pause|rt_sig(timedwait|suspend))"
    r"|(anon_)?pipe_(read|write)|n_tty_read|unix_stream_read_generic|do_signal_stop|ptrace_stop"
)
_MARK = "__x64_sys_rt_sigtimedwait"
WAIT_QUEUE, TIMER, IO = "wait queue", "timer", "I/O"


def frames(stack: Stack, symbols: Symbols) -> Frames:
    """Name the functions of a stack, innermost first."""
    if not stack.addresses:
        return (UNKNOWN,)
    named: list[str] = []
    for address in stack.addresses:
        # What was to run next: the place of a sample, or what an interrupt found.
        is_next = _ENTRY.fullmatch(named[-1]) if named else stack.is_sample
        # Others are return addresses, which may lie behind a function that ends in a call.
        name = symbols.name(address if is_next else address - 1)
        if name == USER and named:
            break
        named.append(name)
    if stack.is_sample and stack.top and named[0] != USER:
        has_no_frame = _FRAMELESS.fullmatch(named[0]) or symbols.is_start(stack.addresses[0])
        caller = symbols.name(_KERNEL_TEXT_HIGH + stack.top - 1)
        if has_no_frame and caller != UNKNOWN:
            named.insert(1, caller)
    return tuple(named)


def group(of: Sequence[str]) -> tuple[str, int]:
    """Return the group of a stack, and the index of its root: what lies outwards of that says no more.

    The root is the system call, the work, the function of the kernel thread, or the entry of an interrupt:
    that is not the time of what it interrupted.
    """
    if of[0] == USER:
        return USER, 0
    for pattern, found, inwards in _ROOTS:
        at = next((number for number, name in enumerate(of) if pattern.fullmatch(name)), None)
        if at is not None:
            root = max(at - inwards, 0)
            return (FLUSHERS if of[root] in _FLUSHER_WORK else found), root
    return OTHER, len(of) - 1


def spin(of: Sequence[str], is_pause: bool) -> Spin | None:
    """Say where a running CPU spins, None if it does not.

    Args:
        of: the stack.
        is_pause: whether the CPU executed PAUSE.
    """
    if of[0] == USER:
        return Spin(USER, USER) if is_pause else None
    # What an interrupt found is not what runs.
    end = next((number for number, name in enumerate(of) if _ENTRY.fullmatch(name)), len(of))
    for number, name in enumerate(of[: min(_SPIN_DEPTH + 1, end)]):
        if _SPINS.fullmatch(name):
            return Spin(name, _caller(of, number))
    return Spin(of[0], _caller(of, 0)) if is_pause else None


def wait(of: Sequence[str]) -> Wait:
    """Say why the task with this stack left its CPU.

    Args:
        of: the stack at the switch, ``__schedule`` or its caller first.
    """
    at, kind = _primitive(of)
    departure = _departure(of, at, is_lock=bool(kind))
    if departure is not Departure.WAITS:
        return Wait(departure)
    return Wait(departure, kind or _plain_kind(of[:at]), _with_caller(of, at))


def _departure(of: Sequence[str], at: int, *, is_lock: bool) -> Departure:
    """Say why a task left; ``at`` is the first frame outside of sleeping and locking."""
    if _IDLE_TASK & set(of):
        return Departure.IDLE
    if any(_PREEMPTED.fullmatch(name) for name in of[:at]):
        return Departure.READY
    if is_lock:
        return Departure.WAITS
    outside = of[at] if at < len(of) else UNKNOWN
    for pattern, departure in _BY_PLACE:
        if pattern.fullmatch(outside):
            return departure
    if any(_OWN_CHOICE.fullmatch(name) for name in of):
        return Departure.MARK if _MARK in of else Departure.CHOSE
    # A thread that sleeps in its own function has no work; what it waits for amid its work lies deeper.
    is_own_loop = at + 1 < len(of) and of[at + 1] == "kthread"
    return Departure.IDLE if is_own_loop else Departure.WAITS


def primitives(of: Sequence[str]) -> int:
    """Return how many frames of a stack at a switch are sleeping and locking, from the innermost on."""
    return _primitive(of)[0]


def _primitive(of: Sequence[str]) -> tuple[int, str]:
    """Return the index of the first frame outside of sleeping and locking, and the outermost kind of lock."""
    kind = ""
    for number, name in enumerate(of):
        found = next((label for label, pattern in _PRIMITIVES if pattern.fullmatch(name)), "")
        if not found and not _SLEEP.fullmatch(name):
            return number, kind
        kind = found or kind
    return len(of), kind


def _plain_kind(inside: Sequence[str]) -> str:
    if any(name.startswith("io_schedule") for name in inside):
        return IO
    return TIMER if any("timeout" in name for name in inside) else WAIT_QUEUE


def _caller(of: Sequence[str], number: int) -> str:
    """Return the first function outwards of a frame that takes no lock itself."""
    patterns = [_SPINS, _SPIN_LOCKS, *(pattern for _, pattern in _PRIMITIVES)]
    for at in range(number + 1, len(of)):
        if not any(pattern.fullmatch(of[at]) for pattern in patterns):
            return _with_caller(of, at)
    return UNKNOWN


def _with_caller(of: Sequence[str], at: int) -> str:
    """Name a frame, and who calls it where it only wraps a lock."""
    if at >= len(of):
        return UNKNOWN
    outer = at
    while outer + 1 < len(of) and _WRAPPERS.fullmatch(of[outer]):
        outer += 1
    return of[at] if outer == at else f"{of[at]} in {of[outer]}"
