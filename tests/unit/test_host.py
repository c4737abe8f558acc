# SPDX-License-Identifier: GPL-2.0
"""The host check: each missing thing is named together with the command that mends it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from lab.util import host
from lab.util.errors import LabError
from lab.util.host import GIB, Need

NO_PACKAGES = {"packages": False}


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up machine: 2 cores, 8 GiB available, roomy disks, nothing running, one package installed."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "meminfo").write_text("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
    packages = tmp_path / "packages.txt"
    packages.write_text("# Debian packages\nfio  # the load\nccache # builds\n\n")
    tool = tmp_path / "bin" / "dpkg-query"
    tool.parent.mkdir()
    tool.write_text(
        "#!/bin/sh\necho fio installed\necho ccache not-installed\necho 'no packages' >&2\nexit 1\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    for name in ("TMPDIR", "TMP", "TEMP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(host, "_PROC", proc)
    monkeypatch.setattr(host.running_guests, "__defaults__", (proc,))
    monkeypatch.setattr(host, "_PACKAGES", packages)
    monkeypatch.setattr(host.listed_packages, "__defaults__", (packages,))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(
        shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100 * GIB, 50 * GIB, 50 * GIB)
    )
    return proc


def running(proc: Path, pid: int, parent: int, *words: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_bytes("\0".join([*words, ""]).encode())
    (proc / str(pid) / "stat").write_text(f"{pid} (a (b) c) S {parent} {pid} 0 0")


def guest(proc: Path, pid: int, parent: int = 1, cpus: int = 2) -> None:
    linux = f"{os.environ['PWB_CACHE']}/kernel/abc/linux"
    running(proc, pid, parent, linux, "seccomp=on", f"maxcpus={cpus}", "mem=1G")


def lacking(need: Need) -> list[str]:
    with pytest.raises(LabError) as caught:
        host.check(need)
    return str(caught.value).splitlines()[1:]


def test_a_machine_that_has_everything_passes() -> None:
    host.check(Need(**NO_PACKAGES, disk_bytes=GIB, cpus=2, guest_mem_bytes=GIB))


def test_missing_packages_are_named() -> None:
    assert lacking(Need()) == ["  packages: ccache; install them with: make setup"]


def test_a_machine_without_dpkg_is_told_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "Debian 12" in lacking(Need())[0]


def test_everything_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(GIB, GIB, 0))
    lines = lacking(Need(disk_bytes=3 * GIB, cpus=4, guest_mem_bytes=9 * GIB))
    assert [line.split(":")[0].strip() for line in lines] == [
        "packages",
        "disk",
        "cores",
        "memory",
        "room for guest RAM",
    ]
    assert "export PWB_CACHE=" in lines[1]
    assert "4, this machine gives 2" in lines[2]
    assert "remount,size=10G /dev/shm" in lines[4]


def test_a_folder_for_guest_ram_that_the_user_chose_is_the_one_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert lacking(Need(**NO_PACKAGES, guest_mem_bytes=GIB)) == [
        "  room for guest RAM: 1.0 GiB in /nowhere, which has 0.0; "
        "use shared memory instead with: unset TMPDIR TMP TEMP"
    ]


def test_a_running_guest_is_named_with_the_command_that_ends_it(machine: Path) -> None:
    guest(machine, 4242)
    guest(machine, 4243, parent=4242)  # its helper
    running(machine, 4244, 1, "/usr/bin/vi", "seccomp=on")
    lines = lacking(Need(**NO_PACKAGES, cpus=1))
    assert lines == [
        "  free cores: 1 of 2, but other guests run on them (process 4242); "
        "wait for them, or stop them with: kill -9 4242"
    ]


def test_a_guest_that_leaves_a_core_free_is_no_obstacle(machine: Path) -> None:
    guest(machine, 4242, cpus=1)
    host.check(Need(**NO_PACKAGES, cpus=1))


def test_a_process_that_ends_while_we_look_is_skipped(machine: Path) -> None:
    (machine / "77").mkdir()
    assert host.running_guests(machine) == []


def test_program_of_its_own_memory_needs_no_room_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(GIB, GIB, 0))
    host.check(Need(**NO_PACKAGES, memory_bytes=8 * GIB))
    assert lacking(Need(**NO_PACKAGES, memory_bytes=9 * GIB)) == [
        "  memory: 9.0 GiB for the guest, 8.0 are available; end what takes most of it, see: top -o %MEM"
    ]


@pytest.mark.parametrize(
    ("options", "cores"),
    [
        (["-append", "ro maxcpus=8"], 2),
        (["-append", "ro maxcpus=1"], 1),
        (["-append", "ro maxcpus=8", "-plugin", "/v.so,mips=1000,lanes=1"], 1),
        (["-append", "ro maxcpus=8", "-plugin", "/v.so,mips=1000"], 2),
    ],
)
def test_an_emulated_guest_takes_the_cores_that_its_cpus_run_on(
    machine: Path, options: list[str], cores: int
) -> None:
    kernel = f"{os.environ['PWB_CACHE']}/kernel/abc/bzImage"
    running(machine, 4242, 1, "/usr/bin/qemu-system-x86_64", "-kernel", kernel, *options)
    running(machine, 4243, 1, "/usr/bin/qemu-system-x86_64", "-kernel", "/boot/vmlinuz", *options)
    assert host.running_guests(machine) == [host.Guest(4242, cores)]
