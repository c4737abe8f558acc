# SPDX-License-Identifier: GPL-2.0
"""What is made of a filesystem after a power cut; the cuts themselves are guest tests."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.guest import cuts
from tests.guest.cut_check import Found
from tests.guest.fsck import CHECK

TORN_BYTE = 1024 + 700


@pytest.fixture
def machine() -> cuts.Machine:
    """Have a machine without a device."""
    machine = object.__new__(cuts.Machine)
    machine._fs = "ext4"
    machine._seed = 1
    machine._chosen = random.Random(1)
    machine._failed = ["it gave up"]
    machine._group_writebacks = 2
    return machine


def says_its_name(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """Be a command that does nothing."""
    return subprocess.CompletedProcess(command, 0, f"{command[0]} said", "")


@pytest.mark.parametrize("mount", [1, 2])
def test_a_mount_that_fails_is_a_loss(
    machine: cuts.Machine, monkeypatch: pytest.MonkeyPatch, mount: int
) -> None:
    mounts: list[int] = []

    def mount_it() -> None:
        mounts.append(len(mounts) + 1)
        if mounts[-1] == mount:
            raise subprocess.CalledProcessError(32, ["mount"])

    monkeypatch.setattr(machine, "_mount", mount_it)
    monkeypatch.setattr(cuts, "mend_superblock", lambda _: False)
    monkeypatch.setattr(subprocess, "run", says_its_name)
    found = machine.recover()
    assert found.lost[0] == "it gave up"
    assert "'mount'" in found.lost[1]
    assert "dmesg said" in found.lost[1]
    assert found.taken["writeback of a cgroup"] == 2


@pytest.mark.parametrize("is_torn", [True, False])
def test_a_superblock_is_mended_once(
    machine: cuts.Machine, monkeypatch: pytest.MonkeyPatch, is_torn: bool
) -> None:
    failing = [is_torn, False, False]

    def mount_it() -> None:
        if failing.pop(0):
            raise subprocess.CalledProcessError(32, ["mount"])

    monkeypatch.setattr(machine, "_mount", mount_it)
    monkeypatch.setattr(machine, "_all", lambda _: [Found(5, 1, ["a file"]), Found(7, 0, [])])
    monkeypatch.setattr(cuts, "mend_superblock", lambda _: True)
    monkeypatch.setattr(subprocess, "run", says_its_name)
    found = machine.recover()
    assert (found.promised, found.longer, found.mended) == (12, 1, int(is_torn))
    assert found.lost == ["it gave up", "a file"]


def test_seed_and_number_of_a_cut_choose_what_it_does(
    machine: cuts.Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(machine, "_all", lambda *order: asked.append(order))

    def chosen(number: int) -> float:
        machine.choose_anew(number)
        return machine._chosen.random()

    first = chosen(3)
    machine._chosen.random()
    assert chosen(4) != first
    assert chosen(3) == first
    assert asked == [("choose_anew", number) for number in (3, 4, 3)]


def image(folder: Path, options: str) -> Path:
    """Make a filesystem with a file in it."""
    path, content = folder / "image", folder / "content"
    content.mkdir()
    (content / "file").write_bytes(b"x" * 5000)
    with path.open("wb") as file:
        file.truncate(64 << 20)
    tool(*cuts.MAKE["ext4"], *options.split(), "-d", str(content), str(path))
    return path


def tool(*command: str) -> None:
    """Run a tool that has to do what it is asked."""
    subprocess.run(command, check=True, capture_output=True)


def tear(path: Path) -> None:
    """Change a byte of a superblock."""
    with path.open("r+b") as file:
        file.seek(TORN_BYTE)
        old = file.read(1)
        file.seek(TORN_BYTE)
        file.write(bytes([old[0] ^ 0xFF]))


def is_sound(path: Path) -> bool:
    """Tell whether a filesystem is sound, as the machine does after a cut."""
    command = [*CHECK["ext4"], str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("options", cuts.GEOMETRIES["ext4"])
@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_torn_superblock_is_mended_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, is_damaged: bool
) -> None:
    path = image(tmp_path, options)
    monkeypatch.setattr(cuts, "NODE", path)
    if is_damaged:
        tool("debugfs", "-w", "-R", "clri file", str(path))
    assert not cuts.mend_superblock("ext4")
    tear(path)
    assert not is_sound(path)
    assert not cuts.mend_superblock("xfs")
    assert cuts.mend_superblock("ext4")
    assert is_sound(path) == (not is_damaged)
