# SPDX-License-Identifier: GPL-2.0
"""The QEMU of the machine ``smp``: Debian's, unpacked into the cache, or one that the user names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.util.apt import reachable, unpack
from lab.util.errors import LabError
from lab.util.lock import in_turn
from lab.util.paths import cache_dir

# The first whose plugins have what virtual time needs (plugin API 4).
OLDEST_MAJOR = 10
# Debian 12's own QEMU is 7.2; that of its backports runs on every later Debian, too.
SUITES = ["bookworm", "bookworm-backports"]
PACKAGE = "qemu-system-x86"
# Its firmware comes with it, of the version that it was built with.
BESIDE = r"qemu-.*|seabios|ipxe-qemu"
OWN = "PWB_QEMU"
INSTEAD = f"name a QEMU of your own with: export {OWN}=/path/to/qemu-system-x86_64"
# Written last: what has it is whole.
STAMP = ".complete"


@dataclass(frozen=True)
class Qemu:
    """A QEMU for x86-64 that starts and is new enough.

    Attributes:
        path: the executable.
        version: such as ``10.0.2``.
        libraries: folders with the shared libraries that it needs and the machine may lack.
        data: folders with its firmware, where they are not those that it was built for.
    """

    path: Path
    version: str
    libraries: tuple[Path, ...] = ()
    data: tuple[Path, ...] = ()

    def command(self, *preload: Path) -> list[str]:
        """Return the words that start it, to be followed by its arguments.

        Args:
            preload: shared objects for the program loader to put first.
        """
        data = [word for folder in self.data for word in ("-L", str(folder))]
        return [*_command(self.path, self.libraries, preload), *data]


def find() -> Qemu:
    """Return the user's own QEMU, else the one in the cache, else fetch one from the machine's Debian mirror.

    Raises:
        LabError: the user's is missing or too old, or none can be fetched.
    """
    own = os.environ.get(OWN)
    if own:
        return _own(Path(own).absolute())
    home = cache_dir() / "qemu"
    if cached := _cached(home):
        return cached
    with in_turn(home / "lock"):
        return _cached(home) or _download(home)


def _own(path: Path) -> Qemu:
    if not path.is_file():
        raise LabError(f"{OWN} names {path}, and there is no such file: expected qemu-system-x86_64")
    version, said = _version(path, ())
    if version is None:
        raise LabError(f"{OWN} names {path}, which does not start as QEMU does: {said}")
    _check_age(version, f"{OWN} names QEMU {version}")
    return Qemu(path, version)


def _check_age(version: str, what: str) -> None:
    if int(version.split(".", maxsplit=1)[0]) < OLDEST_MAJOR:
        raise LabError(f"{what}, which is too old: expected {OLDEST_MAJOR} or later")


def _cached(home: Path) -> Qemu | None:
    """Return the newest QEMU of the cache that starts."""
    whole = [path.parent for path in home.glob(f"*/{STAMP}")]
    for place in sorted(whole, key=lambda place: (place / STAMP).stat().st_mtime_ns, reverse=True):
        found, _ = _unpacked(place)
        if found:
            return found
    return None


def _unpacked(place: Path) -> tuple[Qemu | None, str]:
    """Return the QEMU in an unpacked tree; if it does not start, None and why."""
    path = place / "usr" / "bin" / "qemu-system-x86_64"
    libraries = tuple(
        folder for top in ("usr/lib", "lib") for folder in sorted(place.glob(f"{top}/*-linux-gnu"))
    )
    version, said = _version(path, libraries)
    data = tuple(place / "usr" / "share" / name for name in ("qemu", "seabios"))
    return (Qemu(path, version, libraries, data) if version else None), said


def _command(path: Path, libraries: tuple[Path, ...], preload: tuple[Path, ...]) -> list[str]:
    words = ["/usr/bin/env"]
    if libraries:
        words.append("LD_LIBRARY_PATH=" + ":".join(map(str, libraries)))
    if preload:
        words.append("LD_PRELOAD=" + ":".join(map(str, preload)))
    return [*words, str(path)]


def _version(path: Path, libraries: tuple[Path, ...]) -> tuple[str | None, str]:
    """Return the version of a QEMU; if it does not start, None and its last words."""
    done = subprocess.run(
        [*_command(path, libraries, ()), "--version"],
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    found = re.match(r"QEMU emulator version (\d+(?:\.\d+)+)", done.stdout)
    if done.returncode == 0 and found:
        return found[1], ""
    return None, (done.stderr.strip().splitlines() or ["it said nothing"])[-1]


def _download(home: Path) -> Qemu:
    work = home / "partial"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        apt = reachable(work, SUITES, "QEMU", INSTEAD)
        packages = apt.download_missing(PACKAGE, BESIDE)
        tree = work / "tree"
        unpack(packages, tree, "QEMU", mib=200)
        fetched, said = _unpacked(tree)
        if fetched is None:
            raise LabError(f"the QEMU that was fetched does not start ({said}): {INSTEAD}")
        _check_age(fetched.version, f"the archives that apt knows have QEMU {fetched.version}")
        (tree / STAMP).touch()
        place = home / fetched.version
        shutil.rmtree(place, ignore_errors=True)
        tree.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found, said = _unpacked(place)
    assert found, said
    return found
