# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.tree.source import fetch, packaged, user_tree
from lab.util import apt as apts
from lab.util.errors import LabError
from lab.util.lock import exclusive
from tests.madeup import linux_tree

# Stands for apt-get: archives "bad" and "good", of which only "good" has the suite; one package in it.
APT_GET = r"""#!/bin/sh
echo "$@" >>"$FAKE/log"
for argument; do
	case $argument in
	-oDir::Etc::SourceList=*) list=${argument#*=} ;;
	esac
done
case "$*" in
*indextargets*) cat "$FAKE/uris" ;;
*update*)
	[ -e "$FAKE/says" ] && { cat "$FAKE/says" >&2; exit 100; }
	grep -q mirror.example/good "$list" && exit 0
	echo "E: The repository 'http://mirror.example/bad' does not have a Release file." >&2
	exit 100 ;;
*download*) cp "$FAKE/package.deb" linux-source.deb ;;
esac
"""
APT_CACHE = r"""#!/bin/sh
case "$*" in
*show*linux-source-7.3) echo "Package: linux-source-7.3"; echo "Version: 7.3.4-1~bpo13+1" ;;
*show*) exit 100 ;;
*search*) printf 'linux-source-%s - Linux\n' 7.3 7.12 7.2 ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PWB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "source"


@pytest.fixture
def apt(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a stand-in for apt first in PATH; return the folder that steers it."""
    fake = tmp_path / "fake"
    tools = fake / "bin"
    tools.mkdir(parents=True)
    for name, text in (("apt-get", APT_GET), ("apt-cache", APT_CACHE)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (fake / "uris").write_text("http://mirror.example/bad-security\nhttp://mirror.example/good\n")
    package = fake / "package"
    linux_tree(package / "usr/src/linux-source-7.3")
    (package / "DEBIAN").mkdir()
    control = "Package: linux-source-7.3\nVersion: 7.3.4-1~bpo13+1\nArchitecture: all\n"
    (package / "DEBIAN/control").write_text(control + "Maintainer: t <t@t>\nDescription: t\n")
    tar = ["tar", "-cJf", "linux-source-7.3.tar.xz", "--remove-files", "linux-source-7.3"]
    subprocess.run(tar, cwd=package / "usr/src", check=True)
    subprocess.run(["dpkg-deb", "--build", package, fake / "package.deb"], check=True, capture_output=True)
    keyring = fake / "keyring.gpg"
    keyring.touch()
    monkeypatch.setattr(apts, "KEYRING", keyring)
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return fake


def leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.endswith(".lock"))


def test_fetch_unpacks_the_newest_package(apt: Path, cache: Path) -> None:
    fetched = fetch("7.3")
    assert fetched.path == cache / "linux-7.3-7.3.4-1~bpo13+1"
    assert (fetched.version, fetched.series) == ("7.3.4-1~bpo13+1", "7.3")
    assert (fetched.path / "fs/fs-writeback.c").is_file()
    assert leftovers(cache) == [fetched.path.name]


def test_second_fetch_needs_no_network(apt: Path, cache: Path) -> None:
    first = fetch("7.3")
    (apt / "log").unlink()
    assert fetch("7.3") == first
    assert not (apt / "log").exists()


def test_mirror_is_not_kept(apt: Path, cache: Path) -> None:
    fetch("7.3")
    for path in cache.rglob("*"):
        assert "mirror.example" not in path.name
        assert path.is_dir() or b"mirror.example" not in path.read_bytes()


def test_apt_of_the_machine_is_left_alone(apt: Path, cache: Path) -> None:
    fetch("7.3")
    calls = [line for line in (apt / "log").read_text().splitlines() if "indextargets" not in line]
    assert calls
    # What apt's own configuration has it run is left out: see what a real apt makes of the file.
    hooks = next(word[3:] for word in calls[0].split() if word.startswith("-c="))
    assert all(f"-c={hooks}" in call for call in calls)
    for option in ("Dir::Etc::SourceParts=-", "Dir::State=", "Dir::Cache=", "APT::Sandbox::User="):
        assert all(f"-o{option}" in call for call in calls)


def test_hooks_of_the_machine_are_not_run(tmp_path: Path) -> None:
    apts.Apt(tmp_path, "http://mirror.example", ["trixie"], "")
    own = tmp_path / "own.conf"
    own.write_text("".join(f'{hook} {{ "false"; }};\n' for hook in apts.HOOKS))
    command = ["apt-config", f"-c={own}", f"-c={tmp_path / 'hooks.conf'}", "dump"]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [
        line for line in dumped.splitlines() if line.startswith("APT::Update::") and "::" in line[13:]
    ] == []


def test_half_a_tree_is_not_used(apt: Path, cache: Path) -> None:
    broken = cache / "linux-7.3-7.3.4-1~bpo13+1"
    (broken / "fs").mkdir(parents=True)
    (cache / "7.3.partial").mkdir()
    assert (fetch("7.3").path / "mm/backing-dev.c").is_file()
    assert leftovers(cache) == [broken.name]


def test_packaged_series_are_those_from_the_oldest_that_is_meant(apt: Path, cache: Path) -> None:
    assert packaged() == ["7.2", "7.3", "7.12"]
    assert not list((cache / "source").glob("*.partial"))


def test_series_that_is_not_packaged_names_those_that_are(apt: Path, cache: Path) -> None:
    with pytest.raises(LabError, match=r"kernel series 9.9 is not packaged .*expected one of 7.2, 7.3, 7.12"):
        fetch("9.9")
    assert leftovers(cache) == []


@pytest.mark.parametrize("series", ["7", "7.3.4", "latest", "../7.3"])
def test_not_a_series(cache: Path, series: str) -> None:
    with pytest.raises(LabError, match="is not a kernel series: expected two numbers"):
        fetch(series)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("Temporary failure resolving 'mirror.example'", "no Debian mirror can be reached"),
        (
            "Could not connect to mirror.example:80 (1.2.3.4). - connect (111: refused)",
            "no Debian mirror can be",
        ),
        (
            "The following signatures couldn't be verified: NO_PUBKEY 0E98404D386FA1D9",
            "upgrade the package debian-ar",
        ),
        (
            "The repository 'http://mirror.example/x y Release' does not have a Release file.",
            "none of the 2 archives",
        ),
    ],
)
def test_failed_update_is_explained_without_the_mirror(apt: Path, cache: Path, says: str, said: str) -> None:
    (apt / "says").write_text(f"E: {says}\n")
    with pytest.raises(LabError, match=said) as caught:
        fetch("7.3")
    assert "mirror.example" not in str(caught.value)
    assert leftovers(cache) == []


def test_machine_without_archives(apt: Path, cache: Path) -> None:
    (apt / "uris").write_text("cdrom:[Debian]/\n")
    with pytest.raises(LabError, match="names no archive"):
        fetch("7.3")


def test_missing_keyring_names_its_package(apt: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apts, "KEYRING", apt / "gone.gpg")
    with pytest.raises(LabError, match="install debian-archive-keyring"):
        fetch("7.3")


def test_machine_without_apt(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.util.apt.shutil.which", lambda _: None)
    with pytest.raises(LabError, match="apt-get is missing"):
        fetch("7.3")


def test_broken_package_leaves_nothing(apt: Path, cache: Path) -> None:
    (apt / "package.deb").write_text("not a package")
    with pytest.raises(LabError, match="unpacking the kernel package failed"):
        fetch("7.3")
    assert leftovers(cache) == []


def test_two_fetches_at_once_are_refused(apt: Path, cache: Path) -> None:
    with exclusive(cache / "7.3.lock", "fetching"), pytest.raises(LabError, match="two runs at once"):
        fetch("7.3")


def test_user_tree_is_taken(tmp_path: Path) -> None:
    tree = user_tree(linux_tree(tmp_path / "linux"))
    assert (tree.path, tree.version, tree.series) == (tmp_path / "linux", "7.3.4", "7.3")


def test_user_tree_shows_its_extra_version(tmp_path: Path) -> None:
    root = linux_tree(tmp_path / "linux")
    (root / "Makefile").write_text("VERSION = 7\nPATCHLEVEL = 4\nSUBLEVEL = 0\nEXTRAVERSION = -rc2\n")
    assert (user_tree(root).version, user_tree(root).series) == ("7.4.0-rc2", "7.4")


@pytest.mark.parametrize("gone", ["Makefile", "fs/fs-writeback.c", "mm/backing-dev.c"])
def test_other_tree_is_refused(tmp_path: Path, gone: str) -> None:
    (linux_tree(tmp_path / "linux") / gone).unlink()
    with pytest.raises(LabError, match="is not a Linux tree"):
        user_tree(tmp_path / "linux")


def test_makefile_of_another_project_is_refused(tmp_path: Path) -> None:
    (linux_tree(tmp_path / "linux") / "Makefile").write_text("VERSION = next\nall:\n")
    with pytest.raises(LabError, match="is not a Linux tree"):
        user_tree(tmp_path / "linux")


def test_missing_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="is not a directory"):
        user_tree(tmp_path / "gone")


def test_tree_built_in_place_is_refused(tmp_path: Path) -> None:
    (linux_tree(tmp_path / "linux") / ".config").touch()
    with pytest.raises(LabError, match="make mrproper"):
        user_tree(tmp_path / "linux")


def commit(root: Path) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)


def test_identity_follows_the_content(tmp_path: Path) -> None:
    root = linux_tree(tmp_path / "linux")
    before = user_tree(root).identity
    assert user_tree(root).identity == before
    (root / "fs/other.c").write_text("int another;\n")
    assert user_tree(root).identity != before


def test_clean_git_tree_is_known_by_its_tree_id(tmp_path: Path) -> None:
    one, two = linux_tree(tmp_path / "one"), linux_tree(tmp_path / "two")
    commit(one)
    commit(two)
    assert user_tree(one).identity == user_tree(two).identity


@pytest.mark.parametrize("name", ["fs/other.c", "fs/new.c", "fs/ignored.o"])
def test_change_in_a_git_tree_is_seen(tmp_path: Path, name: str) -> None:
    root = linux_tree(tmp_path / "linux")
    (root / ".gitignore").write_text("*.o\n")
    commit(root)
    before = user_tree(root).identity
    (root / name).write_text("changed")
    assert user_tree(root).identity != before


def test_user_tree_is_not_written_to(tmp_path: Path) -> None:
    root = linux_tree(tmp_path / "linux")
    commit(root)
    # A stale time in git's index makes a plain git status write the index.
    os.utime(root / "fs/other.c", ns=(1, 1))
    before = {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in root.rglob("*")}
    user_tree(root)
    assert {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in root.rglob("*")} == before
