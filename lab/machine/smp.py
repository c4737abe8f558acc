# SPDX-License-Identifier: GPL-2.0
"""The machine ``smp``: x86-64 with up to 64 CPUs, emulated by QEMU, in virtual time or in the host's."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from lab.machine.process import Start
from lab.machine.qemu import Qemu
from lab.util.errors import LabError

MAX_CPUS = 64
# What the kernel prepares for: as many as have a number without x2APIC (Intel SDM 3A, "Local APIC ID").
MAX_POSSIBLE_CPUS = 255
# The boot protocol of x86 (Documentation/arch/x86/boot.rst): where a bzImage says what it is.
MAGIC_AT, MAGIC = 0x202, b"HdrS"
LOADFLAGS_AT, IS_64_BIT = 0x236, 1
# What runs the host's programs and lets the kernel wait for nothing. Without RDRAND the random generator
# is never ready, and whoever asks it takes one global lock.
CPU = "qemu64,+sse4.2,+popcnt,+ssse3,+sse4.1,+cx16,+rdrand,+rdseed"
MSIZE = 1 << 19
ROOT = f"trans=virtio,version=9p2000.L,cache=loose,access=any,msize={MSIZE}"
# The TSC counts what the clock says, in virtual time at 1 GHz, and may be believed: the kernel's watchdog
# over it would only see how CPUs take turns on the host. The rounds of the delay loop in a tick of a
# millisecond are told, for measuring them on each CPU takes long; in the host's time they are for 2.5 GHz.
# For the same reason its watchdogs have more patience. Whether the timer's interrupt comes within ten ticks
# is not tried: on a busy host it does not, and the kernel would panic.
HOST_TIME = (
    "tsc=reliable",
    "no_timer_check",
    "lpj=2500000",
    "rcupdate.rcu_cpu_stall_timeout=240",
    "watchdog_thresh=60",
    "workqueue.watchdog_thresh=240",
)
VIRTUAL_TIME = ("tsc=reliable", "tsc_early_khz=1000000", "lpj=1000000", "no_timer_check")
# In the host's time it has no HPET: on a busy host that can be due again and again, and the kernel that
# starts it never gets further.
BOARD = "q35,usb=off,sata=off,smbus=off,vmport=off,i8042=off"
# Each port has two queues, and QEMU's main loop waits for each queue.
MAX_PORTS = 4
# What a profile needs of a kernel: names for addresses, and where it changes from one task to another.
SYMBOLS, SWITCH = "System.map", "__switch_to_asm"


@dataclass(frozen=True)
class Stalls:
    """CPUs that stall now and then while the others go on, see docs/machine.md.

    Attributes:
        places: file with the addresses where they may, see vtime/stalls.c.
        seed: decides where, when and for how long.
    """

    places: Path
    seed: int


@dataclass(frozen=True)
class Clock:
    """Virtual time, and how finely it is kept.

    Attributes:
        plugin: the shared object, see :func:`lab.machine.vtime.build`.
        mips: million instructions that a CPU executes in a second.
        quantum_ns: how far a CPU may be ahead of another one, in ns of virtual time.
        pause: instructions that PAUSE counts for.
        lanes: CPUs that run at once on the host; None: as many as the host has cores.
        report: descriptor of a file for the counters at the end.
        samples: file for the profiler's samples, None: none are taken.
        stalls: where CPUs stall; None: they do not.
    """

    plugin: Path
    mips: int
    quantum_ns: int
    pause: int
    lanes: int | None
    report: int
    samples: Path | None
    stalls: Stalls | None = None

    def argument(self, kernel: Path) -> str:
        """Return the value of QEMU's ``-plugin``.

        Args:
            kernel: the kernel to boot; for samples its System.map lies beside it.
        """
        given = {
            "mips": self.mips,
            "quantum": self.quantum_ns,
            "pause": self.pause,
            "lanes": self.lanes,
            "report": f"/proc/self/fd/{self.report}",
            "samples": self.samples,
            "switch": _switch_address(kernel) if self.samples else None,
            "stalls": self.stalls.places if self.stalls else None,
            "seed": self.stalls.seed if self.stalls else None,
        }
        named = [f"{name}={_value(value)}" for name, value in given.items() if value is not None]
        return ",".join([_value(self.plugin), *named])


@dataclass(frozen=True)
class Smp:
    """An emulated x86-64 machine.

    Attributes:
        qemu: what emulates it.
        clock: virtual time; None: CPUs run as fast as they can and the guest's clock is the host's.
    """

    qemu: Qemu
    clock: Clock | None
    name = "smp"
    answers = True

    @property
    def passed(self) -> tuple[int, ...]:
        """The file for the clock's counters."""
        return () if self.clock is None else (self.clock.report,)

    def check_kernel(self, kernel: Path) -> None:
        """Raise LabError unless ``kernel`` is a bzImage for x86-64."""
        if not kernel.is_file():
            raise LabError(f"guest kernel {kernel}: no such file; expected the path of an x86-64 bzImage")
        if not os.access(kernel, os.R_OK):
            raise LabError(f"guest kernel {kernel} cannot be read: expected mode r (chmod +r {kernel})")
        with kernel.open("rb") as file:
            head = file.read(LOADFLAGS_AT + 2)
        if head[MAGIC_AT : MAGIC_AT + 4] != MAGIC or not head[LOADFLAGS_AT] & IS_64_BIT:
            raise LabError(f"guest kernel {kernel} is not for the machine smp: expected a bzImage for x86-64")
        if self.clock is not None and self.clock.samples:
            _switch_address(kernel)

    def line(self) -> tuple[int, int]:
        """Return our end and the guest's end of a socket; QEMU waits for whoever reads slowly."""
        ours, theirs = socket.socketpair()
        return ours.detach(), theirs.detach()

    def terminal(self) -> tuple[int, int]:
        """Return our end and the guest's end of a socket: the terminal itself is in the guest."""
        return self.line()

    def command(self, start: Start) -> list[str]:
        """Return QEMU and its arguments."""
        clock = [] if self.clock is None else ["-plugin", self.clock.argument(start.kernel)]
        if self.clock is not None and self.clock.stalls:
            # Of RDRAND; so runs of one seed differ less.
            clock += ["-seed", str(self.clock.stalls.seed)]
        port = "virtconsole" if start.terminal else "virtserialport"
        arguments = [
            *("console=ttyS0", "panic=-1", "nokaslr", "random.trust_cpu=on"),
            *("root=/dev/root", "rootfstype=9p", f"rootflags={ROOT}", "ro", f"init={start.init}"),
            f"maxcpus={start.cpus}",
            *(HOST_TIME if self.clock is None else VIRTUAL_TIME),
            *start.arguments,
        ]
        return [
            *self.qemu.command(*(() if self.clock is None else (self.clock.plugin,))),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-machine", BOARD if self.clock else f"{BOARD},hpet=off"),
            *("-accel", "tcg,thread=multi,tb-size=512", "-cpu", CPU, "-rtc", "base=utc,clock=vm"),
            # CPUs that are only possible are there and wait to be started, for ever.
            *("-smp", str(start.possible_cpus), "-m", f"{start.mem_mib}M"),
            *("-kernel", str(start.kernel), "-append", " ".join(arguments)),
            *("-chardev", "file,id=console,path=/dev/stdout", "-serial", "chardev:console"),
            *("-device", f"virtio-serial-pci-non-transitional,max_ports={MAX_PORTS}"),
            *_line("output", start.output, port),
            *_line("report", start.report, "virtserialport"),
            *_share("root", "/", "/dev/root", "readonly=on"),
            *(() if start.results is None else _share("results", start.results, "results", "readonly=off")),
            *clock,
        ]


def _switch_address(kernel: Path) -> str:
    """Return where the kernel changes from one task to another, in hexadecimal.

    Raises:
        LabError: the kernel's System.map does not say.
    """
    symbols = kernel.parent / SYMBOLS
    try:
        lines = symbols.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LabError(
            f"{symbols}: {error.strerror}; a profile needs the kernel's System.map beside it"
        ) from None
    address = next((line.split()[0] for line in lines if line.endswith(f" {SWITCH}")), None)
    if address is None:
        raise LabError(f"{symbols} has no {SWITCH}: expected the System.map of a kernel for x86-64")
    return f"0x{address}"


def _value(value: object) -> str:
    """Return a value for one of QEMU's lists, in which a comma is doubled."""
    return str(value).replace(",", ",,")


def _line(name: str, fd: int, port: str) -> list[str]:
    """Return the arguments for a port of that name whose other end is a socket."""
    return ["-chardev", f"socket,id={name},fd={fd}", "-device", f"{port},chardev={name},name={name}"]


def _share(name: str, folder: str, tag: str, access: str) -> list[str]:
    """Return the arguments for a folder of the host that the guest can mount."""
    return [
        *("-fsdev", f"local,id={name},path={_value(folder)},security_model=none,multidevs=remap,{access}"),
        *("-device", f"virtio-9p-pci-non-transitional,fsdev={name},mount_tag={tag}"),
    ]
