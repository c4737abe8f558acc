# SPDX-License-Identifier: GPL-2.0
"""A private apt: fetches Debian packages into a folder as any user; the machine's own apt is left alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from lab.util.errors import LabError

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
STATUS = Path("/var/lib/dpkg/status")
#: What an administrator, or a package, has apt run about its lists.
HOOKS = tuple(f"APT::Update::{when}" for when in ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"))

_URL = re.compile(r"[a-z+]+:/\S+")
_UNREACHABLE = re.compile(r"resolv|connect|network|timed? ?out|unreachable", re.IGNORECASE)


class Apt:
    """One archive, with its own sources, lists and cache, and the machine's proxies and keys."""

    def __init__(self, work: Path, uri: str, suites: Sequence[str], instead: str) -> None:
        """Take what :func:`reachable` was given, and the archive's address."""
        self._work = work
        self._uri = uri
        self._suites = suites
        self._instead = instead
        for part in ("lists/partial", "cache/archives/partial"):
            (work / part).mkdir(parents=True, exist_ok=True)
        (work / "status").touch()
        (work / "sources.list").write_text("".join(f"{self.source(suite)}\n" for suite in suites))
        # What the machine has done about its own lists is not for ours.
        (work / "hooks.conf").write_text("".join(f"#clear {hook};\n" for hook in HOOKS))
        self._options = {
            "Dir::Etc::SourceList": work / "sources.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::Etc::Preferences": "-",
            "Dir::Etc::PreferencesParts": "-",
            "Dir::State": work,
            "Dir::State::Lists": work / "lists",
            "Dir::State::status": work / "status",
            "Dir::Cache": work / "cache",
            # The sandbox user could not write to a cache below a home directory.
            "APT::Sandbox::User": "",
            "APT::Update::Error-Mode": "any",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Acquire::http::Timeout": "20",
        }

    def _apt(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = [f"-c={self._work / 'hooks.conf'}"]
        options += [f"-o{key}={value}" for key, value in self._options.items()]
        return subprocess.run(
            [program, *options, *arguments],
            cwd=self._work,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )

    def source(self, suite: str) -> str:
        """Return the line of a sources.list for a suite."""
        return f"deb [signed-by={KEYRING}] {self._uri} {suite} main"

    def update(self) -> str | None:
        """Read the suites' package lists; return why that failed, or None."""
        done = self._apt("apt-get", "update", "-q")
        return None if done.returncode == 0 else done.stderr

    def version(self, package: str) -> str | None:
        """Return the newest version of a package, None when there is no such package."""
        done = self._apt("apt-cache", "show", "--no-all-versions", package)
        found = re.search(r"^Version: (\S+)$", done.stdout, re.MULTILINE)
        return found[1] if found else None

    def names(self, pattern: str) -> list[str]:
        """Return the names of the packages that match a regular expression."""
        done = self._apt("apt-cache", "search", "--names-only", pattern)
        return [line.partition(" ")[0] for line in done.stdout.splitlines()]

    def download(self, package: str) -> Path:
        """Download one package; return its file.

        Raises:
            LabError: it could not be downloaded.
        """
        done = self._apt("apt-get", "download", "-q", package)
        debs = list(self._work.glob("*.deb"))
        if done.returncode != 0 or not debs:
            raise self._failed(package, done.stderr)
        return debs[0]

    def download_missing(self, package: str, absent: str) -> list[Path]:
        """Download a package of the last suite, and all it depends on that this machine lacks.

        What the machine has is asked of dpkg's own records, not assumed: taking everything would bring
        a second C library, which does not fit the machine's program loader.

        Args:
            package: its name.
            absent: regular expression of package names to download even where the machine has them,
                because they must lie beside the others.

        Returns:
            The files.

        Raises:
            LabError: they could not be downloaded.
        """
        known = STATUS.read_text(encoding="utf-8", errors="replace").split("\n\n")
        kept = [entry for entry in known if not re.match(rf"\s*Package: ({absent})\n", entry)]
        (self._work / "status").write_text("\n\n".join(kept), encoding="utf-8")
        done = self._apt(
            *("apt-get", "install", "-q", "-y", "--download-only", "--no-install-recommends"),
            *("-t", self._suites[-1], package),
        )
        debs = list((self._work / "cache" / "archives").glob("*.deb"))
        if done.returncode != 0 or not debs:
            raise self._failed(package, done.stderr)
        return debs

    def _failed(self, package: str, said: str) -> LabError:
        return LabError(
            f"downloading {package} failed, try again or {self._instead}; "
            f"apt says: {_without_mirror(said, [self._uri])}"
        )


def reachable(work: Path, suites: Sequence[str], what: str, instead: str) -> Apt:
    """Try the archives that the machine's own apt uses until one has the suites.

    Args:
        work: folder for all that apt writes.
        suites: such as ``["bookworm", "bookworm-backports"]``.
        what: what is being fetched, such as ``"the kernel source"``, for errors.
        instead: what the user can do instead, such as ``"name a tree of your own"``, for errors.

    Returns:
        An apt that has read the suites' lists.

    Raises:
        LabError: apt or its keyring is missing, or no archive can be reached that has the suites.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise LabError(f"apt-get is missing, fetching {what} needs it: {instead} instead")
    if not KEYRING.is_file():
        raise LabError(f"{KEYRING} is missing, apt checks {what} with it: install debian-archive-keyring")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    uris = [uri for uri in dict.fromkeys(listed.stdout.split()) if not uri.startswith("cdrom:")]
    if not uris:
        raise LabError(
            "this machine's apt names no archive to fetch from: "
            "add a Debian mirror to its sources and run apt-get update"
        )
    # A security archive has no backports: asked last.
    uris.sort(key=lambda uri: "security" in uri)
    failures = []
    for number, uri in enumerate(uris):
        place = work / f"apt-{number}"
        place.mkdir()
        apt = Apt(place, uri, suites, instead)
        failure = apt.update()
        if failure is None:
            return apt
        failures.append(failure)
    said = "\n".join(failures)
    names = " and ".join(suites)
    if "NO_PUBKEY" in said:
        raise LabError(
            f"{KEYRING} does not know the key of {names}: upgrade the package debian-archive-keyring"
        )
    if _UNREACHABLE.search(said):
        raise LabError(
            f"no Debian mirror can be reached (of {len(uris)} that apt knows) to fetch {what}: "
            f"check the network, or {instead}; apt says: {_without_mirror(said, uris)}"
        )
    raise LabError(
        f"none of the {len(uris)} archives that apt knows has {names}: "
        f"add a Debian mirror to apt's sources, or {instead}; "
        f"apt says: {_without_mirror(said, uris)}"
    )


def unpack(packages: Sequence[Path], tree: Path, what: str, mib: int) -> None:
    """Unpack packages into one folder; nothing of them is run.

    Args:
        packages: files.
        tree: the folder.
        what: what they are together, for errors.
        mib: room that they need, for errors.

    Raises:
        LabError: there is no room, or a package is broken.
    """
    for package in packages:
        done = subprocess.run(
            ["dpkg-deb", "-x", str(package), str(tree)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise LabError(f"unpacking {what} failed, expected {mib} MiB of room in the cache: {last}")


def _without_mirror(said: str, uris: list[str]) -> str:
    """Return apt's first complaint without host names: where the mirror is, is the machine's business."""
    lines = said.splitlines()
    marked = [line for mark in ("E:", "Err", "W:") for line in lines if line.startswith(mark)]
    complaint = marked[0] if marked else "nothing"
    masked = _URL.sub("(mirror)", complaint.removeprefix("E:").strip())
    for host in {urlsplit(uri).hostname for uri in uris} - {None, ""}:
        masked = masked.replace(str(host), "(mirror)")
    return masked
