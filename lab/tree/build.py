# SPDX-License-Identifier: GPL-2.0
"""Kernels of either machine: built from a tree and config fragments, cached by what went into them.

``docs/build.md`` says how the cache and the object folders are kept and why.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.tree import change, config, held
from lab.tree.kbuild import MAKE_VARIABLES, Kbuild
from lab.tree.source import Source
from lab.tree.weave import Part, weave_identity
from lab.util import host
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import cache_dir
from lab.util.progress import Progress

_DISK_BYTES = 3 << 30
# What is woven for a flavour, where that is not everything.
_PARTS: dict[str, Part] = {"stock": "lab", "prepared": "prepared"}


@dataclass(frozen=True)
class _Target:
    """What make builds for a machine.

    Attributes:
        arch: the kernel's name of the architecture.
        goal: make's goal.
        image: what a guest is started with, in the object folder.
        symbols: whether the addresses of its symbols are kept; the executable of User-mode Linux has them.
        objects: objects of a full build, until a build on this computer has counted them.
    """

    arch: str
    goal: str
    image: str
    symbols: bool
    objects: int


_TARGETS = {
    "uml": _Target("um", "linux", "linux", symbols=False, objects=950),
    "smp": _Target("x86_64", "bzImage", "arch/x86/boot/bzImage", symbols=True, objects=1380),
}


@dataclass(frozen=True)
class Kernel:
    """A built kernel.

    Attributes:
        path: what a guest is started with: the executable ``linux`` for ``uml``, ``bzImage`` for ``smp``.
        flavour: a flavour of the machine in :data:`lab.tree.config.FRAGMENTS`.
        version: version of the source it was built from.
        identity: content key (hex) of everything that went into it.
        config: the ``.config`` it was built with.
        machine: ``uml`` or ``smp``.
        symbols: addresses of its symbols (``System.map``) for ``smp``, else None.
        change: identity of the change (:func:`lab.tree.change.identity`) that the clone held when the kernel
            was asked for: a clone can be changed while what it built is measured.
    """

    path: Path
    flavour: str
    version: str
    identity: str
    config: Path
    machine: str = "uml"
    symbols: Path | None = None
    change: str = field(default_factory=change.identity)


def build(flavour: str, source: Source, machine: str = "uml") -> Kernel:
    """Return a kernel, from the cache or else built now.

    Args:
        flavour: a flavour of the machine in :data:`lab.tree.config.FRAGMENTS`; into ``stock`` only the lab's
            systems are woven, into ``prepared`` also the patches of ours that come before several contexts,
            into the others all.
        source: the pristine tree; it stays as it is.
        machine: ``uml`` or ``smp``.

    Returns:
        The kernel; its image is the one recorded when it was built.

    Raises:
        LabError: no such machine or flavour, this computer lacks something, a setting was lost, make failed
            (with its first complaints and the path of the log), or another run builds the same kernel.
    """
    kernel, _ = _wanted(flavour, source, machine)
    if _is_intact(kernel.path.parent):
        return kernel
    host.check(host.Need(disk_bytes=_DISK_BYTES))
    target = _TARGETS[machine]
    part = _part(flavour)
    home = cache_dir() / "build" / source.identity
    name = f"{flavour} kernel {source.version} for {machine}"
    with exclusive(home / "lock", f"building the {name}", waits=True):
        # Waiting can take an hour: the clone may have been changed, or the kernel built.
        kernel, requests = _wanted(flavour, source, machine)
        entry = kernel.path.parent
        if _is_intact(entry):
            return kernel
        with Progress(name) as progress:
            if entry.exists():
                progress.note(f"the cached {flavour} kernel {kernel.identity} is broken: building it again")
            progress.step("weave")
            with held.woven(source, f"building the {name} from what was woven", part=part) as tree:
                kbuild = Kbuild(build_dir(flavour, source, machine), name, make_variables(machine), progress)
                _store(entry, _run(kbuild, tree.path, requests, target), kernel)
    return kernel


def find(flavour: str, source: Source, machine: str = "uml") -> tuple[Kernel, bool]:
    """Return the kernel that :func:`build` would, and whether it is in the cache; nothing is built.

    Args:
        flavour: as for build, like those below.
        source: the pristine tree.
        machine: ``uml`` or ``smp``.

    Raises:
        LabError: no such machine or flavour, a malformed hook, or there is no compiler.
    """
    kernel, _ = _wanted(flavour, source, machine)
    return kernel, _is_intact(kernel.path.parent)


def _part(flavour: str) -> Part:
    return _PARTS.get(flavour, "all")


def _wanted(flavour: str, source: Source, machine: str) -> tuple[Kernel, list[config.Request]]:
    """Return a kernel of what the clone holds now, whether it is built or not, and its settings."""
    requests = config.merge(config.fragments(flavour, machine))
    target = _TARGETS[machine]
    tree = weave_identity(source, part=_part(flavour))
    key = _key(flavour, machine, tree, config.text(requests))
    entry = cache_dir() / "kernel" / key
    image = Path(target.image).name
    symbols = entry / "System.map" if target.symbols else None
    return Kernel(entry / image, flavour, source.version, key, entry / "config", machine, symbols), requests


def build_dir(flavour: str, source: Source, machine: str = "uml") -> Path:
    """Return the folder in which a flavour is built: ``tree`` with the object folder ``obj``, and the log."""
    return cache_dir() / "build" / source.identity / f"{machine}-{flavour}"


def make_variables(machine: str) -> tuple[str, ...]:
    """Return the variables that make is given in the folder ``tree`` of a build."""
    return (f"ARCH={_TARGETS[machine].arch}", *MAKE_VARIABLES)


def _key(flavour: str, machine: str, identity: str, settings: str) -> str:
    """Return the content key of a kernel: flavour, machine, tree, settings, compiler and make's variables."""
    try:
        compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        raise LabError(
            "gcc is missing, building a kernel needs it: install the packages with: make setup"
        ) from None
    parts = [flavour, identity, settings, compiler, *make_variables(machine)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _run(kbuild: Kbuild, tree: Path, requests: Sequence[config.Request], target: _Target) -> list[Path]:
    """Configure, compile and link a tree; return image, settings and, where they are kept, the symbols."""
    kbuild.link(tree)
    wanted = kbuild.work / "wanted.config"
    wanted.write_text(config.text(requests), encoding="utf-8")
    kbuild.configure("allnoconfig", requests, {"KCONFIG_ALLCONFIG": str(wanted)})
    kbuild.compile(target.goal, kbuild.objects / target.image, target.objects)
    made = [kbuild.objects / target.image, kbuild.objects / ".config"]
    return [*made, kbuild.objects / "System.map"] if target.symbols else made


def _is_intact(entry: Path) -> bool:
    """Tell whether a cache entry is there with the files that were recorded."""
    try:
        meta = json.loads((entry / "meta.json").read_text(encoding="utf-8"))
        # A bzImage is read by QEMU, and make leaves it without the right to be executed.
        access = os.X_OK if meta["machine"] == "uml" else os.R_OK
        return os.access(entry / meta["image"], access) and all(
            _sha256(entry / name) == digest for name, digest in meta["sha256"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _store(entry: Path, made: Sequence[Path], kernel: Kernel) -> None:
    """Put a freshly built kernel into the cache, whole or not at all."""
    entry.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=entry.parent) as name:
        new = Path(name) / entry.name
        new.mkdir()
        kept = [path for path in (kernel.path, kernel.config, kernel.symbols) if path]
        for path, kept_path in zip(made, kept, strict=True):
            shutil.copy2(path, new / kept_path.name)
        meta = {
            "flavour": kernel.flavour,
            "machine": kernel.machine,
            "version": kernel.version,
            "image": kernel.path.name,
            "sha256": {path.name: _sha256(new / path.name) for path in kept},
        }
        (new / "meta.json").write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
        if entry.exists():
            entry.rename(Path(name) / "broken")
        new.rename(entry)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
