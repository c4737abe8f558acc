# SPDX-License-Identifier: GPL-2.0
"""The guest's first process: makes devices and filesystems, runs one command, cleans up and powers off.

``agent.py PLAN``: the plan is the JSON that lab/machine/guest.py wrote. Standard library only, for this runs
on whatever Python the host has. What the command writes goes to one line to the host; another one carries
reports, one JSON object a line: ``step`` (what is being done), ``status`` and ``seconds`` (the command
ended), ``error`` (the run failed, in one sentence), ``done`` (everything was unmounted).

The lines are serial lines on User-mode Linux. On the machine ``smp`` they are ports of virtio-serial, where a
write may return while the host has not seen it. So there the host answers each report: ``ok`` once it has as
many bytes of output as the report says were ``sent``. It may also say ``size ROWS COLUMNS`` of the terminal.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_NOSUID = 1, 2
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
RB_POWER_OFF = 0x4321FEDC
TERMINALS = {"uml": "/dev/ttyS0", "smp": "/dev/hvc0"}
SERIAL_LINES = {"output": "/dev/ttyS0", "report": "/dev/ttyS1"}
PORTS = "/sys/class/virtio-ports"
PORT_WAIT_S = 10
RESULTS = "/results"
RESULTS_9P = "trans=virtio,version=9p2000.L,cache=mmap,access=any,msize=524288"
MOUNT_POINT = "/mnt/test"
MKFS = {
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "f2fs": ["mkfs.f2fs", "-q", "-f", "-t", "0"],
}
NOT_FOUND, NOT_EXECUTABLE = 127, 126
MARK_S = 0.0001
# Where drivers make devices by mkdir, below configfs; the others make theirs at boot.
CONFIGFS = "/sys/kernel/config"
DEVICE_FOLDERS = {"null_blk": "nullb", "labblk": "labblk"}


class RunError(Exception):
    """The run cannot go on; ``str()`` says why in one sentence."""


def _call(what: str, result: int) -> None:
    if result != 0:
        raise RunError(f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount a filesystem, making the mount point first."""
    with contextlib.suppress(OSError):
        os.makedirs(target, exist_ok=True)
    result = LIBC.mount(source.encode(), target.encode(), kind.encode(), flags, data.encode())
    _call(f"mounting {kind} {source} at {target}", result)


def mount_if_known(source: str, target: str, kind: str) -> None:
    """Mount a kernel interface that this kernel may have been built without."""
    with contextlib.suppress(RunError):
        mount(source, target, kind)


def cover_root() -> None:
    """Put a writable memory filesystem over the read-only root, and make that the root."""
    mount("tmpfs", "/mnt", "tmpfs")
    for name in ("upper", "work", "root"):
        os.mkdir(f"/mnt/{name}")
    mount("overlay", "/mnt/root", "overlay", 0, "lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work")
    os.chdir("/mnt/root")
    number = SYS_PIVOT_ROOT[os.uname().machine]
    _call("changing the root", LIBC.syscall(number, b".", b"."))
    # Both roots are stacked at the same place now; the lower one goes.
    _call("leaving the old root", LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")


def mount_kernel_interfaces(hung_task_s: int) -> None:
    """Mount what programs expect of a running system."""
    mount("proc", "/proc", "proc", MS_NOSUID)
    mount("sysfs", "/sys", "sysfs", MS_NOSUID)
    mount("devtmpfs", "/dev", "devtmpfs")
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666")
    mount("tmpfs", "/dev/shm", "tmpfs")
    mount("tmpfs", "/run", "tmpfs")
    mount_if_known("configfs", "/sys/kernel/config", "configfs")
    mount_if_known("debugfs", "/sys/kernel/debug", "debugfs")
    mount_if_known("tracefs", "/sys/kernel/tracing", "tracefs")
    mount_if_known("cgroup2", "/sys/fs/cgroup", "cgroup2")
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        with contextlib.suppress(FileExistsError):
            os.symlink(f"/proc/self/fd{target}", f"/dev/{name}")
    with contextlib.suppress(OSError):
        Path("/proc/sys/kernel/hung_task_timeout_secs").write_text(str(hung_task_s))


def open_line(machine: str, name: str) -> int:
    """Open a line to the host that passes every byte as it is."""
    if machine == "smp":
        return os.open(find_port(name), os.O_RDWR)
    fd = os.open(SERIAL_LINES[name], os.O_RDWR | os.O_NOCTTY)
    tty.setraw(fd)
    return fd


def find_port(name: str) -> str:
    """Return the node of the virtio port of that name, which the kernel makes some time after the boot."""
    end = time.monotonic() + PORT_WAIT_S
    while time.monotonic() < end:
        for port in Path(PORTS).glob("*/name"):
            if port.read_text().strip() == name:
                return f"/dev/{port.parent.name}"
        time.sleep(0.01)
    raise RunError(f"the guest kernel has no virtio port {name!r}")


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``."""
    while data:
        data = data[os.write(fd, data) :]


class Host:
    """The lines to the host."""

    def __init__(self, machine: str, *, terminal: bool) -> None:
        """Open the lines: one for the output unless the command has a terminal, one for reports."""
        self.report = open_line(machine, "report")
        self._output = None if terminal else open_line(machine, "output")
        self._answers = machine == "smp"
        self._sent = 0
        self._heard = b""

    def pass_on(self, data: bytes) -> None:
        """Send what the command wrote."""
        if self._output is not None:
            write_all(self._output, data)
            self._sent += len(data)

    def send(self, **what: object) -> None:
        """Send one report, and wait until it and all output are out."""
        if self._answers:
            write_all(self.report, json.dumps({**what, "sent": self._sent}).encode() + b"\n")
            while "ok" not in self.listen():
                pass
            return
        if self._output is not None:
            termios.tcdrain(self._output)
        write_all(self.report, json.dumps(what).encode() + b"\n")
        termios.tcdrain(self.report)

    def listen(self) -> list[str]:
        """Wait for something that the host says; return the lines that are whole."""
        self._heard += os.read(self.report, 4096)
        *lines, self._heard = self._heard.split(b"\n")
        return [line.decode() for line in lines]


def write_file(path: str, value: str, what: str) -> None:
    """Write a kernel file, in one write; what it refuses is an error with the kernel's reason."""
    try:
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
    except FileNotFoundError:
        raise RunError(f"{what}: this guest kernel has no file {path}") from None
    except OSError as error:
        raise RunError(f"{what}: the guest kernel refuses {value!r} for {path}: {error.strerror}") from None


def numbered(name: str, index: int) -> str:
    """Return the name of one of several: the first has no number, the second is number 2."""
    return name if index == 0 else f"{name}{index + 1}"


def make_device(device: dict[str, object]) -> str:
    """Make one device and return its node."""
    name, driver = str(device["name"]), str(device["driver"])
    node = f"/dev/{name}"
    if driver in DEVICE_FOLDERS:
        folder = f"{CONFIGFS}/{DEVICE_FOLDERS[driver]}/{name}"
        try:
            os.mkdir(folder)
        except OSError as error:
            need = f"the guest kernel needs {driver} and configfs"
            raise RunError(f"making {name}: {folder}: {error.strerror}; {need}") from None
        attributes = device["attributes"]
        assert isinstance(attributes, dict)
        for key, value in attributes.items():
            write_file(f"{folder}/{key}", str(value), f"making {name}")
        write_file(f"{folder}/power", "1", f"making {name}")
    if not Path(node).is_block_device():
        raise RunError(f"the guest kernel made no device {node}: it needs the driver {driver}")
    return node


def bdi_folder(node: str) -> str:
    """Return the folder of a block device's backing_dev_info in sysfs."""
    number = os.stat(node).st_rdev
    return f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}"


def make_filesystem(kind: str, node: str, options: list[str]) -> None:
    """Make a fresh filesystem on a device, with further arguments of its mkfs."""
    command = [*MKFS[kind], *options, node]
    made = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if made.returncode != 0:
        raise RunError(f"{command[0]} on {node} failed: {' '.join((made.stderr + made.stdout).split())}")


def apply_settings(settings: list[list[str]], nodes: list[str]) -> None:
    """Write the user's settings; a bare name is a file of each test device's backing_dev_info."""
    for path, value in settings:
        paths = [path] if path.startswith("/") else [f"{bdi_folder(node)}/{path}" for node in nodes]
        for full in paths:
            write_file(full, value, f"setting {path}")


class Terminal:
    """The command's terminal."""

    def __init__(self, path: str, rows: int, columns: int) -> None:
        """Take its node and its size in characters."""
        self.path = path
        self.rows = rows
        self.columns = columns

    def resize(self) -> None:
        """Tell the kernel the size."""
        fd = os.open(self.path, os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))
        os.close(fd)

    def take(self) -> None:
        """Make it the controlling terminal of this process and its standard streams."""
        os.setsid()
        fd = os.open(self.path, os.O_RDWR)
        fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
        # A terminal keeps its size as long as it is open.
        self.resize()
        for stream in range(3):
            os.dup2(fd, stream)


def _start(command: list[str], cwd: str, env: dict[str, str], output: int, terminal: Terminal | None) -> int:
    """Start the command and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    status = NOT_EXECUTABLE
    try:
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        if terminal:
            terminal.take()
        else:
            os.setsid()
            null = os.open(os.devnull, os.O_RDONLY)
            for stream, fd in enumerate((null, output, output)):
                os.dup2(fd, stream)
        os.chdir(cwd)
        os.closerange(3, 256)
        os.execvpe(command[0], command, env)
    except FileNotFoundError:
        status = NOT_FOUND
        write_all(2, f"{command[0]}: command not found\n".encode())
    except OSError as error:
        write_all(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(status)


def run_command(
    command: list[str], cwd: str, env: dict[str, str], host: Host, terminal: Terminal | None
) -> tuple[int, float]:
    """Run the command to its end, passing on what it writes, and return its exit status and seconds.

    Orphans are reaped on the way, as is the first process's duty.
    """
    reader, writer = os.pipe()
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    os.set_blocking(reader, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_writer)
    start = time.monotonic()
    child = _start(command, cwd, env, writer, terminal)
    os.close(writer)
    waiting = [reader, wake_reader, *([host.report] if terminal else [])]
    status = None
    while status is None:
        ready, _, _ = select.select(waiting, [], [])
        if reader in ready and not _pass_on(reader, host):
            waiting.remove(reader)
        if terminal and host.report in ready:
            _hear_size(host, terminal)
        if wake_reader in ready:
            os.read(wake_reader, 4096)
            status = _reap(child)
    seconds = time.monotonic() - start
    # Whatever the command left running ends here: it would keep the filesystem busy.
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    while reader in waiting and _pass_on(reader, host):
        pass
    return status, seconds


def _hear_size(host: Host, terminal: Terminal) -> None:
    """Take the new size of the terminal from the host."""
    for line in host.listen():
        what, *numbers = line.split()
        if what == "size":
            terminal.rows, terminal.columns = map(int, numbers)
            terminal.resize()


def _reap(child: int) -> int | None:
    """Reap all that ended; return the exit status of ``child``, as a shell gives it, if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, result = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                status = 128 + os.WTERMSIG(result) if os.WIFSIGNALED(result) else os.WEXITSTATUS(result)
    return status


def _pass_on(reader: int, host: Host) -> bool:
    """Copy what can be read to the host; return whether there may be more."""
    try:
        data = os.read(reader, 65536)
    except BlockingIOError:
        return True
    host.pass_on(data)
    return bool(data)


def unmount(target: str, errors: int) -> None:
    """Unmount a filesystem, all data written.

    Args:
        target: mount point.
        errors: descriptor opened right after the mount, which sees any write error since; closed here.
    """
    failed = LIBC.syncfs(errors)
    reason = os.strerror(ctypes.get_errno())
    os.close(errors)
    if failed:
        raise RunError(f"writing {target} back before its unmount: {reason}")
    _call(f"unmounting {target}", LIBC.umount2(target.encode(), 0))


def mark() -> None:
    """Show the profiler where the command begins or ends: sleep in a system call that nothing else uses."""
    signal.sigtimedwait((), MARK_S)


def check_lockdep() -> None:
    """Fail a run in which lockdep, where there is one, has given up: it saw nothing of what came after."""
    with contextlib.suppress(FileNotFoundError):
        if re.search(r"debug_locks: +0$", Path("/proc/lockdep_stats").read_text(), re.MULTILINE):
            raise RunError("lockdep has switched itself off, so it saw only a part of the run")


def run_plan(plan: dict[str, object], host: Host) -> None:
    """Do what the plan says, reporting each step."""
    nodes = []
    env = dict(plan["env"])  # type: ignore[call-overload]
    os.environ["PATH"] = env["PATH"]
    host.send(step="making the devices")
    for device in plan["devices"]:  # type: ignore[attr-defined]
        nodes.append(make_device(device))
    kind = plan["fs"]
    if kind != "none":
        host.send(step="making the filesystem")
        for node in nodes:
            make_filesystem(str(kind), node, plan["mkfs"])  # type: ignore[arg-type]
    host.send(step="applying the settings")
    apply_settings(plan["settings"], nodes)  # type: ignore[arg-type]
    for number, node in enumerate(nodes):
        env |= {numbered("PWB_DEV", number): node, numbered("PWB_BDI", number): bdi_folder(node)}
    machine = str(plan["machine"])
    os.makedirs(RESULTS, exist_ok=True)
    if plan["results"] and machine == "smp":
        mount("results", RESULTS, "9p", 0, RESULTS_9P)
    elif plan["results"]:
        mount("results", RESULTS, "hostfs", 0, str(plan["results"]))
    env["PWB_RESULTS"] = RESULTS
    mounted = []
    if kind != "none":
        host.send(step="mounting the filesystem")
        for number, node in enumerate(nodes):
            target = numbered(MOUNT_POINT, number)
            mount(node, target, str(kind), 0, str(plan["mount_options"]))
            mounted.append((target, os.open(target, os.O_RDONLY)))
            env[numbered("PWB_MNT", number)] = target
    host.send(step="running the command")
    cwd = mounted[0][0] if mounted else "/"
    size = plan["terminal"]
    terminal = Terminal(TERMINALS[machine], *size) if size else None  # type: ignore[misc]
    if plan["mark"]:
        env["PWB_PROFILED"] = "1"
        mark()
    status, seconds = run_command(plan["command"], cwd, env, host, terminal)  # type: ignore[arg-type]
    if plan["mark"]:
        mark()
    host.send(status=status, seconds=seconds)
    host.send(step="unmounting the filesystem")
    for target, errors in reversed(mounted):
        unmount(target, errors)
    check_lockdep()
    host.send(step="powering off")
    if plan["results"]:
        _call(f"unmounting {RESULTS}", LIBC.umount2(RESULTS.encode(), 0))
    host.send(done=True)


def main(path: str) -> None:
    """Run the plan at ``path`` and power off, whatever happens."""
    plan = json.loads(Path(path).read_text())
    try:
        cover_root()
        mount_kernel_interfaces(plan["hung_task_s"])
        host = Host(plan["machine"], terminal=bool(plan["terminal"]))
        try:
            run_plan(plan, host)
        except RunError as error:
            host.send(error=str(error))
        except Exception:
            # Seldom needed, and each module takes an emulated CPU some time to load.
            import traceback

            host.send(error=f"the guest's agent failed:\n{traceback.format_exc()}")
    finally:
        os.sync()
        LIBC.reboot(RB_POWER_OFF)


if __name__ == "__main__":
    main(sys.argv[1])
