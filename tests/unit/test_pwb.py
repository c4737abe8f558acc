# SPDX-License-Identifier: GPL-2.0
"""The program at the root: it makes its environment once, whole or not at all, and leaves the clone alone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.util.paths import REPO

# Stands for the lab: tells where it runs, in which environment, with what arguments.
FAKE_LAB = "import os, sys\nprint(os.getcwd(), sys.prefix, *sys.argv[1:], sep='\\n')\n"


def make_clone(folder: Path) -> Path:
    (folder / "lab").mkdir(parents=True)
    (folder / "lab" / "__init__.py").touch()
    (folder / "lab" / "__main__.py").write_text(FAKE_LAB)
    (folder / "requirements.lock").write_text("# Nothing to install.\n")
    shutil.copy(REPO / "pwb", folder)
    return folder


def environment(**changes: str) -> dict[str, str]:
    own = ("PWB_CACHE", "XDG_CACHE_HOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX")
    return {name: value for name, value in os.environ.items() if name not in own} | changes


def start(program: Path | str, *arguments: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [program, *arguments],
        cwd=cwd,
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(program: Path | str, *arguments: str, cwd: Path, **env: str) -> tuple[int, list[str], str]:
    with start(program, *arguments, cwd=cwd, **env) as child:
        out, err = child.communicate()
    return child.returncode, out.splitlines(), err


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clone(tmp_path_factory.mktemp("with space") / "clone")


@pytest.fixture(scope="module")
def cache(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the environment where a half-made one lies, by two runs at once."""
    cache = tmp_path_factory.mktemp("cache")
    # No file may grow: making the environment fails as on a full disk, and leaves only its lock file.
    limited = f"ulimit -f 0; exec {shlex.quote(str(clone / 'pwb'))}"
    status, out, err = finish("/bin/bash", "-c", limited, cwd=cache, PWB_CACHE=str(cache))
    assert (status, out) == (1, [])
    assert "pwb: error: cannot make the Python environment" in err
    (lock,) = (path for path in cache.glob("venv/*") if path.suffix != ".log")
    junk = lock.with_suffix("") / "bin" / "python"
    junk.parent.mkdir(parents=True)
    junk.write_text("#!/bin/false\n")
    junk.chmod(0o755)

    runs = [start(clone / "pwb", cwd=cache, PWB_CACHE=str(cache)) for _ in range(2)]
    outputs = [child.communicate() for child in runs]
    assert [child.returncode for child in runs] == [0, 0]
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == ""
    return cache


def test_any_folder_a_link_and_arguments(clone: Path, cache: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(clone / "pwb")
    before = sorted(clone.rglob("*"))
    status, out, err = finish(link, "a b", "--", "-c", cwd=tmp_path, PWB_CACHE=str(cache))
    assert (status, err) == (0, "")
    assert out[0] == str(tmp_path)
    assert Path(out[1]).parent == cache / "venv"
    assert out[2:] == ["a b", "--", "-c"]
    assert sorted(clone.rglob("*")) == before


@pytest.mark.parametrize("path", ["", "/usr:."])
def test_cache_may_be_relative(clone: Path, cache: Path, path: str) -> None:
    _, out, _ = finish(clone / "pwb", cwd=cache.parent, PWB_CACHE=cache.name, CDPATH=path)
    assert Path(out[1]).parent == cache / "venv"


def test_whole_environment_is_kept(clone: Path, cache: Path) -> None:
    stamp = next(cache.glob("venv/*/.complete"))
    made_ns = stamp.stat().st_mtime_ns
    assert finish(clone / "pwb", cwd=cache, PWB_CACHE=str(cache))[0] == 0
    assert stamp.stat().st_mtime_ns == made_ns


def test_cache_that_cannot_be(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, _, err = finish(clone / "pwb", cwd=tmp_path, PWB_CACHE=str(tmp_path / "file"))
    assert status == 1
    assert err.startswith("pwb: error: cannot make the cache folder ")
    assert len(err.splitlines()) == 1
