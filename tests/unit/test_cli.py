# SPDX-License-Identifier: GPL-2.0
"""The command line: what reaches the lab's functions, and how their errors reach the user."""

from __future__ import annotations

import contextlib
import errno
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from lab import cli
from lab.bench import bench, cluster
from lab.check import everywhere
from lab.check import series as checking
from lab.check.patches import Patch
from lab.check.series import Checked, Outcome
from lab.docs import pages
from lab.machine import devices, guest, hardware, vtime
from lab.machine.hardware import Hardware
from lab.package import folder, lintian
from lab.package import kernel as package_kernel
from lab.package import wbctl as package_wbctl
from lab.probes import runner
from lab.probes.amplification.probe import Amplification
from lab.probes.clock import probe as clock
from lab.result import profile, published_table, results
from lab.tree import build, config, series, source, weave
from lab.util import host
from lab.util.errors import GuestError, LabError
from lab.util.lock import whole_machine
from lab.util.paths import REPO

SOURCE = source.Source(Path("/tree"), "7.3.4", "7.3", "ab")
JOB = "[writer]\nrw=randwrite\nsize=64m\nnumjobs=2\n"
GUEST_DEFAULTS = {
    "machine": "uml",
    "fs": "xfs",
    "device": "nolat",
    "device_count": 1,
    "device_size_mib": None,
    "settings": {},
    "mem_mib": 2048,
    "cpus": 2,
    "results": None,
}


# What is not said is left to the function.
SAID = {name: value for name, value in GUEST_DEFAULTS.items() if value is not None} | {"clock": "virtual"}


class Calls(list[tuple[Any, ...]]):
    """Records calls, each as (name, positional..., keywords)."""

    def recorder(self, name: str, result: Any = None) -> Any:
        def call(*positional: Any, **keywords: Any) -> Any:
            self.append((name, *positional, keywords))
            return result

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Put recorders in place of everything that takes time."""
    calls = Calls()
    monkeypatch.setattr(source, "fetch", calls.recorder("fetch", SOURCE))
    monkeypatch.setattr(source, "user_tree", calls.recorder("user_tree", SOURCE))
    monkeypatch.setattr(weave, "weave", calls.recorder("weave", SimpleNamespace(path=Path("/woven"))))
    monkeypatch.setattr(build, "build", calls.recorder("build", SimpleNamespace(path=Path("/kernels/linux"))))
    monkeypatch.setattr(guest, "run", calls.recorder("run", SimpleNamespace(status=7)))
    monkeypatch.setattr(guest, "shell", calls.recorder("shell", SimpleNamespace(status=3)))
    monkeypatch.setattr(guest, "check_terminal", lambda: None)
    monkeypatch.setattr(bench, "bench", calls.recorder("bench"))
    monkeypatch.setattr(bench, "run_job", calls.recorder("run_job"))
    monkeypatch.setattr(bench, "bench_all", calls.recorder("bench_all", [Path("r1")]))
    monkeypatch.setattr(published_table, "compare", calls.recorder("compare"))
    monkeypatch.setattr(series, "write_series", calls.recorder("write_series", [Path("0000.patch")]))
    monkeypatch.setattr(host, "check", calls.recorder("check"))
    monkeypatch.setattr(Hardware, "check", lambda _: None)
    return calls


def run(*arguments: str) -> int:
    return cli._run(list(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["series", "--output", "{file}/x"],
        ["costs", "--output", "{file}/x"],
        ["cuts", "--output", "/proc/x"],
        ["field", "--output", "{file}/x.tar.gz"],
        ["compare", "--results", "{folder}", "--output", "{file}/x"],
        ["report", "{folder}", "--output", "/nonexistent/x.html"],
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_where_to_write_is_looked_at_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert cli._run([one.format(file=file, folder=tmp_path) for one in arguments]) == 1
    assert re.fullmatch(r"pwb: error: --output \S+ cannot be written .*\n", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("command", ["throttle", "report"])
def test_a_result_of_another_command_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "summary.json").write_text('[{"kernel": "stock"}]')
    (tmp_path / "meta.json").write_text("{}")
    assert cli._run([command, str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("pwb: error: ") and said.count("\n") == 1


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    listed = capsys.readouterr().out
    for command in cli.cli.commands:
        assert f"\n  {command} " in listed
    # In 80 columns, too, each says what it does in a whole sentence.
    said = listed.partition("Commands:")[2].strip().splitlines()
    assert len(said) == len(cli.cli.commands)
    assert [line for line in said if line.endswith("...") or not line.endswith(".")] == []


def test_help_of_the_clock_names_every_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("clock", "--help") == 0
    words = re.findall(r"\w+", capsys.readouterr().out)
    assert [name for name in clock.TESTS if name not in words] == []


def test_devices_are_listed_and_described(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("devices") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == devices.names()
    assert "brd            RAM disk, copies in the submitting task" in lines


def test_wrong_usage_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("geust") == 2
    assert "Did you mean 'guest'?" in capsys.readouterr().err


def test_guest_defaults_and_status(calls: Calls) -> None:
    assert run("guest", "--", "ls", "-l") == 7
    assert calls == [
        ("fetch", {}),
        ("build", "parallel", SOURCE, "uml", {}),
        (
            "run",
            Path("/kernels/linux"),
            ["ls", "-l"],
            {**SAID, "stream": sys.stdout},
        ),
    ]


def test_guest_options(calls: Calls, tmp_path: Path) -> None:
    options = ["--kernel", "/my/linux", "--fs", "f2fs", "--device", "100us", "--timeout", "2.5"]
    options += ["--set", "nwritebacks=4", "--set", "/proc/sys/vm/dirty_bytes=1=2", "--device-count", "2"]
    options += ["--device-size-mib", "512", "--mem-mib", "4096", "--cpus", "1", "--results", str(tmp_path)]
    assert run("guest", *options, "true") == 7
    expected = {
        "clock": "virtual",
        "machine": "uml",
        "fs": "f2fs",
        "device": "100us",
        "device_count": 2,
        "device_size_mib": 512,
        "settings": {"nwritebacks": "4", "/proc/sys/vm/dirty_bytes": "1=2"},
        "mem_mib": 4096,
        "cpus": 1,
        "results": tmp_path,
        "timeout_s": 2.5,
        "stream": sys.stdout,
    }
    assert calls == [("run", Path("/my/linux"), ["true"], expected)]


def test_options_after_the_command_are_the_commands(calls: Calls) -> None:
    assert run("guest", "--kernel", "./linux", "fio", "--fs", "x") == 7
    assert calls[0][2] == ["fio", "--fs", "x"]


def test_profile_of_a_guest(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "profiled", calls.recorder("profiled", SimpleNamespace(status=7)))
    monkeypatch.setattr(profile, "show", calls.recorder("show"))
    command = ["guest", "--machine", "smp", "--profile", "--kernel", "/k/bzImage"]
    assert run(*command, "true") == 7
    (_, *positional, keywords), (_, _, shown, _) = calls
    assert positional == [guest.run, Path("/k/bzImage"), ["true"]]
    assert keywords["results"] == shown == results.RESULTS / "profile"
    assert (
        run("guest", "--machine", "smp", "--profile", "--results", "r", "--kernel", "/k/bzImage", "true") == 7
    )
    assert calls[2][-1]["results"] == calls[3][2] == Path("r")


@pytest.mark.parametrize("options", [[], ["--machine", "smp", "--clock", "host"]])
def test_profile_needs_virtual_time(
    calls: Calls, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert run("guest", *options, "--profile", "--", "true") == 2
    assert "--profile is of virtual time" in capsys.readouterr().err
    assert calls == []


def test_shell(calls: Calls) -> None:
    assert run("shell", "--kernel", "stock", "--series", "7.2") == 3
    assert calls == [
        ("fetch", "7.2", {}),
        ("build", "stock", SOURCE, "uml", {}),
        ("shell", Path("/kernels/linux"), {**GUEST_DEFAULTS, "clock": "host"}),
    ]


def test_guest_on_the_other_machine(calls: Calls) -> None:
    options = ["--machine", "smp", "--cpus", "8", "--mips", "500", "--quantum-ns", "1000", "--lanes", "1"]
    assert run("guest", *options, "true") == 7
    assert calls[1] == ("build", "parallel", SOURCE, "smp", {})
    expected = {"machine": "smp", "cpus": 8, "clock": "virtual", "mips": 500, "quantum_ns": 1000, "lanes": 1}
    assert calls[2][3].items() >= expected.items()
    assert run("shell", "--machine", "smp", "--kernel", "/k/bzImage", "--clock", "virtual") == 3
    assert calls[-1][2].items() >= {"machine": "smp", "clock": "virtual"}.items()


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--kernel", "paralel", "unknown kernel 'paralel': expected parallel"),
        ("--fs", "xf", "unknown filesystem 'xf': expected xfs"),
        ("--device", "nolatt", "unknown device 'nolatt': expected nolat"),
        ("--machine", "umm", "unknown machine 'umm': expected uml"),
        ("--clock", "hots", "unknown clock 'hots': expected host"),
        ("--cpus", "65", "65 guest CPUs: expected 1 to "),
        ("--mem-mib", "512", "1 x 1024 MiB of device 'nolat' do not fit into 512 MiB"),
    ],
)
def test_unknown_names_are_refused_before_any_build(
    calls: Calls, capsys: pytest.CaptureFixture[str], option: str, value: str, sentence: str
) -> None:
    assert run("guest", option, value, "--", "true") == 1
    assert capsys.readouterr().err.startswith(f"pwb: error: {sentence}")
    assert calls == []


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["guest", "--mips", "5", "--", "true"], 2, "--mips is of virtual time: it needs --machine smp"),
        (["guest", "--machine", "smp", "--clock", "host", "--lanes", "1", "--", "true"], 2, "--lanes is of"),
        (["guest", "--timeout", "nan", "--", "true"], 2, "nan: expected a number"),
        (["waits", "--contexts", "0"], 1, "waits: 0 contexts on 2 CPUs: expected 1 to 8"),
        (["waits", "--contexts", "2,4,2"], 2, "2 is there twice: expected each once"),
        (["pauses", "--contexts", "9"], 1, "pauses: 9 contexts on 2 CPUs: expected 1 to 8"),
        (["changes", "--fs", "none"], 1, "unknown filesystem 'none': expected ext4, f2fs or xfs"),
        (["cuts", "--cpus", "65"], 1, "65 guest CPUs: expected 1 to"),
        (["cuts", "--minutes", "nan"], 2, "nan: expected a number"),
        (["cuts", "--kernel", "trased"], 1, "unknown uml kernel 'trased': expected traced"),
        (["cuts", "--fs", "xfs,xfs"], 2, "xfs is there twice: expected each once"),
        (["schedules", "--cpus", "65"], 1, "65 guest CPUs: expected 1 to 64"),
        (["endurance", "--hours", "nan"], 2, "nan: expected a number"),
        (["check-series", "--checks", ""], 2, "'': expected names with commas between them"),
        (["compare", "--results", "/", "--fresh"], 2, "--results takes what was measured: only --output"),
        (["compare", "--results", "/", "--cpus", "4"], 2, "--results takes what was measured: only --output"),
        (["keep", "--name", "mine"], 2, "--name is of what is kept: it needs RESULT"),
        (["field", "--packages", "/no/such"], 1, "--packages /no/such has no packages: expected .deb files"),
        (["run", "--job", "/dev/null", "--cpus", "0"], 2, "0 is not in the range 1<=x<=64"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_before_any_build(
    calls: Calls, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    assert run(*arguments) == status
    assert said in capsys.readouterr().err
    assert calls == []


def test_shell_without_a_terminal_is_refused_before_any_build(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(source, "fetch", calls.recorder("fetch", SOURCE))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert run("shell") == 1
    assert "a shell in a guest needs a terminal as standard input" in capsys.readouterr().err
    assert calls == []


def test_dry_run_of_a_series_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    assert run("run", "--job", str(job), "--series", "9", "--dry-run") == 1
    assert "'9' is not a kernel series: expected two numbers such as 7.3" in capsys.readouterr().err


def test_a_dirty_limit_that_is_too_low(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    assert run("run", "--job", str(job), "--dirty-limits-mib", "7", "--dry-run") == 1
    assert "a dirty limit of 7 MiB: expected 8 MiB or more" in capsys.readouterr().err


def test_ctrl_c_while_the_program_still_loads_leaves_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "lab", "devices"],
        cwd=REPO,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    # The lines come as modules are loaded: this one is an early one of ours.
    said = iter(process.stderr)
    assert any("click" in line for line in said)
    process.send_signal(signal.SIGINT)
    assert "Traceback" not in "".join(said)
    assert process.wait() in (-signal.SIGINT, 130)


def test_unknown_load_is_refused_before_any_build(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schedules", "--load", "resise") == 1
    assert capsys.readouterr().err.startswith("pwb: error: unknown load 'resise': expected resize")
    assert calls == []


@pytest.mark.parametrize("command", ["cuts", "schedules", "installed"])
def test_proof_does_not_disturb_a_measurement(
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: str,
) -> None:
    monkeypatch.setattr(folder, "ours", lambda _: [])
    with whole_machine("measuring headline"):
        assert run(command, "--output", str(tmp_path)) == 1
    assert "two runs at once" in capsys.readouterr().err
    assert calls == []


@pytest.mark.parametrize("value", ["nwritebacks", "=4"])
def test_setting_without_path_or_value(calls: Calls, capsys: pytest.CaptureFixture[str], value: str) -> None:
    assert run("guest", "--set", value, "--", "true") == 2
    assert "expected PATH=VALUE" in capsys.readouterr().err
    assert calls == []


def test_guest_needs_a_command_and_a_time(calls: Calls) -> None:
    assert run("guest") == 2
    assert run("guest", "--timeout", "0", "--", "true") == 2
    assert calls == []


def built(calls: Calls) -> list[tuple[str, str]]:
    return [(call[3], call[1]) for call in calls if call[0] == "build"]


def test_build_all_that_the_tests_boot(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build") == 0
    everything = [(machine, flavour) for machine in ("uml", "smp") for flavour in config.TESTED[machine]]
    assert built(calls) == everything
    assert [call[0] for call in calls].count("fetch") == 1
    assert "uml debug: /kernels/linux\n" in capsys.readouterr().out
    calls.clear()
    assert run("build", "--machine", "smp") == 0
    assert built(calls) == [("smp", flavour) for flavour in config.TESTED["smp"]]


def test_build_one(calls: Calls) -> None:
    assert run("build", "debug", "--source", "/mine") == 0
    assert calls == [("user_tree", Path("/mine"), {}), ("build", "debug", SOURCE, "uml", {})]
    calls.clear()
    assert run("build", "--machine", "smp", "stock", "parallel") == 0
    assert built(calls) == [("smp", "stock"), ("smp", "parallel")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["stok"], "unknown uml kernel 'stok': expected stock"),
        (["stock", "--machine", "smb"], "unknown machine 'smb': expected smp"),
        (["--machine", "smp", "traced"], "unknown smp kernel 'traced': expected "),
    ],
)
def test_build_of_what_there_is_not(
    calls: Calls, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert run("build", *arguments) == 1
    assert capsys.readouterr().err.startswith(f"pwb: error: {sentence}")
    assert calls == []


@pytest.mark.parametrize(("option", "discard"), [([], True), (["--no-discard"], False)])
def test_amplification_tells_the_flash_what_was_deleted(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: list[str], discard: bool
) -> None:
    runs = pd.DataFrame([{"placement": "none", "amplification": 1.0, "host_gib": 1.0}])
    monkeypatch.setattr(runner, "check", calls.recorder("check", None))
    monkeypatch.setattr(runner, "measure", calls.recorder("measure", runs))
    assert run("amplification", "--output", str(tmp_path), "--repetitions", "2", *option) == 0
    [asked] = [call[1] for call in calls if call[0] == "measure"]
    assert asked == Amplification(discard=discard, repetitions=2)


def test_source_and_series_exclude_each_other(calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fetch", "--source", "/mine", "--series", "7.3") == 2
    assert "--source and --series exclude each other" in capsys.readouterr().err
    assert calls == []


def test_check_series_says_which_patch_fails(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = Patch(2, "wb: x", "c", "b", "k", (), 3, 1)
    found = [Checked(patch, {"um": Outcome("um", ["fs/a.c:1:1: error: no"], 1.0)})]
    every = [Checked(patch, {"um": found[0].said["um"], "arm64": None})]
    monkeypatch.setattr(checking, "check", calls.recorder("check", found))
    monkeypatch.setattr(checking, "known", calls.recorder("known", every))
    output = ["--output", str(tmp_path)]
    assert run("check-series", "--patches", "2..3", "--checks", "um,arm64", "--boot", *output) == 1
    _, given, names, wanted, _ = calls[-2]
    assert (given, names, wanted) == (SOURCE, ["um", "arm64", "kunit", "load"], "2..3")
    # The result has what is known of all patches, whatever was asked for.
    assert calls[-1] == ("known", SOURCE, {})
    assert "| 2 | wb: x | +3 -1 | FAILS | not run |" in (tmp_path / "table.md").read_text()
    said = capsys.readouterr()
    assert "2 wb: x   FAILS" in said.out
    assert said.err == (
        "pwb: error: patch 2 (wb: x) is the first that fails, the check um: fs/a.c:1:1: error: no\n"
    )
    passed = [Checked(patch, {"um": Outcome("um", [], 1.0)})]
    monkeypatch.setattr(checking, "check", calls.recorder("check", passed))
    assert run("check-series", *output) == 0
    assert calls[-2][2] == [*checking.USUAL]


def test_check_series_shows_what_is_known_and_checks_nothing(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = Patch(2, "wb: x", "c", "b", "k", (), 3, 1)
    known = [Checked(patch, {"um": Outcome("um", [], 1.0), "arm64": None})]
    monkeypatch.setattr(checking, "check", calls.recorder("check"))
    monkeypatch.setattr(checking, "known", calls.recorder("known", known))
    assert run("check-series", "--show", "--patches", "2", "--output", str(tmp_path)) == 0
    assert [call for call in calls if call[0] in ("check", "known")] == [
        ("known", SOURCE, checking.NAMES, "2", {}),
        ("known", SOURCE, {}),
    ]
    assert "2 wb: x   ok   -" in capsys.readouterr().out
    assert run("check-series", "--show", "--boot", "--output", str(tmp_path)) == 2


def test_help_of_check_series_names_every_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check-series", "--help") == 0
    # A line of it is as wide as the terminal.
    assert ",".join(checking.NAMES) in "".join(capsys.readouterr().out.split())


def test_weave_everywhere_prints_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = [everywhere.Kernel("7.3.4", "linux-source-7.3", 7)]

    def try_all(trees: list[Path], show: Callable[[everywhere.Kernel], None]) -> list[everywhere.Kernel]:
        assert trees == []
        for kernel in kernels:
            show(kernel)
        return kernels

    monkeypatch.setattr(everywhere, "try_all", try_all)
    assert run("weave", "--everywhere", "--output", str(tmp_path / "out")) == 0
    said = capsys.readouterr()
    assert "| Linux 7.3.4 |" in said.out
    assert said.err == "Linux 7.3.4: weaves, 7 patches\n"
    assert (tmp_path / "out/table.md").read_text() == everywhere.table(kernels)
    kernels.append(everywhere.Kernel("7.4.0", None, 0, "hook x moved"))
    assert run("weave", "--everywhere", "--output", str(tmp_path / "out")) == 1
    assert run("weave", "--everywhere", "--series", "7.2") == 2


def test_fetch_weave_and_series_print_what_they_made(
    calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("fetch") == run("weave") == run("series", "--output", "out") == 0
    assert capsys.readouterr().out == (
        "Linux 7.3.4: /tree\nLinux 7.3.4 with parallel writeback: /woven\n0000.patch\n"
    )
    assert calls[-1] == ("write_series", SOURCE, Path("out"), {"figures": pages.figures})


def deb(calls: Calls, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[tuple[Any, ...]]:
    """Run ``pwb deb`` with recorders for what packs; return their calls, in order, without keywords."""
    monkeypatch.setattr(package_wbctl, "make", calls.recorder("wbctl", Path("w.deb")))
    monkeypatch.setattr(package_kernel, "make", calls.recorder("kernel", Path("k.deb")))
    monkeypatch.setattr(lintian, "check", calls.recorder("lintian"))
    assert run("deb", *arguments) == 0
    return [call[:-1] for call in calls if call[0] in {"wbctl", "kernel", "lintian"}]


def test_deb_makes_and_checks_every_package(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new" / "out"
    assert deb(calls, monkeypatch, "--output", str(output)) == [
        ("wbctl", output),
        ("lintian", Path("w.deb")),
        ("kernel", "stock", SOURCE, output, None),
        ("lintian", Path("k.deb"), package_kernel.ACCEPTED),
        ("kernel", "parallel", SOURCE, output, None),
        ("lintian", Path("k.deb"), package_kernel.ACCEPTED),
    ]
    assert output.is_dir()
    assert capsys.readouterr().out == "w.deb\nk.deb\nk.deb\n"


def test_deb_takes_the_modules_of_a_server(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = tmp_path / "lsmod.txt"
    listed.touch()
    made = deb(calls, monkeypatch, "stock", "--modules", str(listed), "--output", str(tmp_path))
    assert made[0] == ("kernel", "stock", SOURCE, tmp_path, listed)


def test_deb_of_wbctl_needs_no_kernel_source(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert len(deb(calls, monkeypatch, "wbctl", "--output", str(tmp_path))) == 2
    assert "fetch" not in [call[0] for call in calls]


def test_deb_of_what_there_is_not(calls: Calls, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("deb", "paralel", "--output", str(tmp_path / "out")) == 1
    assert capsys.readouterr().err.startswith("pwb: error: unknown package 'paralel': expected parallel")
    assert list(tmp_path.iterdir()) == []


AS_IT_SAYS = {"machine": None, "cpus": None, "where": bench.HERE}


def test_bench(calls: Calls) -> None:
    assert run("bench") == 0
    assert run("bench", "headline", "--full", "--source", "/mine") == 0
    assert calls == [
        ("fetch", {}),
        ("bench", "headline", {"full": False, "source": SOURCE, **AS_IT_SAYS}),
        ("user_tree", Path("/mine"), {}),
        ("bench", "headline", {"full": True, "source": SOURCE, **AS_IT_SAYS}),
    ]


def test_bench_elsewhere(calls: Calls) -> None:
    options = ["--machine", "smp", "--cpus", "16", "--scheduler", "tcp://here:8786", "--fresh"]
    assert run("bench", "t2", *options) == 0
    expected = {"machine": "smp", "cpus": 16, "where": bench.Where("tcp://here:8786", fresh=True)}
    assert calls[-1] == ("bench", "t2", {"full": False, "source": SOURCE, **expected})


@pytest.mark.parametrize("command", [["bench"], ["run", "--job", "mine.fio"]])
def test_profile_of_each_run(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.fio").write_text(JOB)
    assert run(*command, "--profile") == 0
    assert calls[-1][-1]["where"] == bench.Where(profiled=True)


def test_unknown_scenario_is_refused_before_the_fetch(
    calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("bench", "headlin") == 1
    assert capsys.readouterr().err.startswith("pwb: error: unknown scenario 'headlin': expected headline")
    assert calls == []


def test_run_a_job(calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    options = ["--fs", "xfs, ext4", "--device", "100us", "--contexts", "auto,8", "--dirty-limits-mib", "64"]
    assert run("run", "--job", str(job), *options, "--memory", "4096", "--budget", "5") == 0
    expected = {
        "fs": ["xfs", "ext4"],
        "device": "100us",
        "contexts": ["auto", 8],
        "dirty_limits_mib": [64],
        "machine": "smp",
        "cpus": None,
        "memory_mib": 4096,
        "budget_min": 5.0,
        "source": SOURCE,
        "where": bench.HERE,
    }
    assert calls[-2:] == [("fetch", {}), ("run_job", job, expected)]
    said = capsys.readouterr()
    # What is to come is said ahead of the source, which may take its time to come.
    assert "8 CPUs 100us ext4 auto contexts: about " in said.err
    assert "fio job file mine.fio: 6 boots, " in said.err
    assert said.out == ""


def test_dry_run_says_what_would_run_and_runs_nothing(
    calls: Calls, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of no source nobody knows what is built.
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    job = tmp_path / "mine.fio"
    job.write_text(JOB.replace("numjobs=2", "numjobs=32"))
    assert run("run", "--job", str(job), "--fs", "xfs", "--dry-run") == 0
    *boots, whole, answer, cached, built, then, device, limit, stopped = capsys.readouterr().out.splitlines()
    # What answers first comes first.
    settings = ("stock", "8 contexts", "1 context", "2 contexts", "4 contexts", "separate BDIs")
    assert [line.split(":")[0] for line in boots] == [f"8 CPUs brd xfs {one}" for one in settings]
    assert whole.startswith("fio job file mine.fio: 6 boots, ")
    assert answer.startswith("first answer after about ")
    assert cached == "what the cache has of them takes no time (--fresh measures it again)"
    assert built.startswith("kernels that are not built yet come first")
    assert then.startswith("then ")
    assert " into the 15 min 0 s of --budget" in then
    assert device.startswith("device brd is a RAM disk, ")
    assert limit.startswith("writers are throttled by a dirty limit of 128 MiB: ")
    assert stopped.startswith("the job is stopped 0.7 s of the guest after its first write")
    # Whether there is room.
    assert [name for name, *_ in calls] == ["check"]


def test_dry_run_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a dry run is to fetch and compile nothing")

    monkeypatch.setattr(hardware, "find", refuse)
    monkeypatch.setattr(vtime, "build", refuse)
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    assert run("run", "--job", str(job), "--dry-run") == 0
    assert run("run", "--job", str(job), "--dry-run", "--memory", "820", "--cpus", "64") == 1
    assert "do not fit into 820 MiB of guest memory" in capsys.readouterr().err


def test_dry_run_asks_the_cluster_that_would_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    asked = ["run", "--job", str(job), "--dry-run", "--scheduler", "tcp://127.0.0.1:1"]
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "existing", lambda *_: contextlib.nullcontext(SimpleNamespace(size=5)))
        assert run(*asked, "--fresh") == 0
    said = capsys.readouterr().out
    assert " boots, 5 at a time, about " in said
    assert "what the cache has" not in said
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    assert run(*asked) == 1
    assert "scheduler tcp://127.0.0.1:1 does not answer within 1 s" in capsys.readouterr().err


def test_dry_run_refuses_what_the_run_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    assert run("run", "--job", str(job), "--dry-run", "--machine", "uml", "--profile") == 1
    assert "a profile is of virtual time: expected the machine smp" in capsys.readouterr().err


def test_help_names_every_kernel() -> None:
    flavours = {flavour for of in config.FRAGMENTS.values() for flavour in of}
    for name in ("guest", "shell"):
        [metavar] = [one.metavar for one in cli.cli.commands[name].params if one.name == "kernel"]
        assert set(str(metavar).split("|")) == flavours | {"PATH"}


def test_dry_run_says_what_does_not_fit_the_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB.replace("numjobs=2", "numjobs=32"))
    assert run("run", "--job", str(job), "--budget", "1", "--cpus", "32", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "begin within the 1 min 0 s of --budget" in said
    assert "then no further boot fits into the 1 min 0 s of --budget" in said
    assert "no bound from separate BDIs: 5120 MiB are less than 300 for each of 32 CPUs" in said
    assert "separate BDIs: about" not in said


@pytest.mark.parametrize("job", sorted((REPO / "examples").glob("*.fio")), ids=lambda job: job.stem)
def test_examples_are_taken(job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--job", str(job), "--dry-run") == 0
    assert "separate BDIs: about" in capsys.readouterr().out


def test_budget_is_a_number(tmp_path: Path) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(JOB)
    for budget in ("nan", "inf", "0"):
        assert run("run", "--job", str(job), "--budget", budget, "--dry-run") == 2


@pytest.mark.parametrize(
    ("text", "option", "complaint"),
    [
        ("direct=1\n[a]\nrw=write\nsize=1m\n", "--contexts=2", "every section that writes has direct=1"),
        ("[a]\nbuffered=0\nrw=write\nsize=1m\n", "--contexts=2", "every section that writes has direct=1"),
        (
            "filename=f\n[a]\nrw=write\nsize=5g\n",
            "--contexts=2",
            "its files take 5120 MiB, and the device has 5120",
        ),
        ("[a]\nrw=write\nsize=1m\n", "--contexts=1,33", "33 contexts on 8 CPUs: expected 1 to 32"),
    ],
)
def test_job_that_cannot_gain_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, option: str, complaint: str
) -> None:
    job = tmp_path / "mine.fio"
    job.write_text(f"[global]\n{text}")
    assert run("run", "--job", str(job), option, "--dry-run") == 1
    assert complaint in capsys.readouterr().err


def test_dry_run_has_no_devices_without_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "mine.fio"
    job.write_text("[a]\nrw=randwrite\nsize=1m\nfilename=one:two\nnumjobs=8\n[b]\nrw=write\nsize=1m\n")
    assert run("run", "--job", str(job), "--dry-run") == 0
    said = capsys.readouterr().out
    assert "no bound from separate BDIs: of 8 devices only 3 would have a file that the job writes" in said
    assert "separate BDIs: about" not in said


@pytest.mark.parametrize(
    "option", ["--contexts=1,x", "--dirty-limits-mib=", "--fs=xfs,", "--job=/no/such/job"]
)
def test_run_with_a_bad_option(calls: Calls, tmp_path: Path, option: str) -> None:
    job = tmp_path / "mine.fio"
    job.touch()
    assert run("run", "--job", str(job), option) == 2
    assert calls == []


def test_compare_measures_what_is_named(calls: Calls, tmp_path: Path) -> None:
    assert run("compare", "t2", "--full", "--output", str(tmp_path)) == 0
    assert calls == [
        ("fetch", {}),
        ("bench_all", ["t2"], {"full": True, "source": SOURCE, **AS_IT_SAYS}),
        ("compare", [Path("r1")], tmp_path, {}),
    ]


def test_compare_takes_finished_results(calls: Calls, tmp_path: Path) -> None:
    assert run("compare", "--results", str(tmp_path), "--results", str(REPO)) == 0
    assert calls == [("compare", [tmp_path, REPO], published_table.OUTPUT, {})]
    assert run("compare", "t2", "--results", str(tmp_path)) == 2
    assert run("compare", "--results", "/no/such/folder") == 2


def test_compare_refuses_unknown_scenarios_before_the_fetch(
    calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", "t22") == 1
    assert capsys.readouterr().err.startswith("pwb: error: unknown scenario 't22': expected t2")
    assert calls == []


def test_check_asks_for_everything(calls: Calls) -> None:
    assert run("check") == 0
    need = calls[0][1]
    assert need.packages
    assert min(need.disk_bytes, need.memory_bytes) > 0


@pytest.mark.parametrize("error", [LabError("no mirror: check the network"), GuestError("WARNING\nline two")])
def test_lab_error_is_shown_and_is_1(
    error: LabError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(source, "fetch", fail)
    assert run("fetch") == 1
    assert capsys.readouterr() == ("", f"pwb: error: {error}\n")


def test_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/cache/x")

    monkeypatch.setattr(source, "fetch", fail)
    assert run("fetch") == 1
    assert capsys.readouterr().err.startswith("pwb: error: no room left for /cache/x: ")


# A command that is at work until a signal ends it, and then cleans up as the bench does.
AT_WORK = """
import signal
from lab import cli
from lab.tree import source

def fetch():
    try:
        print("at work", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        print("cleaned up", flush=True)
        raise

source.fetch = fetch
cli.main(["fetch"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_cleans_up_and_shows_in_the_status(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AT_WORK], cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(number)
        assert child.stdout.read() == "cleaned up\n"
        assert "Traceback" not in child.stderr.read()
    assert child.returncode == 128 + number


def test_python_is_the_labs_own() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lab",
            "python",
            "-c",
            "import sys; print(sys.executable); sys.exit(5)",
            "--help",
        ],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (5, f"{sys.executable}\n")
