# SPDX-License-Identifier: GPL-2.0
"""Debian's configuration of a kernel: fetched once, from a made-up archive."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pytest

from lab.package import debian_config
from lab.util.errors import LabError

CONFIG = "CONFIG_CLOUD=y\n"


class Archive:
    """An archive with one package, ``linux-config-7.3``; counts how often it is asked for."""

    def __init__(self, package: Path) -> None:
        self.package = package
        self.asked = 0

    def reachable(self, work: Path, suites: list[str], what: str, instead: str) -> Archive:
        self.asked += 1
        return self

    def version(self, package: str) -> str | None:
        return "7.3.4-1" if package == "linux-config-7.3" else None

    def download(self, package: str) -> Path:
        return self.package


def pack(tmp_path: Path, name: str) -> Path:
    """Make the package, with one file."""
    tree = tmp_path / "tree"
    place = tree / "usr" / "src" / "linux-config-7.3"
    place.mkdir(parents=True)
    (place / name).write_bytes(lzma.compress(CONFIG.encode()))
    (tree / "DEBIAN").mkdir()
    control = (
        "Package: linux-config-7.3\nVersion: 7.3.4-1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    )
    (tree / "DEBIAN" / "control").write_text(control)
    package = tmp_path / "package.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(package)], check=True, capture_output=True)
    return package


def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Archive:
    made = Archive(pack(tmp_path, name))
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(debian_config, "reachable", made.reachable)
    return made


def test_the_configuration_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = archive(tmp_path, monkeypatch, "config.amd64_none_cloud-amd64.xz")
    kept = debian_config.fetch("7.3")
    assert kept.read_text() == CONFIG
    assert debian_config.fetch("7.3") == kept
    assert made.asked == 1
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_series_that_is_not_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(tmp_path, monkeypatch, "config.amd64_none_cloud-amd64.xz")
    with pytest.raises(LabError, match=r"of kernel series 7\.4 is not packaged .* with --series"):
        debian_config.fetch("7.4")


def test_another_architecture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(tmp_path, monkeypatch, "config.arm64_none_cloud-arm64.xz")
    with pytest.raises(LabError, match="make packages of the kernel on an amd64 computer"):
        debian_config.fetch("7.3")
