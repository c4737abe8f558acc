# SPDX-License-Identifier: GPL-2.0
"""The guest runner on a real kernel: what only a real guest can show."""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from lab.machine import guest, guest_memory
from lab.tree.build import Kernel
from lab.util.errors import GuestError, LabError
from lab.util.paths import REPO
from tests.guest.marks import long

pytestmark = pytest.mark.guest
# Seconds after which a guest that should have ended is taken for hung; far above what any test here takes.
PATIENCE_S = 120
MEM_MIB = 768
SIZE_MIB = 320


# What only the agent decides is tried on one machine.
@pytest.fixture(params=["uml", "smp"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """Return a kernel of either machine."""
    made: Kernel = request.getfixturevalue({"uml": "debug_kernel", "smp": "smp_stock_kernel"}[request.param])
    return made


def boot(kernel: Kernel, script: str | list[str], **more: Any) -> guest.GuestResult:
    """Run a shell script, or a command, in a guest in the host's time."""
    size = {"mem_mib": MEM_MIB, "device_size_mib": SIZE_MIB, "timeout_s": PATIENCE_S}
    command = ["sh", "-c", script] if isinstance(script, str) else script
    return guest.run(kernel.path, command, **{"machine": kernel.machine, "clock": "host", **size, **more})


@pytest.mark.parametrize(
    ("fs", "device"),
    [
        ("xfs", "nolat"),
        ("ext4", "nolat"),
        ("f2fs", "nolat"),
        ("xfs", "100us"),
        ("ext4", "brd"),
        ("xfs", "waiting"),
    ],
)
def test_command_runs_on_a_fresh_filesystem(kernel: Kernel, fs: str, device: str) -> None:
    result = boot(
        kernel,
        "pwd; stat -f -c %T .; findmnt -n -o FSTYPE,SOURCE $PWB_MNT; "
        "echo data > file && sync && cat file; test -b $PWB_DEV && test -e $PWB_BDI/read_ahead_kb; "
        "ls /sys/block; exit 42",
        fs=fs,
        device=device,
    )
    lines = result.output.splitlines()
    assert lines[0] == "/mnt/test"
    name = {"brd": "ram0", "waiting": "labblk0"}.get(device, "nullb0")
    assert lines[2].split() == [fs, f"/dev/{name}"]
    # The last is the only block device.
    assert lines[3:] == ["data", name]
    assert result.status == 42


def test_devices_are_mounted_side_by_side(debug_kernel: Kernel) -> None:
    script = (
        "for m in $PWB_MNT $PWB_MNT2 $PWB_MNT3; do findmnt -n -o SOURCE $m; done; echo $PWB_DEV $PWB_DEV3"
    )
    result = boot(debug_kernel, script, fs="ext4", device_count=3, device_size_mib=64)
    nodes = [f"/dev/nullb{number}" for number in range(3)]
    assert result.output.split() == [*nodes, nodes[0], nodes[2]]


def test_filesystem_is_mounted_as_asked(debug_kernel: Kernel) -> None:
    script = "findmnt -n -o OPTIONS $PWB_MNT"
    result = boot(debug_kernel, script, device="flash", mount_options="discard,logbufs=4")
    assert {"discard", "logbufs=4"} <= set(result.output.strip().split(","))
    with pytest.raises(LabError, match="mounting xfs /dev/labblk0 at /mnt/test"):
        boot(debug_kernel, script, device="flash", mount_options="discart")


def test_guests_share_the_memory_that_they_are_given(uml_debug_kernel: Kernel) -> None:
    with guest_memory.filled(MEM_MIB) as memory, mmap.mmap(memory, 0) as content:
        for number in (1, 2):
            word = f"of{number}guest"
            script = f"echo $(printf 'of%dguest' {number}) > /dev/shm/file; cat /dev/shm/file"
            result = boot(uml_debug_kernel, script, fs="none", memory=memory)
            assert result.output.strip() == word
            assert content.find(word.encode()) >= 0


@pytest.mark.parametrize("name", ["debug_kernel", "smp_parallel_kernel"])
def test_possible_cpus_bound_the_contexts_and_are_not_there(
    request: pytest.FixtureRequest, name: str
) -> None:
    kernel: Kernel = request.getfixturevalue(name)
    settings = {"nwritebacks": "8"}
    script = "cat /sys/devices/system/cpu/online $PWB_BDI/nwritebacks"
    result = boot(kernel, script, cpus=1, possible_cpus=2, settings=settings)
    assert result.output.split() == ["0", "8"]


@pytest.mark.parametrize("cpus", [8, *long(64)])
def test_many_cpus_in_virtual_time(smp_stock_kernel: Kernel, cpus: int) -> None:
    script = "nproc; sleep 0.2; cat /proc/interrupts > /dev/null"
    result = boot(smp_stock_kernel, script, clock="virtual", cpus=cpus, mem_mib=1024)
    assert result.output.split() == [str(cpus)]
    assert result.clock["cpus"] == cpus
    assert 0.2 < result.seconds < result.clock["virtual_ns"] / 1e9


def test_results_are_mapped_and_read_back(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("ours")
    script = (
        "import mmap; f = open('/results/map', 'w+b'); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096)\n"
        "m[:4] = b'data'; m.flush(); print(open('/results/given').read())"
    )
    result = boot(kernel, ["/usr/bin/python3", "-c", script], fs="none", results=tmp_path)
    assert result.output == "ours\n"
    assert (tmp_path / "map").read_bytes()[:5] == b"data\0"


def test_memory_that_is_too_short_is_refused(uml_debug_kernel: Kernel) -> None:
    with (
        guest_memory.filled(MEM_MIB - 1) as memory,
        pytest.raises(GuestError, match=f"mem_fd={memory}: expected"),
    ):
        boot(uml_debug_kernel, "true", fs="none", memory=memory)


def test_no_filesystem_leaves_the_device_bare(debug_kernel: Kernel) -> None:
    result = boot(debug_kernel, "pwd; blkid -p $PWB_DEV; echo ${PWB_MNT-unset}", fs="none")
    assert result.output.split() == ["/", "unset"]


def test_host_is_visible_but_unchanged(kernel: Kernel, tmp_path: Path) -> None:
    ours, results = tmp_path / "ours", tmp_path / "results"
    ours.write_text("host")
    script = (
        f"cat {ours}; rm {ours}; echo guest > {ours}; echo new > {tmp_path}/new; echo kept > /results/kept"
    )
    assert boot(kernel, script, fs="none", results=results).output == "host"
    assert ours.read_text() == "host"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ours", "results"]
    assert (results / "kept").read_text() == "kept\n"
    assert "Run /" in (results / "console.txt").read_text()


def test_every_byte_of_the_output_arrives(kernel: Kernel, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "data").write_bytes(data)
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw)
    boot(kernel, f"cat {tmp_path}/data", fs="none", stream=stream)
    assert raw.getvalue() == data


def test_settings_are_written_before_the_mount(debug_kernel: Kernel) -> None:
    settings = {"/proc/sys/vm/dirty_bytes": "134217728", "max_ratio": "50"}
    result = boot(debug_kernel, "cat /proc/sys/vm/dirty_bytes $PWB_BDI/max_ratio", settings=settings)
    assert result.output.split() == ["134217728", "50"]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"/proc/sys/vm/dirty_bites": "1"}, "has no file /proc/sys/vm/dirty_bites"),
        ({"max_ratio": "5000"}, "refuses '5000' for .*max_ratio: Invalid argument"),
    ],
)
def test_setting_that_the_kernel_refuses(
    debug_kernel: Kernel, settings: dict[str, str], complaint: str
) -> None:
    with pytest.raises(LabError, match=complaint):
        boot(debug_kernel, "true", settings=settings)


def test_mkfs_that_refuses_gives_its_words(debug_kernel: Kernel) -> None:
    with pytest.raises(LabError, match=r"mkfs\.xfs on /dev/nullb0 failed: Filesystem must be larger"):
        boot(debug_kernel, "true", device_size_mib=16)


@pytest.mark.parametrize(
    ("command", "status"),
    [(["no-such-command"], 127), (["/etc/passwd"], 126), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_status_is_as_from_a_shell(debug_kernel: Kernel, command: list[str], status: int) -> None:
    assert boot(debug_kernel, command, fs="ext4").status == status


def test_program_left_running_does_not_hold_up_the_unmount(debug_kernel: Kernel) -> None:
    result = boot(debug_kernel, "exec 3> file; setsid sleep 100000 & echo started")
    assert (result.status, result.output) == (0, "started\n")


def test_warning_of_the_kernel_fails_the_run(kernel: Kernel) -> None:
    script = "echo 'WARNING: CPU: 0 PID: 1 at fs/x.c:1 f+0x1' > /dev/kmsg; sleep 100000"
    with pytest.raises(GuestError, match=r"WARN, while running the command:\n.*fs/x.c:1"):
        boot(kernel, script)


def test_lockdep_that_gave_up_fails_the_run(debug_kernel: Kernel) -> None:
    script = """
        sed "s/ debug_locks: .*1$/ debug_locks: 0/" /proc/lockdep_stats > /run/stats
        ! cmp -s /run/stats /proc/lockdep_stats && mount --bind /run/stats /proc/lockdep_stats
    """
    with pytest.raises(GuestError, match="lockdep has switched itself off"):
        guest.run(debug_kernel.path, ["sh", "-c", script], machine=debug_kernel.machine, fs="none")


def test_panic_shows_the_kernels_lines(kernel: Kernel) -> None:
    script = "mount -o remount,size=200% /dev/shm && cat /dev/zero > /dev/shm/full"
    settings = {"/proc/sys/vm/panic_on_oom": "1"}
    before = set(below(os.getpid()))
    with pytest.raises(GuestError, match="Kernel panic - not syncing: Out of memory"):
        boot(kernel, script, settings=settings, fs="none")
    assert set(below(os.getpid())) <= before


def test_reboot_is_an_early_exit(kernel: Kernel) -> None:
    script = "python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x1234567)'"
    with pytest.raises(GuestError, match=r"(?s)ended early, while running the command.*Restarting system"):
        boot(kernel, script)


def test_host_time_has_no_hpet_to_be_due_again_and_again(smp_stock_kernel: Kernel) -> None:
    tables = "ls /sys/firmware/acpi/tables"
    assert "HPET" not in boot(smp_stock_kernel, tables).output.split()
    assert "HPET" in boot(smp_stock_kernel, tables, clock="virtual").output.split()


def test_time_out_tells_what_the_guest_did(kernel: Kernel) -> None:
    seconds = {"uml": 10, "smp": 40}[kernel.machine]
    before = set(below(os.getpid()))
    with pytest.raises(GuestError, match=f"time was up after {seconds} s, while running the command"):
        boot(kernel, "sleep 100000", timeout_s=seconds)
    assert set(below(os.getpid())) <= before


CALLER = """
import sys
import termios
from pathlib import Path
from lab.machine import guest
guest.run(Path(sys.argv[1]), ["sh", "-c", "echo up; sleep 100000 & sleep 100000"], machine=sys.argv[2],
          clock="host", mem_mib=768, device_size_mib=320, stream=sys.stdout)
"""


def below(pid: int) -> list[int]:
    """Return the processes below a process, its children first.

    A test compares with what was there before it: libraries that other tests used keep helpers running.
    """
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:  # it ended while we looked
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(pid, []))
    for at in found:
        found += children.get(at, [])
    return found


@pytest.mark.parametrize(
    ("who", "number"),
    [
        ("caller", signal.SIGKILL),
        ("caller", signal.SIGINT),
        ("supervisor", signal.SIGKILL),
        ("program", signal.SIGKILL),
    ],
)
def test_nothing_outlives_a_kill(kernel: Kernel, who: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", CALLER, str(kernel.path), kernel.machine]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=REPO
    ) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == "up\n"
        # User-mode Linux has children, the guest's user processes, which come and go: those there now count.
        supervisor, program, *users = below(caller.pid)
        everyone = {}
        for pid in (supervisor, program, *users):
            with contextlib.suppress(ProcessLookupError):
                everyone[pid] = os.pidfd_open(pid)
        os.kill({"caller": caller.pid, "supervisor": supervisor, "program": program}[who], number)
    assert len(everyone) > 2 or kernel.machine != "uml", "the guest should have user processes"
    for pid, fd in everyone.items():
        assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} is still there"
        os.close(fd)


SHELL = """
import sys
import termios
from pathlib import Path
from lab.machine import guest
size = {"mem_mib": 768, "device_size_mib": 320}
sys.exit(guest.shell(Path(sys.argv[1]), machine=sys.argv[2], fs="ext4", **size).status)
"""


def test_shell_is_a_terminal(kernel: Kernel) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 77))
    before = termios.tcgetattr(theirs)
    seen = b""

    def until(text: bytes, again: bytes = b"") -> None:
        """Read until ``text`` comes, and write ``again`` now and then while it does not, which is told."""
        nonlocal seen
        end = time.monotonic() + PATIENCE_S
        while text not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 5)[0]:
                seen += os.read(ours, 4096)
            elif again:
                warnings.warn(f"{again!r} was written again", stacklevel=2)
                os.write(ours, again)
        seen = seen.partition(text)[2]

    command = [sys.executable, "-c", SHELL, str(kernel.path), kernel.machine]
    env = {**os.environ, "SHELL": "/bin/sh", "PS1": "$ "}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=REPO, env=env) as shell:
        try:
            until(b"# ")
            os.write(ours, b"stty size; pwd\r")
            # What is typed ahead of the prompt would be echoed ahead of it.
            until(b"33 77\r\n/mnt/test\r\n# ")
            os.write(ours, b"sh -c 'echo $((41 + 1)); exec sleep 100000'\r")
            until(b"\r\n42\r\n")
            # An interrupt from the keyboard reaches the guest's program, not this one's. On a busy host one
            # was echoed by the stock kernel and nothing came for 120 s after it, cause unknown: press again.
            os.write(ours, b"\x03")
            until(b"# ", again=b"\x03")
            termios.tcsetwinsize(ours, (44, 55))
            # The terminal is not the shell's controlling one, so the signal is ours to send.
            shell.send_signal(signal.SIGWINCH)
            os.write(ours, b"until stty size | grep 44; do sleep 0.1; done\r")
            until(b"44 55\r\n# ")
            os.write(ours, b"exit 6\r")
        except BaseException:
            shell.kill()
            raise
    assert shell.returncode == 6
    assert termios.tcgetattr(theirs) == before
