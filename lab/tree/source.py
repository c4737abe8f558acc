# SPDX-License-Identifier: GPL-2.0
"""Kernel source trees: the newest packaged one of a series, or one that the user names."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.util.apt import Apt, reachable
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import cache_dir

SUITE = "trixie-backports"
STAMP = ".pwb-source.json"
#: The kernel series that is meant unless another one is asked for.
SERIES = "7.3"
#: The oldest one that the change is meant for.
OLDEST = "7.2"

# What is fetched and what can be done instead, for errors.
_WHAT = ("the kernel source", "name a tree of your own")
_MARKS = ("fs/fs-writeback.c", "mm/backing-dev.c")
_SERIES = re.compile(r"^\d+\.\d+$")


@dataclass(frozen=True)
class Source:
    """A pristine kernel tree.

    Attributes:
        path: the tree; nothing may write to it.
        version: version to show, such as ``7.3.4-1~bpo13+1`` for a package or ``7.3.4`` for a user's tree.
        series: kernel series, such as ``7.3``.
        identity: content key, hex.
        is_packaged: whether it is a package's, not a user's tree.
    """

    path: Path
    version: str
    series: str
    identity: str
    is_packaged: bool = True


def fetch(series: str = SERIES) -> Source:
    """Return the packaged kernel source of a series, from the cache or else from the machine's Debian mirror.

    A tree of the series in the cache is used without asking whether there is a newer one.

    Args:
        series: kernel series, such as ``7.3``; the newest point release of it that is packaged is taken.

    Returns:
        The unpacked tree.

    Raises:
        LabError: the series is not packaged, apt or its keyring is missing, or no mirror can be reached.
    """
    home = cache_dir() / "source"
    if found := cached(series):
        return found
    with exclusive(home / f"{series}.lock", f"fetching the kernel source {series}"):
        return cached(series) or _download(home, series)


def packaged() -> list[str]:
    """Return the kernel series that the machine's Debian mirror has, from the oldest one that is meant on.

    Raises:
        LabError: apt or its keyring is missing, or no mirror can be reached.
    """
    home = cache_dir() / "source"
    with exclusive(home / "list.lock", "asking which kernel series are packaged"):
        work = home / "list.partial"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            apt = reachable(work, [SUITE], *_WHAT)
            found = [series for series in _packaged_series(apt) if _numbers(series) >= _numbers(OLDEST)]
            if not found:
                raise LabError(f"{SUITE} has no kernel series from {OLDEST} on: expected one")
            return found
        finally:
            shutil.rmtree(work, ignore_errors=True)


def user_tree(path: Path) -> Source:
    """Return a tree that the user names, after a check that it is Linux and that it was not built in place.

    Args:
        path: the tree; it is read only, never written to.

    Returns:
        The tree, with a content key of its git tree where that is clean, else of its files' sizes and times.

    Raises:
        LabError: there is no such tree, it is not Linux, or it holds a build.
    """
    if not path.is_dir():
        raise LabError(f"kernel tree {path} is not a directory: name the top of a Linux source tree")
    path = path.resolve()
    version = _version_of(path)
    if version is None or not all((path / mark).is_file() for mark in _MARKS):
        raise LabError(
            f"{path} is not a Linux tree: expected a Makefile with VERSION and PATCHLEVEL, "
            f"{' and '.join(_MARKS)} in it"
        )
    if (path / ".config").exists() or (path / "include" / "config").exists():
        raise LabError(
            f"{path} holds a build: expected a clean source tree, run 'make mrproper' in it or name another"
        )
    series = ".".join(version.split(".")[:2])
    return Source(path, version, series, _git_identity(path) or _file_identity(path), is_packaged=False)


def _version_of(path: Path) -> str | None:
    try:
        head = (path / "Makefile").read_text(errors="replace")[:4096]
    except OSError:
        return None
    names = "VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION"
    found: dict[str, str] = dict(re.findall(rf"^({names})[ \t]*=[ \t]*(\S*)", head, re.MULTILINE))
    if not (found.get("VERSION", "").isdigit() and found.get("PATCHLEVEL", "").isdigit()):
        return None
    numbers = [found["VERSION"], found["PATCHLEVEL"], found.get("SUBLEVEL", "")]
    return ".".join(number for number in numbers if number) + found.get("EXTRAVERSION", "")


def _git_identity(path: Path) -> str | None:
    """Return the tree id of a git work tree that holds what is committed and nothing else."""
    if not (path / ".git").exists():
        return None
    # Without optional locks: git status would write a refreshed index into the user's tree.
    git = ["git", "--no-optional-locks", "-C", str(path)]
    try:
        status = subprocess.run(
            [*git, "status", "--porcelain", "--ignored"], capture_output=True, text=True, check=True
        )
        tree = subprocess.run([*git, "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return None if status.stdout else str(tree.stdout.strip())


def _file_identity(path: Path) -> str:
    entries = []
    for root, directories, names in os.walk(path):
        if ".git" in directories:
            directories.remove(".git")
        for name in names:
            file = os.path.join(root, name)
            stat = os.lstat(file)
            entries.append(f"{os.path.relpath(file, path)}\0{stat.st_size}\0{stat.st_mtime_ns}\n")
    return _hash("".join(sorted(entries)))


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def cached(series: str) -> Source | None:
    """Return the newest source of a series that was fetched before; None: there is none.

    Raises:
        LabError: that is not what series are called.
    """
    if not _SERIES.match(series):
        raise LabError(f"{series!r} is not a kernel series: expected two numbers such as 7.3")
    home = cache_dir() / "source"
    trees = [tree for tree in home.glob(f"linux-{series}-*") if (tree / STAMP).is_file()]
    if not trees:
        return None
    newest = max(trees, key=lambda tree: (tree / STAMP).stat().st_mtime_ns)
    stamp = json.loads((newest / STAMP).read_text())
    return Source(newest, stamp["version"], series, _hash(f"linux-source-{series} {stamp['version']}"))


def _download(home: Path, series: str) -> Source:
    work = home / f"{series}.partial"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        apt = reachable(work, [SUITE], *_WHAT)
        package = f"linux-source-{series}"
        version = apt.version(package)
        if version is None:
            packaged = ", ".join(_packaged_series(apt)) or "none"
            raise LabError(f"kernel series {series} is not packaged in {SUITE}: expected one of {packaged}")
        return _unpack(home, work, apt.download(package), series, version)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(home: Path, work: Path, deb: Path, series: str, version: str) -> Source:
    _run(["dpkg-deb", "-x", str(deb), str(work / "deb")], "unpacking the kernel package")
    archives = list((work / "deb" / "usr" / "src").glob(f"linux-source-{series}.tar*"))
    if not archives:
        raise LabError(
            f"the package linux-source-{series} {version} holds no source archive: name a tree of your own"
        )
    tree = work / "tree"
    tree.mkdir()
    _run(
        ["tar", "-xf", str(archives[0]), "--strip-components=1", "-C", str(tree)],
        "unpacking the kernel source",
    )
    (tree / STAMP).write_text(json.dumps({"package": f"linux-source-{series}", "version": version}))
    place = home / f"linux-{series}-{version}"
    shutil.rmtree(place, ignore_errors=True)
    tree.rename(place)
    return Source(place, version, series, _hash(f"linux-source-{series} {version}"))


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LabError(f"{what} failed, expected 3 GiB of room in the cache: {last}")


def _packaged_series(apt: Apt) -> list[str]:
    """Return the kernel series whose source is packaged, in order."""
    names = apt.names(r"^linux-source-[0-9]+\.[0-9]+$")
    series = [name.removeprefix("linux-source-") for name in names]
    return sorted(series, key=_numbers)


def _numbers(series: str) -> list[int]:
    return [int(number) for number in series.split(".")]
