# SPDX-License-Identifier: GPL-2.0
"""Boot a kernel on one of our machines, run one command on a fresh filesystem, and judge how that went."""

from __future__ import annotations

import codecs
import contextlib
import math
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

from lab.machine import console, devices, host_idle
from lab.machine.hardware import Hardware
from lab.machine.process import Guest
from lab.machine.smp import Stalls
from lab.util.errors import GuestError, LabError, unknown_name

FILESYSTEMS = ("xfs", "ext4", "f2fs", "none")
MAX_DEVICES = 64
# Drivers make devices at boot of their own accord, which delays each boot and which nobody asked for.
_NO_OTHER_DEVICES = ("null_blk.nr_devices=0", "brd.rd_nr=0", "loop.max_loop=0")
_KEPT_ENV = ("HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TZ", "USER")
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class GuestResult:
    """How a command went in a guest.

    Attributes:
        status: the command's exit status; 127 when there is no such command, 128 + signal when it was killed.
        console: everything the guest kernel printed.
        seconds: how long the command ran, without boot and set-up, in seconds of the guest.
        output: the last 4 MiB of what the command wrote to standard output and standard error.
        clock: in virtual time, the clock's counters over the whole run (docs/machine.md); else empty.
    """

    status: int
    console: str
    seconds: float
    output: str
    clock: dict[str, float] = field(default_factory=dict)


def run(
    kernel: Path,
    command: list[str],
    *,
    machine: str = "uml",
    clock: str = "virtual",
    fs: str = "xfs",
    device: str = "nolat",
    settings: dict[str, str] | None = None,
    timeout_s: float | None = None,
    mem_mib: int = 2048,
    cpus: int = 2,
    possible_cpus: int | None = None,
    results: Path | None = None,
    stream: TextIO | None = None,
    device_count: int = 1,
    device_size_mib: int | None = None,
    mkfs: Sequence[str] = (),
    mount_options: str = "",
    kernel_arguments: Sequence[str] = (),
    memory: int | None = None,
    mips: int = 1000,
    quantum_ns: int = 5000,
    pause: int = 140,
    lanes: int | None = None,
    samples: Path | None = None,
    stalls: Stalls | None = None,
) -> GuestResult:
    """Boot a kernel, run a command in it, power it off.

    The guest sees the host's files; what it changes stays in its memory. The command starts in the mount
    point of the fresh filesystem (in ``/`` with ``fs="none"``). Its environment tells where things are:
    PWB_MNT, PWB_DEV, PWB_BDI (of further devices PWB_MNT2, PWB_DEV2, PWB_BDI2 and so on), PWB_RESULTS.

    Args:
        kernel: path of a kernel for the machine.
        command: program and arguments, looked up in the caller's ``PATH``.
        machine: ``uml``, or ``smp``, which is emulated (docs/guest.md).
        clock: time on ``smp``: ``virtual``, or ``host``, in which the CPUs run as fast as they can; on
            ``uml`` it is always the host's.
        fs: ``xfs``, ``ext4``, ``f2fs``, mounted at /mnt/test, or ``none`` for a bare device.
        device: name in the device table.
        settings: kernel files and what to write to them, between mkfs and mount; a bare name is a file of
            the test devices' folders under /sys/class/bdi.
        timeout_s: seconds of the host from the start of the boot until the guest must be off; None: 300,
            in virtual time 1800.
        mem_mib: the guest's memory in MiB, the devices' blocks included.
        cpus: the guest's CPUs: on ``uml`` no more than the host has, on ``smp`` up to 64.
        possible_cpus: CPUs that the kernel prepares for, which its limit of contexts follows; None: cpus.
        results: host folder that is writable in the guest at /results, made if missing; the kernel's
            console is kept there too, in console.txt. None: /results is guest memory.
        stream: where the command's output goes as it comes.
        device_count: test devices, all alike, up to 64; the second one is at /mnt/test2.
        device_size_mib: size of each device in MiB; None: as the device table says.
        mkfs: further arguments of the filesystem's mkfs.
        mount_options: of the filesystem's own, separated by commas.
        kernel_arguments: further ones on the kernel's command line.
        memory: for ``uml``, descriptor of a file to take the guest's memory from, see
            :func:`lab.machine.guest_memory.filled`; None: the kernel makes one of its own.
        mips: in virtual time, million instructions that a CPU executes in a second.
        quantum_ns: in virtual time, how far a CPU may be ahead of another one, in ns.
        pause: in virtual time, instructions that PAUSE counts for.
        lanes: in virtual time, CPUs that run at once on the host; None: as many as it has cores.
        samples: in virtual time, file for the profiler's samples, see :mod:`lab.result.profile`; None: none
            are taken.
        stalls: in virtual time, where CPUs stall, by a seed; None: they do not.

    A guest that a known fault of the emulator ends while booting is booted once more, see
    :func:`lab.machine.console.is_stale_code` and :func:`lab.machine.console.has_stale_map`; its console is
    kept in console-emulator-fault.txt.

    Raises:
        GuestError: the kernel printed a report (oops, WARN, lockdep, ...), the time was up, the guest ended
            early, or what was written could not be written back.
        LabError: an argument cannot be met, or the guest could not be set up as asked.
    """
    if not command:
        raise LabError("no command for the guest: expected a program and its arguments")
    hardware = Hardware(
        machine=machine,
        clock=clock,
        mem_mib=mem_mib,
        cpus=cpus,
        possible_cpus=possible_cpus,
        memory=memory,
        mips=mips,
        quantum_ns=quantum_ns,
        pause=pause,
        lanes=lanes,
        samples=samples,
        stalls=stalls,
    )
    timeout_s = hardware.timeout_s if timeout_s is None else timeout_s
    if not timeout_s > 0:
        raise LabError(f"a guest's time of {timeout_s:g} s: expected more than 0")
    plan, arguments = _plan(hardware, fs=fs, device=device, count=device_count, size_mib=device_size_mib)
    plan |= {"command": command, "settings": list((settings or {}).items())}
    plan |= {"results": _results_folder(results), "terminal": None}
    plan |= {"mkfs": list(mkfs), "mount_options": mount_options, "mark": samples is not None}

    def boot() -> tuple[Guest, dict[str, float]]:
        """Return a guest that is gone, and the clock's counters."""
        with hardware.built() as built, host_idle.awake():
            built.machine.check_kernel(kernel)
            with Guest(built.machine, on_output=_writer(stream)) as guest:
                guest.start(
                    kernel,
                    plan,
                    [*arguments, *kernel_arguments],
                    mem_mib=mem_mib,
                    cpus=cpus,
                    possible_cpus=possible_cpus or cpus,
                )
                guest.follow(timeout_s)
            return guest, built.clock()

    guest, counters = boot()
    if _died_of_the_emulator(guest):
        if results is not None:
            (results / "console-emulator-fault.txt").write_bytes(guest.console)
        guest, counters = boot()
    if results is not None:
        (results / "console.txt").write_bytes(guest.console)
    return replace(judge(guest, timeout_s), clock=counters)


def shell(
    kernel: Path,
    *,
    machine: str = "uml",
    clock: str = "host",
    fs: str = "xfs",
    device: str = "nolat",
    settings: dict[str, str] | None = None,
    mem_mib: int = 2048,
    cpus: int = 2,
    results: Path | None = None,
    device_count: int = 1,
    device_size_mib: int | None = None,
) -> GuestResult:
    """Give the caller's ``$SHELL`` in a guest, on the caller's terminal.

    As :func:`run`, without a time limit. A kernel report does not end the shell: the kernel's lines appear
    on the terminal, and the error is raised when the shell is left.

    Args:
        kernel: as for run.
        machine: as for run.
        clock: as for run; in the host's time a shell answers at once.
        fs: as for run.
        device: as for run.
        settings: as for run.
        mem_mib: as for run.
        cpus: as for run.
        results: as for run.
        device_count: as for run.
        device_size_mib: as for run.

    Raises:
        GuestError: as run does, at the end.
        LabError: as run does, or standard input is not a terminal.
    """
    check_terminal()
    hardware = Hardware(machine=machine, clock=clock, mem_mib=mem_mib, cpus=cpus)
    plan, arguments = _plan(hardware, fs=fs, device=device, count=device_count, size_mib=device_size_mib)
    with hardware.built() as built:
        built.machine.check_kernel(kernel)
        keyboard = sys.stdin.fileno()
        columns, rows = os.get_terminal_size(keyboard)
        plan |= {
            "command": [os.environ.get("SHELL", "/bin/sh")],
            "settings": list((settings or {}).items()),
            "results": _results_folder(results),
            "terminal": [rows, columns],
            "mkfs": [],
            "mount_options": "",
            "mark": False,
        }
        show = _writer(sys.stdout)
        guest = Guest(built.machine, on_output=show, terminal=True, stop_at_report=False)

        def show_console(data: bytes) -> None:
            if guest.step == "running the command":
                show(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

        guest.on_console = show_console
        with guest:
            guest.start(kernel, plan, arguments, mem_mib=mem_mib, cpus=cpus, possible_cpus=cpus)
            with _raw_terminal(keyboard, guest):
                guest.follow(math.inf, keyboard)
        if results is not None:
            (results / "console.txt").write_bytes(guest.console)
        return replace(judge(guest, math.inf), clock=built.clock())


def check_terminal() -> None:
    """Check ahead of a build that :func:`shell` has a terminal.

    Raises:
        LabError: standard input is none.
    """
    if not sys.stdin.isatty():
        raise LabError("a shell in a guest needs a terminal as standard input: without one, run a command")


def check(
    hardware: Hardware, *, fs: str, device: str, device_count: int = 1, device_size_mib: int | None = None
) -> None:
    """Check ahead of a build what :func:`run` would refuse.

    Args:
        hardware: the machine.
        fs: as for run.
        device: as for run.
        device_count: as for run.
        device_size_mib: as for run.

    Raises:
        LabError: as run does.
    """
    _plan(hardware, fs=fs, device=device, count=device_count, size_mib=device_size_mib)
    hardware.check()


def _plan(
    hardware: Hardware, *, fs: str, device: str, count: int, size_mib: int | None
) -> tuple[dict[str, object], list[str]]:
    """Check what shall be made; return agent's plan, kernel arguments."""
    if fs not in FILESYSTEMS:
        raise unknown_name("filesystem", fs, FILESYSTEMS)
    if not 1 <= count <= MAX_DEVICES:
        raise LabError(f"{count} test devices: expected 1 to {MAX_DEVICES}")
    model = devices.load(device)
    size = model.size_mib if size_mib is None else size_mib
    if size < 1:
        raise LabError(f"a test device of {size} MiB: expected 1 MiB or more")
    need = count * size + hardware.base_mib
    if need > hardware.mem_mib:
        raise LabError(
            f"{count} x {size} MiB of device {device!r} do not fit into {hardware.mem_mib} MiB of guest "
            f"memory: expected at least {need} MiB; give the guest more memory or ask for smaller devices"
        )
    path = dict.fromkeys([*os.environ.get("PATH", "").split(":"), *_SYSTEM_PATH])
    env = {name: os.environ[name] for name in _KEPT_ENV if name in os.environ}
    env["PATH"] = ":".join(folder for folder in path if folder)
    plan: dict[str, object] = {
        "devices": [item.model_dump() for item in model.plan(count, size)],
        "fs": fs,
        "env": env,
        "hung_task_s": hardware.hung_task_s,
    }
    return plan, [*_NO_OTHER_DEVICES, *model.kernel_arguments(count, size)]


def _results_folder(results: Path | None) -> str | None:
    """Make the results folder; return its absolute path."""
    if results is None:
        return None
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"results folder {results}: {error.strerror}; expected a writable folder") from None
    return str(results.resolve())


def _died_of_the_emulator(guest: Guest) -> bool:
    """Tell whether a fault of the emulator ended a guest while booting, so that nothing had begun."""
    if guest.step != "booting":
        return False
    text = _text(guest)
    found = console.findings(text)
    return console.is_stale_code(found[0]) if found else console.has_stale_map(text)


def _text(guest: Guest) -> str:
    """Return what the guest kernel printed."""
    return guest.console.decode(errors="replace").replace("\r\n", "\n")


def judge(guest: Guest, timeout_s: float) -> GuestResult:
    """Return the result of a guest that is gone.

    Args:
        guest: the guest.
        timeout_s: the time it had, for the message.

    Raises:
        GuestError: it did not end as it should; the message holds the kernel's own lines.
        LabError: it could not be set up as asked.
    """
    text = _text(guest)
    found = console.findings(text)
    if found:
        first = found[0]
        more = f" (and {len(found) - 1} more after it)" if len(found) > 1 else ""
        lines = "\n".join(first.lines)
        if console.is_stale_code(first):
            more += " (QEMU ran code that memory no longer has, see docs/guest.md: run it again)"
        raise GuestError(f"the guest kernel reported: {first.kind}{more}, while {guest.step}:\n{lines}")
    if guest.timed_out:
        raise GuestError(
            f"the guest's time was up after {timeout_s:g} s, while {guest.step}; it was killed; "
            f"the kernel's last lines:\n{console.tail(text)}"
        )
    if guest.error is not None:
        if guest.status is None:
            raise LabError(guest.error)
        raise GuestError(f"{guest.error}; the kernel's last lines:\n{console.tail(text)}")
    if guest.status is None or not guest.done:
        cause = " (a fault of QEMU, see docs/guest.md: run it again)" if console.has_stale_map(text) else ""
        raise GuestError(
            f"the guest ended early, while {guest.step} (exit status {guest.exit_status}){cause}; "
            f"the kernel's last lines:\n{console.tail(text)}"
        )
    return GuestResult(guest.status, text, guest.seconds, guest.output.decode(errors="replace"))


def _writer(stream: TextIO | None) -> Callable[[bytes], None]:
    """Return a function that passes output on to ``stream`` at once, as bytes where it can take them."""
    if stream is None:
        return lambda data: None
    raw = getattr(stream, "buffer", None)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    stream.flush()

    def write(data: bytes) -> None:
        if raw is not None:
            raw.write(data)
        else:
            stream.write(decoder.decode(data))
        stream.flush()

    return write


@contextlib.contextmanager
def _raw_terminal(keyboard: int, guest: Guest) -> Iterator[None]:
    """Pass every key on to the guest, and the terminal's size, and put the terminal back at the end."""

    def resize(*_: object) -> None:
        columns, rows = os.get_terminal_size(keyboard)
        guest.resize(rows, columns)

    before = termios.tcgetattr(keyboard)
    before_resize = signal.signal(signal.SIGWINCH, resize)
    try:
        resize()
        # What was typed ahead is kept.
        tty.setraw(keyboard, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, before_resize)
