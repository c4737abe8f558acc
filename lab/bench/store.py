# SPDX-License-Identifier: GPL-2.0
"""Boots that were measured, kept in the cache under the identity of all that decides what they give."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from lab.bench.boot_task import LANES, Task, tool
from lab.machine import devices, qemu, vtime
from lab.machine.hardware import Hardware
from lab.util.paths import REPO, cache_dir
from lab.util.process import output

GUEST = REPO / "guest"
MACHINE = REPO / "lab" / "machine"
PROFILE = REPO / "lab" / "profile"
# Debian's packages of what makes filesystems.
_MKFS = {"mkfs.xfs": "xfsprogs", "mkfs.ext4": "e2fsprogs", "mkfs.f2fs": "f2fs-tools"}
# What is no part of a result: where it goes, what it is called, where its kernel lies, how long it may take.
_LEFT_OUT = ("folder", "label", "kernel", "timeout_s")


def surroundings() -> dict[str, str]:
    """Return what all boots in virtual time have in common, and what a result depends on."""
    emulator = qemu.find()
    return _around(emulator, vtime.build(emulator).parent.name)


def known_surroundings() -> dict[str, str] | None:
    """Return the same, with nothing fetched or compiled for it; None where there is no QEMU yet."""
    if not os.environ.get(qemu.OWN) and not any((cache_dir() / "qemu").glob(f"*/{qemu.STAMP}")):
        return None
    emulator = qemu.find()
    return _around(emulator, vtime.key(emulator))


def _around(emulator: qemu.Qemu, clock_key: str) -> dict[str, str]:
    # Of the machine that has virtual time: User-mode Linux refuses more CPUs than the host has.
    clock = Hardware(machine="smp")
    return {
        "qemu": emulator.version,
        "vtime": clock_key,
        "quantum_ns": str(clock.quantum_ns),
        "mips": str(clock.mips),
        "lanes": str(LANES),
        "fio": output([tool("fio", "fio"), "--version"]),
        # The guest has the host's programs.
        "python": sys.version,
        "mkfs": " ".join(_version(tool(name, package)) for name, package in _MKFS.items()),
        "guest": _digest_of(GUEST),
        "machine": _digest_of(MACHINE),
    }


def _version(program: str) -> str:
    """Return what a mkfs says of its version, on either stream."""
    done = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def _digest_of(folder: Path) -> str:
    return _digest(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py"))))


def identity(task: Task, around: dict[str, str]) -> str:
    """Return the identity (hex) of a boot: kernel, machine, setting, device, filesystem, job, round."""
    own = {key: str(value) for key, value in asdict(task).items() if key not in _LEFT_OUT}
    if task.is_profiled:
        # What is kept is what was made of the samples, not the samples.
        own["profile"] = _digest_of(PROFILE)
    model = devices.load(task.device).model_dump_json()
    return _digest(json.dumps([own, model, around], sort_keys=True).encode())[:32]


class Store:
    """Results of boots by their identity."""

    def __init__(self, around: dict[str, str], root: Path | None = None) -> None:
        """Use ``root``, by default a folder of the cache, for boots in these surroundings."""
        self._around = around
        self._root = root or cache_dir() / "boots"

    def has(self, task: Task) -> bool:
        """Say whether an equal boot is kept."""
        return self._place(task).is_dir()

    def fetch(self, task: Task) -> bool:
        """Put what was kept of an equal boot into the task's folder; return whether there is anything."""
        if not self.has(task):
            return False
        shutil.copytree(self._place(task), task.folder)
        return True

    def keep(self, task: Task) -> None:
        """Keep what is in the task's folder, in place of what was kept of an equal boot."""
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._root) as scratch:
            copy = Path(scratch) / "boot"
            shutil.copytree(task.folder, copy)
            kept = self._place(task)
            with contextlib.suppress(FileNotFoundError):
                kept.rename(Path(scratch) / "old")
            copy.rename(kept)

    def _place(self, task: Task) -> Path:
        return self._root / identity(task, self._around)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
