# SPDX-License-Identifier: GPL-2.0
"""The Debian server's drive: what it needs of this machine, and the check of what is on it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.machine import debian
from lab.machine.debian import Disk
from lab.util import host
from lab.util.errors import LabError
from lab.util.host import Need


def test_room_and_memory_are_asked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def check(need: Need) -> None:
        asked.append(need)
        raise LabError("enough")

    monkeypatch.setattr(host, "check", check)
    with pytest.raises(LabError, match="enough"):
        debian.make(tmp_path)
    [need] = asked
    assert need.disk_bytes > debian.DISK_MIB << 19
    assert need.memory_bytes > debian.MEMORY_MIB << 20
    assert [*tmp_path.iterdir()] == []


def test_a_filesystem_with_errors_is_told_and_not_mended(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", tmp_path / "vmlinuz", tmp_path / "initrd")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("of the server")
    offset = debian._BEFORE_PARTITION_KIB << 10
    with disk.image.open("wb") as file:
        file.truncate(offset + (8 << 20))
    made = ["/sbin/mke2fs", "-q", "-t", "ext4", "-d", str(tree), "-E", f"offset={offset}"]
    subprocess.run([*made, str(disk.image), "8M"], check=True)
    debian.check(disk)
    broken = ["/sbin/debugfs", "-w", "-R", "clri /file", f"{disk.image}?offset={offset}"]
    subprocess.run(broken, check=True, capture_output=True)
    before = disk.image.read_bytes()
    with pytest.raises(LabError, match=r"(?s)e2fsck failed with status 4: .*Entry 'file' in / .*errors"):
        debian.check(disk)
    assert disk.image.read_bytes() == before
