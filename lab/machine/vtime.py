# SPDX-License-Identifier: GPL-2.0
"""Virtual time for the machine ``smp``: its shared object, compiled into the cache (docs/machine.md)."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from pathlib import Path

from lab.machine.qemu import Qemu
from lab.util.errors import LabError
from lab.util.lock import in_turn
from lab.util.paths import REPO, cache_dir

SOURCES = REPO / "vtime"
NAME = "vtime.so"
COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC")
LIBRARIES = ("-lpthread", "-ldl")
TRIAL_S = 60


def build(qemu: Qemu, sources: Path = SOURCES) -> Path:
    """Return the shared object, from the cache or else compiled now, and seen to load into a QEMU.

    Args:
        qemu: the QEMU that shall load it.
        sources: folder of the C files.

    Raises:
        LabError: there is no compiler, the compiler complains, or QEMU does not load it.
    """
    files = sorted(sources.glob("*.[ch]"))
    name = key(qemu, sources)
    home = cache_dir() / "vtime"
    place = home / name / NAME
    if place.is_file():
        return place
    with in_turn(home / "lock"):
        if place.is_file():
            return place
        with tempfile.TemporaryDirectory(prefix=".new-", dir=home) as scratch:
            made = Path(scratch) / name / NAME
            made.parent.mkdir()
            _compile([file for file in files if file.suffix == ".c"], made)
            _try(qemu, made)
            made.parent.rename(home / name)
    return place


def key(qemu: Qemu, sources: Path = SOURCES) -> str:
    """Return the content key of sources, compiler and QEMU, by which the shared object is kept.

    Args:
        qemu: as for :func:`build`, like the folder.
        sources: folder of the C files.

    Raises:
        LabError: there is no compiler.
    """
    try:
        compiler = subprocess.run(["gcc", "--version"], capture_output=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise LabError(
            "gcc is missing, virtual time needs it: install the packages with: make setup"
        ) from None
    digest = hashlib.sha256(compiler)
    for part in (*COMPILE, *LIBRARIES, str(qemu.path), qemu.version):
        digest.update(part.encode() + b"\0")
    for file in sorted(sources.glob("*.[ch]")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _compile(files: list[Path], made: Path) -> None:
    command = [*COMPILE, "-o", str(made), *map(str, files), *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode != 0:
        raise LabError(f"compiling virtual time failed; gcc says:\n{done.stderr.strip()}")


def _try(qemu: Qemu, made: Path) -> None:
    """Raise LabError unless QEMU loads it, on a machine without anything."""
    command = [*qemu.command(made), "-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none"]
    command += ["-monitor", "stdio", "-plugin", str(made).replace(",", ",,")]
    try:
        done = subprocess.run(
            command, input="quit\n", capture_output=True, text=True, check=False, timeout=TRIAL_S
        )
        said = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["nothing"])[-1]
    except subprocess.TimeoutExpired:
        said = f"nothing for {TRIAL_S} s"
    if said:
        raise LabError(
            f"{qemu.path} (QEMU {qemu.version}) does not load the plugin for virtual time, it says: {said}; "
            "unset PWB_QEMU, or name a QEMU that was built with plugins"
        )
