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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.machine import host
from lab.tree import config
from lab.tree.source import Source
from lab.tree.weave import weave, weave_identity
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import cache_dir
from lab.util.process import stream
from lab.util.progress import Progress

# Fixed, so that the same input gives the same kernel, byte for byte.
MAKE_VARIABLES = (
    "O=obj",
    "CC=ccache gcc",
    "LOCALVERSION=",
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER=pwb",
    "KBUILD_BUILD_HOST=pwb",
    "KBUILD_BUILD_VERSION=1",
)

_DISK_BYTES = 3 << 30


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
# What the compiler and the linker say comes before what make says about it.
_COMPLAINTS = ("error:", "undefined reference", "undefined symbol", "multiple definition"), ("***",)
_SHOWN_COMPLAINTS = 8


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
    """

    path: Path
    flavour: str
    version: str
    identity: str
    config: Path
    machine: str = "uml"
    symbols: Path | None = None


def build(flavour: str, source: Source, machine: str = "uml") -> Kernel:
    """Return a kernel, from the cache or else built now.

    Args:
        flavour: a flavour of the machine in :data:`lab.tree.config.FRAGMENTS`; into ``stock`` only the lab's
            systems are woven, into the others all of them.
        source: the pristine tree; it stays as it is.
        machine: ``uml`` or ``smp``.

    Returns:
        The kernel; its image is the one recorded when it was built.

    Raises:
        LabError: no such machine or flavour, this computer lacks something, a setting was lost, make failed
            (with its first complaints and the path of the log), or another run builds from the same source.
    """
    requests = config.merge(config.fragments(flavour, machine))
    target = _TARGETS[machine]
    lab_only = flavour == "stock"
    identity = weave_identity(source, lab_only=lab_only)
    key = _key(flavour, machine, identity, config.text(requests))
    entry = cache_dir() / "kernel" / key
    image = Path(target.image).name
    symbols = entry / "System.map" if target.symbols else None
    kernel = Kernel(entry / image, flavour, source.version, key, entry / "config", machine, symbols)
    if _is_intact(entry):
        return kernel
    host.check(host.Need(disk_bytes=_DISK_BYTES))
    home = cache_dir() / "build" / source.identity
    name = f"{flavour} kernel {source.version} for {machine}"
    with exclusive(home / "lock", f"building the {name}"):
        if _is_intact(entry):
            return kernel
        with Progress(name) as progress:
            if entry.exists():
                progress.note(f"the cached {flavour} kernel {key} is broken: building it again")
            progress.step("weave")
            tree = weave(source, lab_only=lab_only).path
            made = _Build(build_dir(flavour, source, machine), name, target, progress).run(tree, requests)
            _store(entry, made, kernel)
    return kernel


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


class _Build:
    """One build of one kernel in its object folder, which is kept: the next one does only what changed."""

    def __init__(self, work: Path, name: str, target: _Target, progress: Progress) -> None:
        self._work = work
        self._name = name
        self._target = target
        self._variables = (f"ARCH={target.arch}", *MAKE_VARIABLES)
        self._progress = progress
        self._log = work / "make.log"

    def run(self, tree: Path, requests: Sequence[config.Request]) -> list[Path]:
        """Configure, compile and link ``tree`` into ``tree/obj`` below the work folder.

        Returns:
            The image, the settings and, where they are kept, the addresses of the symbols.
        """
        links = self._work / "tree"
        if any(character in str(links) for character in " :"):
            raise LabError(
                f"the cache folder {cache_dir()} has a space or a colon in its name, which make cannot take: "
                "choose another with: export PWB_CACHE=FOLDER"
            )
        _link_tree(tree, links)
        self._log.write_text("", encoding="utf-8")
        self._progress.step("configure")
        wanted = self._work / "wanted.config"
        wanted.write_text(config.text(requests), encoding="utf-8")
        self._make(["allnoconfig"], {"KCONFIG_ALLCONFIG": str(wanted)})
        config.verify(requests, (links / "obj" / ".config").read_text(encoding="utf-8"))
        objects = links / "obj"
        self._compile(objects)
        made = [objects / self._target.image, objects / ".config"]
        return [*made, objects / "System.map"] if self._target.symbols else made

    def _compile(self, objects: Path) -> None:
        counted = self._work / "objects"
        full = not (objects / self._target.image).exists()
        total = None
        if full:
            total = int(counted.read_text()) if counted.exists() else self._target.objects
        self._progress.step("compile", total)
        done = 0

        def watch(line: str) -> None:
            nonlocal done
            word, _, what = line.strip().partition(" ")
            if word in {"CC", "AS"}:
                done += 1
                self._progress.advance()
            elif word == "LD" and what.strip() == "vmlinux.o":
                self._progress.step("link")

        self._make([f"-j{len(os.sched_getaffinity(0))}", self._target.goal], {}, watch)
        if full:
            counted.write_text(str(done))

    def _make(
        self, goals: list[str], more: dict[str, str], watch: Callable[[str], None] | None = None
    ) -> None:
        # Nothing of the caller's environment: not its jobserver (make bench), not its CFLAGS.
        env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        # Compiling what ccache has preprocessed for its hash anyway saves a quarter of a cold build.
        env |= {"LC_ALL": "C", "CCACHE_DIR": str(cache_dir() / "ccache"), "CCACHE_NOCPP2": "1", **more}
        with self._log.open("a", encoding="utf-8") as log:

            def seen(line: str) -> None:
                log.write(line)
                if watch:
                    watch(line)

            status = stream(["make", *self._variables, *goals], self._work / "tree", env, seen)
        if status != 0:
            raise LabError(
                f"building the {self._name} failed (make's status {status}); "
                f"the whole log is {self._log}:\n"
                + "\n".join(f"  {line}" for line in _complaints(self._log.read_text(encoding="utf-8")))
            )


def _link_tree(tree: Path, links: Path) -> None:
    """Make ``links`` a folder of links to what is in ``tree``, beside a real folder ``obj``.

    Kbuild names its sources ``../fs/inode.c`` when the object folder lies right below the tree. So no path of
    a tree gets into an object or into ccache's hash, stock and parallel share what they have in common, and
    the tree itself stays as it is.
    """
    (links / "obj").mkdir(parents=True, exist_ok=True)
    wanted = {entry.name: entry for entry in tree.iterdir() if not entry.name.startswith(".")}
    for link in links.iterdir():
        if link.name != "obj" and (link.name not in wanted or link.readlink() != wanted[link.name]):
            link.unlink()
    for name, entry in wanted.items():
        if not (links / name).is_symlink():
            (links / name).symlink_to(entry)


def _complaints(log: str) -> list[str]:
    """Pick the first lines of a make log in which something complains, else its last lines."""
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    for marks in _COMPLAINTS:
        found = [line for line in lines if any(mark in line for mark in marks)]
        if found:
            return found[:_SHOWN_COMPLAINTS]
    return lines[-_SHOWN_COMPLAINTS:]
