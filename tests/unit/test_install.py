# SPDX-License-Identifier: GPL-2.0
"""setup/install.sh with stand-ins for apt: what is there stays, and what is missing is asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.util.paths import REPO

# A package that is there twice, for two architectures, answers on two lines.
DPKG_QUERY = """#!/bin/sh
for name; do :; done
grep -qx "$name" "$FAKE/there" || exit 1
for _ in 1 2; do printf "$3" | sed 's/[$]{db:Status-Status}/installed/'; done
"""
APT_GET = """#!/bin/sh
echo "$*" >> "$FAKE/log"
"""


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    for name, text in (("dpkg-query", DPKG_QUERY), ("apt-get", APT_GET), ("sudo", '#!/bin/sh\nexec "$@"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "log").touch()
    return tmp_path


def calls(fake: Path, there: list[str]) -> list[str]:
    """Run it where these packages are installed, and return how it called apt-get."""
    (fake / "there").write_text("".join(f"{name}\n" for name in there))
    env = os.environ | {"FAKE": str(fake), "PATH": f"{fake}:{os.environ['PATH']}"}
    subprocess.run([REPO / "setup" / "install.sh"], env=env, check=True, stdout=subprocess.DEVNULL)
    return (fake / "log").read_text().splitlines()


def test_only_what_is_missing_is_installed_and_nothing_removed(fake: Path) -> None:
    lines = (REPO / "setup" / "packages.txt").read_text().splitlines()
    wanted = [word for line in lines for word in line.partition("#")[0].split()]
    assert calls(fake, wanted) == []
    asked = calls(fake, wanted[1:])
    assert [call.split()[-1] for call in asked] == [wanted[0]] * 2
    assert all("--no-remove" in call.split() for call in asked)
