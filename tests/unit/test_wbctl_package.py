# SPDX-License-Identifier: GPL-2.0
"""The Debian package of wbctl, built for real, and what is said when it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.package import folder, lintian, wbctl
from lab.util import host
from lab.util.errors import LabError

FILES = [
    "/etc/wbctl.conf",
    "/usr/lib/udev/rules.d/90-wbctl.rules",
    "/usr/sbin/wbctl",
    "/usr/share/bash-completion/completions/wbctl",
    "/usr/share/doc/wbctl/changelog.gz",
    "/usr/share/doc/wbctl/copyright",
    "/usr/share/man/man8/wbctl.8.gz",
]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wbctl.make(tmp_path_factory.mktemp("packages"))


def told(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """Put a stand-in for a program first in PATH."""
    (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_the_package_has_all_that_belongs_to_wbctl(package: Path) -> None:
    listed = [line.split()[-1].removeprefix(".") for line in told("dpkg-deb", "-c", str(package))]
    assert sorted(name for name in listed if not name.endswith("/")) == FILES


def test_the_same_input_gives_the_same_package(package: Path, tmp_path: Path) -> None:
    assert wbctl.make(tmp_path).read_bytes() == package.read_bytes()


def test_a_change_makes_a_higher_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "check", lambda _: None)
    pack = "touch ../wbctl_$(sed -n '1s/.*(\\(.*\\)).*/\\1/p' debian/changelog)_amd64.deb"
    fake(tmp_path, monkeypatch, "dpkg-buildpackage", pack)
    tree, packages = tmp_path / "tree", tmp_path / "packages"
    shutil.copytree(wbctl._TREE, tree)
    packages.mkdir()
    monkeypatch.setattr(wbctl, "_TREE", tree)
    first = wbctl.make(packages)
    assert wbctl.make(packages) == first
    page = tree / "wbctl.8"
    later = max(path.stat().st_mtime for path in tree.rglob("*")) + 3600
    os.utime(page, (later, later))
    second = wbctl.make(packages)
    versions = [path.name.split("_")[1] for path in (first, second)]
    told("dpkg", "--compare-versions", versions[1], "gt", versions[0])
    told("dpkg", "--compare-versions", versions[0], "gt", "1.0")
    assert [*packages.glob("*.deb")] == [second]


def test_it_is_noted_what_it_was_made_of(package: Path) -> None:
    [known] = folder.ours([package])
    assert known.change is None and known.commit


def test_what_is_pinned_survives_an_upgrade(package: Path) -> None:
    assert told("dpkg-deb", "-I", str(package), "conffiles") == ["/etc/wbctl.conf"]


def test_lintian_has_no_complaint(package: Path) -> None:
    lintian.check(package)


def test_a_failure_shows_the_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "check", lambda _: None)
    fake(tmp_path, monkeypatch, "dpkg-buildpackage", "seq 20; echo 'no dh' >&2; exit 2")
    with pytest.raises(LabError, match=r"cannot be built, mend tools/wbctl; .*:\n  14\n(.*\n)*  no dh"):
        wbctl.make(tmp_path)


def test_complaints_of_lintian_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "lintian", 'echo "E: wbctl: $*"; exit 2')
    with pytest.raises(LabError, match=r"(?s)it says:\n  E: wbctl: .*--suppress-tags=a,b x\.deb"):
        lintian.check(Path("x.deb"), ["a", "b"])


def test_no_complaint_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, monkeypatch, "lintian", "echo 'N: nothing'")
    lintian.check(Path("x.deb"))
