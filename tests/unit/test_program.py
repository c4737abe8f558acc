# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.util.errors import LabError
from lab.util.program import compiled


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))


def made_up(folder: Path, said: str) -> Path:
    source = folder / "hello.c"
    source.write_text('#include <stdio.h>\n#include "said.h"\nint main(void) { puts(SAID); return 0; }\n')
    (folder / "said.h").write_text(f'#define SAID "{said}"\n')
    return source


def said_by(program: Path) -> str:
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def test_program_is_made_once(tmp_path: Path) -> None:
    source = made_up(tmp_path, "one")
    first = compiled(source)
    assert said_by(first) == "one\n"
    before = first.stat()
    assert compiled(source).stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in first.parent.iterdir()] == ["hello"]


def test_header_is_part_of_it(tmp_path: Path) -> None:
    first = compiled(made_up(tmp_path, "one"))
    second = compiled(made_up(tmp_path, "two"))
    assert second != first
    assert said_by(second) == "two\n"


def test_what_gcc_refuses(tmp_path: Path) -> None:
    source = tmp_path / "bad.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(LabError, match=r"gcc refuses a program .*bad\.c:1:\d+: error: .*nothing"):
        compiled(source)


def test_no_gcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"gcc is missing, hello\.c is compiled with it"):
        compiled(made_up(tmp_path, "one"))
