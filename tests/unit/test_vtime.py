# SPDX-License-Identifier: GPL-2.0
"""How virtual time is compiled into the cache, and what is said when QEMU does not load it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.machine import vtime
from lab.machine.qemu import Qemu
from lab.util.errors import LabError

# Loads what it is given, unless there is a file "says" beside it.
QEMU = """#!/bin/sh
here=$(dirname "$0")
echo "$@" >>"$here/log"
[ -e "$here/says" ] && { cat "$here/says" >&2; exit 1; }
cat
"""


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Qemu:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "qemu").write_text(QEMU)
    (tmp_path / "qemu").chmod(0o755)
    return Qemu(tmp_path / "qemu", "10.0.2")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "one.c").write_text('#include "two.h"\nint one(void) { return TWO; }\n')
    (folder / "two.h").write_text("#define TWO 2\n")
    return folder


def trials(qemu: Qemu) -> int:
    return len((qemu.path.parent / "log").read_text().splitlines())


def test_it_is_compiled_and_tried_once(qemu: Qemu, sources: Path) -> None:
    made = vtime.build(qemu, sources)
    assert made.read_bytes()[:4] == b"\x7fELF"
    assert vtime.build(qemu, sources) == made
    assert trials(qemu) == 1
    assert "-plugin" in (qemu.path.parent / "log").read_text()


@pytest.mark.parametrize("name", ["one.c", "two.h"])
def test_other_sources_are_another_object(qemu: Qemu, sources: Path, name: str) -> None:
    made = vtime.build(qemu, sources)
    with (sources / name).open("a") as file:
        file.write("\n")
    assert vtime.build(qemu, sources) != made
    assert made.is_file()


def test_other_qemu_is_tried_too(qemu: Qemu, sources: Path) -> None:
    vtime.build(qemu, sources)
    vtime.build(Qemu(qemu.path, "11.0.0"), sources)
    assert trials(qemu) == 2


def test_plugin_that_qemu_does_not_load_is_refused_each_time(qemu: Qemu, sources: Path) -> None:
    (qemu.path.parent / "says").write_text("plugin: could not load\n")
    for _ in range(2):
        with pytest.raises(
            LabError, match="does not load the plugin for virtual time, it says: plugin: could"
        ):
            vtime.build(qemu, sources)
    (qemu.path.parent / "says").unlink()
    assert vtime.build(qemu, sources).is_file()


def test_compilers_complaint_is_shown(qemu: Qemu, sources: Path) -> None:
    (sources / "one.c").write_text("int one(void) { return }\n")
    with pytest.raises(LabError, match=r"compiling virtual time failed; gcc says:\n.*one.c"):
        vtime.build(qemu, sources)


def test_machine_without_a_compiler(qemu: Qemu, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabError, match="gcc is missing, virtual time needs it"):
        vtime.build(qemu, sources)
