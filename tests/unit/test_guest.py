# SPDX-License-Identifier: GPL-2.0
"""The guest runner against fakes: scripts that behave as a User-mode Linux kernel or as QEMU may."""

from __future__ import annotations

import io
import itertools
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lab.machine import guest, process
from lab.util.errors import GuestError, LabError

# What every fake has: the two lines, the plan, and a note of each process it is made of.
UML = """#!{python} -IS
# CONFIG_UML=y
import sys
WORDS = sys.argv[1:]
ARGS = dict(word.partition("=")[::2] for word in WORDS)
OUTPUT, REPORT = (int(ARGS[line].rpartition(":")[2]) for line in ("ssl0", "ssl1"))
def raw():
    import tty
    tty.setraw(OUTPUT)
"""
SMP = """#!{python} -IS
import sys
WORDS = sys.argv[1:]
if "--version" in WORDS:
    print("QEMU emulator version 10.0.2")
    sys.exit(0)
ARGS = dict(word.partition("=")[::2] for word in WORDS[WORDS.index("-append") + 1].split())
LINES = dict(word.split(",")[1:] for word in WORDS if word.startswith("socket,"))
OUTPUT, REPORT = (int(LINES["id=" + line].removeprefix("fd=")) for line in ("output", "report"))
def raw():
    pass
"""
PROLOGUE = """
import json, os, select, shlex, signal, subprocess, time
PLAN = json.load(open(shlex.split(open(ARGS["init"]).readlines()[1])[-1]))
NOTES = {notes!r}
def note():
    with open(NOTES + "/" + str(os.getpid()), "w") as file:
        file.write(ARGS["init"])
def say(**what):
    os.write(REPORT, json.dumps(what).encode() + b"\\n")
def end(status=0):
    say(status=status, seconds=1.5)
    say(done=True)
def hang():
    while True:
        signal.pause()
note()
say(step="running the command")
"""
# A process in a session of its own, deaf to polite signals, that holds the output line open.
STRAY = """
ready, there = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        note()
        os.write(there, b"x")
        hang()
    os._exit(0)
os.read(ready, 1)
os.wait()
"""
DEAF = "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
Fake = Callable[[str], Path]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def fake_uml(tmp_path: Path, notes: Path) -> Fake:
    """Make the kernel of a machine ``uml``."""
    facts = {"python": os.path.realpath(sys.executable), "notes": str(notes)}
    return lambda behaviour: executable(tmp_path / "linux", (UML + PROLOGUE).format(**facts) + behaviour)


@pytest.fixture
def fake_smp(tmp_path: Path, notes: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Make the kernel of a machine ``smp``: it is QEMU that behaves."""
    facts = {"python": os.path.realpath(sys.executable), "notes": str(notes)}

    def make(behaviour: str) -> Path:
        own = executable(tmp_path / "qemu", (SMP + PROLOGUE).format(**facts) + behaviour)
        monkeypatch.setenv("PWB_QEMU", str(own))
        return bzimage(tmp_path)

    return make


def bzimage(folder: Path) -> Path:
    """Make a file that says it is a bzImage for x86-64."""
    content = bytearray(1024)
    content[0x202:0x206] = b"HdrS"
    content[0x236] = 1
    (folder / "bzImage").write_bytes(content)
    return folder / "bzImage"


def machine_of(kernel: Path) -> str:
    return "smp" if kernel.name == "bzImage" else "uml"


@pytest.fixture(params=["uml", "smp"])
def fake(request: pytest.FixtureRequest) -> Fake:
    """Make a kernel of either machine."""
    made: Fake = request.getfixturevalue(f"fake_{request.param}")
    return made


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def boot(kernel: Path, command: list[str] | None = None, **more: Any) -> guest.GuestResult:
    options = {
        "machine": machine_of(kernel),
        "clock": "host",
        "mem_mib": 320,
        "device_size_mib": 16,
        "cpus": 1,
    }
    return guest.run(kernel, command or ["true"], **{**options, **more})


def processes(notes: Path) -> list[int]:
    """Return the processes that noted themselves and still are."""
    return [int(note.name) for note in notes.iterdir() if Path("/proc", note.name).exists()]


def nothing_left(notes: Path, folder: Path) -> bool:
    assert list(notes.iterdir()), "the fake kernel never ran"
    return processes(notes) == [] and list(folder.iterdir()) == []


def test_clean_end_returns_what_the_command_did(fake: Fake, notes: Path, own_temporary_folder: Path) -> None:
    kernel = fake("print('booted', flush=True); os.write(OUTPUT, b'some output'); end(3)")
    stream = io.StringIO()
    result = boot(kernel, stream=stream)
    assert result == guest.GuestResult(3, "booted\n", 1.5, "some output")
    assert stream.getvalue() == "some output"
    assert nothing_left(notes, own_temporary_folder)


def test_kernel_gets_the_plan_and_the_arguments(fake_uml: Fake, tmp_path: Path) -> None:
    kernel = fake_uml("print(json.dumps([sys.argv, PLAN])); end()")
    results = tmp_path / "results"
    result = boot(
        kernel,
        ["sh", "-c", "a 'b' \"c\""],
        fs="f2fs",
        settings={"nwritebacks": "2", "/proc/sys/vm/dirty_bytes": "1"},
        results=results,
        device_count=2,
        mount_options="discard",
    )
    arguments, plan = json.loads(result.console)
    assert {"seccomp=on", "noreboot", "ro", "mem=320M", "ncpus=1", "maxcpus=1"} <= set(arguments)
    assert {"null_blk.nr_devices=0", "brd.rd_nr=0", "loop.max_loop=0"} <= set(arguments)
    assert plan["command"] == ["sh", "-c", "a 'b' \"c\""]
    assert (plan["fs"], plan["mount_options"]) == ("f2fs", "discard")
    assert plan["settings"] == [["nwritebacks", "2"], ["/proc/sys/vm/dirty_bytes", "1"]]
    assert plan["results"] == str(results)
    assert [device["name"] for device in plan["devices"]] == ["nullb0", "nullb1"]
    assert (results / "console.txt").read_text() == result.console


def test_qemu_gets_the_plan_and_the_arguments(fake_smp: Fake, tmp_path: Path) -> None:
    kernel = fake_smp("print(json.dumps([WORDS, ARGS, PLAN])); end()")
    results = tmp_path / "res,ults"
    result = boot(kernel, results=results, cpus=3, possible_cpus=5, mem_mib=400)
    words, arguments, plan = json.loads(result.console)
    given = dict(itertools.pairwise(words))
    assert (given["-smp"], given["-m"], given["-kernel"]) == ("5", "400M", str(kernel))
    assert arguments["maxcpus"] == "3"
    assert arguments["brd.rd_nr"] == "0" and arguments["root"] == "/dev/root"
    assert not {"-plugin", "LD_PRELOAD"} & set(words)
    folders = [word for word in words if word.startswith("local,")]
    assert [("path=/," in word, "readonly=on" in word) for word in folders] == [(True, True), (False, False)]
    assert f"path={tmp_path}/res,,ults," in folders[1]
    assert (plan["machine"], plan["results"]) == ("smp", str(results))


def test_report_is_answered_once_the_output_ahead_of_it_is_here(fake_smp: Fake) -> None:
    kernel = fake_smp(
        "os.read(REPORT, 9)\n"
        "say(step='x', sent=3)\n"
        "early = select.select([REPORT], [], [], 0.2)[0]\n"
        "os.write(OUTPUT, b'abc')\n"
        "print(early, os.read(REPORT, 9)); end()"
    )
    assert boot(kernel).console == "[] b'ok\\n'\n"


def test_every_byte_of_the_output_arrives(fake: Fake) -> None:
    kernel = fake(
        "data = bytes(range(256)) * 4096\n"
        "for at in range(0, len(data), 4096): os.write(OUTPUT, data[at:at + 4096])\n"
        "end()"
    )
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw)
    boot(kernel, stream=stream)
    assert raw.getvalue() == bytes(range(256)) * 4096


def test_early_exit_is_an_error_with_the_kernels_lines(
    fake: Fake, notes: Path, own_temporary_folder: Path
) -> None:
    kernel = fake("print('reboot: Restarting system'); sys.exit(7)")
    with pytest.raises(
        GuestError, match=r"ended early, while running the command \(exit status 7\)"
    ) as caught:
        boot(kernel)
    assert "reboot: Restarting system" in str(caught.value)
    assert nothing_left(notes, own_temporary_folder)


def test_end_without_unmount_is_an_early_exit(fake: Fake) -> None:
    with pytest.raises(GuestError, match="ended early"):
        boot(fake("say(status=0, seconds=1)"))


def test_hang_ends_by_time_out(fake: Fake, notes: Path, own_temporary_folder: Path) -> None:
    kernel = fake(DEAF + "print('the last line', flush=True); hang()")
    with pytest.raises(GuestError, match=r"time was up after 1 s, while running the command.*\n") as caught:
        boot(kernel, timeout_s=1)
    assert "the last line" in str(caught.value)
    assert nothing_left(notes, own_temporary_folder)


def test_report_stops_a_guest_that_hangs_after_it(
    fake: Fake, notes: Path, own_temporary_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REPORT_GRACE_S", 0.1)
    kernel = fake("print('BUG: KASAN: use-after-free in f+0x1', flush=True); hang()")
    with pytest.raises(
        GuestError, match=r"KASAN report, while running the command:\nBUG: KASAN: use-after-free"
    ):
        boot(kernel, timeout_s=1000)
    assert nothing_left(notes, own_temporary_folder)


def test_report_that_comes_slowly_is_read_to_its_end(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REPORT_GRACE_S", 4)
    kernel = fake(
        "print('BUG: KASAN: use-after-free in f+0x1', flush=True)\n"
        "for number in range(6): time.sleep(0.8); print(f'frame {number}', flush=True)\n"
        "print('---[ end trace', flush=True); hang()"
    )
    with pytest.raises(GuestError, match=r"frame 5\n---\[ end trace"):
        boot(kernel, timeout_s=1000)


def test_report_fails_a_command_that_succeeded(fake: Fake) -> None:
    kernel = fake("print('WARNING: fs/x.c:1 at f+0x1'); end(0)")
    with pytest.raises(GuestError, match=r"reported: WARN"):
        boot(kernel)


STALE_CODE = (Path(__file__).parent / "fixtures/console/stale-code.txt").read_text()
STALE_MAP = (Path(__file__).parent / "fixtures/console/stale-map.txt").read_text()
Fault = tuple[str, str, str]
# What a guest does that the emulator ends, what is in its console, and what the error says.
FAULTS_OF_THE_EMULATOR = [
    (f"print({STALE_CODE!r}, flush=True); hang()", "Oops: int3", "oops (QEMU ran code"),
    (
        f"print({STALE_MAP!r}, flush=True); os.kill(os.getpid(), signal.SIGABRT)",
        "iotlb_to_section",
        "(a fault of QEMU",
    ),
]


@pytest.mark.parametrize("fault", FAULTS_OF_THE_EMULATOR, ids=["code", "map"])
def test_guest_whose_boot_the_emulator_ends_is_booted_once_more(
    fake_smp: Fake, tmp_path: Path, fault: Fault
) -> None:
    dies, printed, _ = fault
    kernel = fake_smp(
        f"if len(os.listdir(NOTES)) == 1: say(step='booting'); {dies}\nprint('booted', flush=True); end(3)"
    )
    result = boot(kernel, results=tmp_path / "results")
    assert (result.status, result.console) == (3, "booted\n")
    assert (tmp_path / "results/console.txt").read_text() == "booted\n"
    assert printed in (tmp_path / "results/console-emulator-fault.txt").read_text()


@pytest.mark.parametrize("step", ["booting", "running the command"])
@pytest.mark.parametrize("fault", FAULTS_OF_THE_EMULATOR, ids=["code", "map"])
def test_fault_of_the_emulator_that_stays_or_meets_a_command_is_an_error(
    fake_smp: Fake, notes: Path, own_temporary_folder: Path, step: str, fault: Fault
) -> None:
    dies, _, said = fault
    kernel = fake_smp(f"say(step={step!r}); {dies}")
    with pytest.raises(GuestError, match=r"docs/guest.md: run it again\)") as error:
        boot(kernel)
    assert said in str(error.value)
    assert f"while {step}" in str(error.value)
    assert len(list(notes.iterdir())) == (2 if step == "booting" else 1)
    assert nothing_left(notes, own_temporary_folder)


def test_report_in_the_commands_output_is_none(fake: Fake) -> None:
    assert boot(fake("os.write(OUTPUT, b'WARNING: mine'); end(0)")).status == 0


def test_panic_shows_the_report(fake: Fake, notes: Path, own_temporary_folder: Path) -> None:
    kernel = fake(
        STRAY
        + "print('Kernel panic - not syncing: no init', flush=True); os.kill(os.getpid(), signal.SIGABRT)"
    )
    with pytest.raises(
        GuestError, match="panic, while running the command:\nKernel panic - not syncing: no init"
    ):
        boot(kernel)
    assert nothing_left(notes, own_temporary_folder)


def test_child_left_behind_is_killed(fake: Fake, notes: Path, own_temporary_folder: Path) -> None:
    assert boot(fake(STRAY + "end(0)")).status == 0
    assert len(list(notes.iterdir())) == 2
    assert nothing_left(notes, own_temporary_folder)


def test_set_up_that_fails_is_the_users_error(fake: Fake) -> None:
    with pytest.raises(LabError, match=r"^setting x: no such file$") as caught:
        boot(fake("say(error='setting x: no such file')"))
    assert not isinstance(caught.value, GuestError)


def test_unmount_that_fails_is_an_error(fake: Fake) -> None:
    with pytest.raises(GuestError, match="unmounting /mnt/test: Device or resource busy"):
        boot(fake("say(status=0, seconds=1); say(error='unmounting /mnt/test: Device or resource busy')"))


def test_stream_that_fails_leaves_nothing(fake: Fake, notes: Path, own_temporary_folder: Path) -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> NoReturn:
            raise BrokenPipeError(text)

    with pytest.raises(BrokenPipeError):
        boot(fake(STRAY + "os.write(OUTPUT, b'x'); hang()"), stream=Broken())
    assert nothing_left(notes, own_temporary_folder)


def test_killed_supervisor_takes_the_kernel_with_it(fake: Fake, notes: Path) -> None:
    with pytest.raises(GuestError, match="ended early"):
        boot(fake("os.kill(os.getppid(), signal.SIGKILL); hang()"))
    (pid,) = [int(note.name) for note in notes.iterdir()]
    wait_gone([pid])


def test_killed_supervisor_takes_a_process_that_was_being_made_with_it(fake_uml: Fake, notes: Path) -> None:
    kernel = fake_uml(
        "os.setsid()\n"
        "os.makedirs(ARGS['uml_dir'] + ARGS['umid'])\n"
        "with open(ARGS['uml_dir'] + ARGS['umid'] + '/pid', 'w') as file: file.write(str(os.getpid()))\n"
        "ready, there = os.pipe()\n"
        "if os.fork() == 0: note(); os.write(there, b'x'); hang()\n"
        "os.read(ready, 1)\n"
        "os.kill(os.getppid(), signal.SIGKILL); hang()"
    )
    with pytest.raises(GuestError, match="ended early"):
        boot(kernel)
    pids = [int(note.name) for note in notes.iterdir()]
    assert len(pids) == 2
    wait_gone(pids)


def wait_gone(pids: list[int]) -> None:
    """Wait until none of the processes is there; a test that would wait for ever fails."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([fd], [], [], 60)[0], f"process {pid} outlived its caller"
        os.close(fd)


CALLER = """
import sys, tempfile
from pathlib import Path
from lab.machine import guest
tempfile.tempdir = sys.argv[2]
guest.run(Path(sys.argv[1]), ["true"], mem_mib=320, device_size_mib=16, cpus=1, stream=sys.stdout,
          machine=sys.argv[3], clock="host")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_a_killed_caller(
    fake: Fake, notes: Path, own_temporary_folder: Path, number: signal.Signals
) -> None:
    kernel = fake(DEAF + STRAY + "os.write(OUTPUT, b'up'); hang()")
    command = [sys.executable, "-c", CALLER, str(kernel), str(own_temporary_folder), machine_of(kernel)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=guest.__file__.rpartition("/lab/")[0]
    ) as caller:
        assert caller.stdout is not None
        assert caller.stdout.read(2) == b"up"
        fakes = processes(notes)
        assert len(fakes) == 2
        (supervisor,) = {int(Path(f"/proc/{pid}/stat").read_text().split()[3]) for pid in fakes}
        caller.send_signal(number)
    assert caller.returncode in (-number, 1)
    wait_gone([*fakes, supervisor])
    assert nothing_left(notes, own_temporary_folder)


SHELL = """
import sys, tempfile
from pathlib import Path
from lab.machine import guest
tempfile.tempdir = sys.argv[2]
try:
    size = {"mem_mib": 320, "device_size_mib": 16, "cpus": 1}
    sys.exit(guest.shell(Path(sys.argv[1]), machine=sys.argv[3], **size).status)
except guest.GuestError as error:
    sys.exit(str(error))
"""


def test_shell_passes_keys_and_output_and_puts_the_terminal_back(
    fake: Fake, notes: Path, own_temporary_folder: Path
) -> None:
    kernel = fake(
        "raw()\n"
        "os.write(OUTPUT, str(PLAN['terminal']).encode())\n"
        "os.write(OUTPUT, b'<' + os.read(OUTPUT, 3) + b'>'); end(5)"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 77))
    before = termios.tcgetattr(theirs)
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, str(kernel), str(own_temporary_folder), machine_of(kernel)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=guest.__file__.rpartition("/lab/")[0],
    ) as shell:
        seen = b""
        while b"[33, 77]" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, b"a\x03b")
        while b"<a\x03b>" not in seen:
            seen += os.read(ours, 4096)
    assert shell.returncode == 5
    assert termios.tcgetattr(theirs) == before
    assert nothing_left(notes, own_temporary_folder)


def test_shell_passes_a_new_size_on(fake_smp: Fake, own_temporary_folder: Path) -> None:
    kernel = fake_smp(
        "os.write(OUTPUT, b'up'); heard = b''\n"
        "while b'size 44 55' not in heard: heard += os.read(REPORT, 99)\n"
        "end(5)"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 77))
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, str(kernel), str(own_temporary_folder), "smp"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=guest.__file__.rpartition("/lab/")[0],
    ) as shell:
        seen = b""
        while b"up" not in seen:
            seen += os.read(ours, 4096)
        termios.tcsetwinsize(ours, (44, 55))
        # The terminal is not the shell's controlling one, so the signal is ours to send.
        shell.send_signal(signal.SIGWINCH)
    assert shell.returncode == 5


def test_shell_shows_a_report_and_ends_as_an_error(fake: Fake, own_temporary_folder: Path) -> None:
    kernel = fake(
        "print('WARNING: fs/x.c:1 at f+0x1', flush=True)\n"
        "os.write(OUTPUT, b'go on?'); os.read(OUTPUT, 1); end(0)"
    )
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (33, 77))
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, str(kernel), str(own_temporary_folder), machine_of(kernel)],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        cwd=guest.__file__.rpartition("/lab/")[0],
    ) as shell:
        seen = b""
        while b"WARNING: fs/x.c" not in seen or b"go on?" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, b"\r")
        _, complaint = shell.communicate()
    assert shell.returncode == 1
    assert "reported: WARN" in complaint


def test_shell_needs_a_terminal(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(LabError, match="needs a terminal"):
        guest.shell(fake("end()"))


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"fs": "xfss"}, "unknown filesystem 'xfss': expected xfs"),
        ({"device": "nolat2"}, "unknown device 'nolat2': expected nolat"),
        ({"cpus": 4096}, "4096 guest CPUs: expected 1 to "),
        ({"machine": "smq"}, "unknown machine 'smq': expected smp"),
        ({"clock": "virtul"}, "unknown clock 'virtul': expected virtual"),
        ({"cpus": 0}, "0 guest CPUs: expected 1 to "),
        ({"mem_mib": 1 << 30}, "memory"),
        ({"device_size_mib": 1024}, "do not fit into 320 MiB"),
        ({"device_count": 2, "device_size_mib": 40}, "2 x 40 MiB of device 'nolat' do not fit"),
        ({"device_count": 65}, "65 test devices: expected 1 to 64"),
        ({"device_size_mib": 0}, "a test device of 0 MiB"),
        ({"timeout_s": 0}, "time of 0 s: expected more than 0"),
        ({"results": Path("/dev/null/results")}, "results folder /dev/null/results"),
    ],
)
def test_bad_argument_is_refused_before_anything_starts(
    fake: Fake, notes: Path, own_temporary_folder: Path, more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LabError) as caught:
        boot(fake("end()"), **more)
    assert complaint in str(caught.value)
    assert list(notes.iterdir()) == list(own_temporary_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"cpus": 65}, "65 guest CPUs: expected 1 to 64"),
        ({"cpus": 2, "possible_cpus": 1}, "1 possible CPUs: expected 2 to 255"),
        ({"possible_cpus": 256}, "256 possible CPUs: expected 1 to 255"),
        ({"memory": 0}, "memory from a file is for the machine uml only"),
        ({"mips": 0}, "0 MIPS: expected 1 or more"),
        ({"quantum_ns": 0}, "0 ns of a quantum: expected 1 or more"),
        ({"pause": 0}, "0 instructions of PAUSE: expected 1 or more"),
        ({"lanes": 0}, "0 lanes: expected 1 or more"),
        (
            {"cpus": 64, "device_size_mib": 64},
            "do not fit into 320 MiB of guest memory: expected at least 576 MiB",
        ),
    ],
)
def test_bad_machine_is_refused_before_anything_starts(
    fake_smp: Fake, notes: Path, more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LabError) as caught:
        boot(fake_smp("end()"), **more)
    assert complaint in str(caught.value)
    assert list(notes.iterdir()) == []


def test_no_command_is_refused(fake: Fake) -> None:
    with pytest.raises(LabError, match="no command"):
        guest.run(fake("end()"), [])


def test_missing_kernel_is_refused(fake: Fake) -> None:
    kernel = fake("end()")
    kernel.unlink()
    with pytest.raises(LabError, match=r"guest kernel .*: no such file"):
        boot(kernel)


@pytest.mark.parametrize("text", ["", "#!/bin/sh\n"])
def test_kernel_that_is_not_uml_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "linux"
    path.write_text(text)
    path.chmod(0o755)
    with pytest.raises(LabError, match="is not User-mode Linux"):
        boot(path)


@pytest.mark.parametrize("text", ["", "#!/bin/sh\n", "x" * 4096])
def test_kernel_that_is_no_bzimage_is_refused(fake_smp: Fake, text: str) -> None:
    path = fake_smp("end()")
    path.write_text(text)
    with pytest.raises(LabError, match="is not for the machine smp: expected a bzImage"):
        boot(path)


def test_kernel_that_is_not_executable_is_refused(fake_uml: Fake) -> None:
    path = fake_uml("end()")
    path.chmod(0o644)
    with pytest.raises(LabError, match="cannot be executed"):
        boot(path)


def test_kernel_that_cannot_start_is_an_early_exit(tmp_path: Path) -> None:
    path = tmp_path / "linux"
    path.write_text("#!/no/such/interpreter\n# CONFIG_UML=y\n")
    path.chmod(0o755)
    with pytest.raises(GuestError, match=r"ended early, while booting.*\n.*cannot start"):
        boot(path)
