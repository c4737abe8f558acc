# SPDX-License-Identifier: GPL-2.0
"""The kernel's make, in an object folder that is kept beside links to a tree that stays as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.tree import config
from lab.util.errors import LabError
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

# What the compiler and the linker say comes before what make says about it.
_COMPLAINTS = ("error:", "undefined reference", "undefined symbol", "multiple definition"), ("***",)
_SHOWN_COMPLAINTS = 8


class Kbuild:
    """One build in its object folder: the next one does only what changed.

    Attributes:
        work: folder with ``tree``, the log and what else the caller keeps beside them.
        objects: the object folder, ``tree/obj`` below it.
    """

    def __init__(self, work: Path, name: str, variables: Sequence[str], progress: Progress) -> None:
        """Take the work folder, what is built, for errors, make's variables, and where progress is shown."""
        self.work = work
        self.objects = work / "tree" / "obj"
        self._name = name
        self._variables = variables
        self._progress = progress
        self._log = work / "make.log"

    def link(self, tree: Path) -> None:
        """Let ``tree`` in the work folder show a kernel tree, and begin a new log.

        Raises:
            LabError: make cannot take the name of the cache's folder.
        """
        links = self.work / "tree"
        if any(character in str(links) for character in " :"):
            raise LabError(
                f"the cache folder {cache_dir()} has a space or a colon in its name, which make cannot take: "
                "choose another with: export PWB_CACHE=FOLDER"
            )
        _link_tree(tree, links)
        self._log.write_text("", encoding="utf-8")

    def configure(
        self, goal: str, requests: Sequence[config.Request], environment: Mapping[str, str] | None = None
    ) -> None:
        """Make a ``.config``, and check that it grants what was asked for.

        Args:
            goal: make's goal, such as ``olddefconfig``.
            requests: what was asked for.
            environment: variables that make gets beside its own.

        Raises:
            LabError: a setting was lost, or make failed.
        """
        self._progress.step("configure")
        self._make([goal], environment)
        config.verify(requests, (self.objects / ".config").read_text(encoding="utf-8"))

    def compile(
        self, goal: str, made: Path, objects: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """Compile and link, and show how far it is.

        Args:
            goal: make's goal.
            made: a file that is there after a full build.
            objects: objects of a full build, until a build on this computer has counted them.
            environment: variables that make gets beside its own.

        Raises:
            LabError: make failed, with its first complaints and the path of the log.
        """
        counted = self.work / "objects"
        full = not made.exists()
        total = None
        if full:
            total = int(counted.read_text()) if counted.exists() else objects
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

        self._make([goal], environment, watch)
        if full:
            counted.write_text(str(done))

    def run(
        self,
        goals: Sequence[str],
        environment: Mapping[str, str] | None = None,
        watch: Callable[[str], None] | None = None,
    ) -> int:
        """Run make on all CPUs; return its status.

        Args:
            goals: make's goals, and variables for them alone.
            environment: variables that make gets beside its own.
            watch: called with each line of its output, newline included.
        """
        # Nothing of the caller's environment: not its jobserver (make bench), not its CFLAGS.
        env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        # Compiling what ccache has preprocessed for its hash anyway saves a quarter of a cold build.
        env |= {"LC_ALL": "C", "CCACHE_DIR": str(cache_dir() / "ccache"), "CCACHE_NOCPP2": "1"}
        env |= environment or {}
        with self._log.open("a", encoding="utf-8") as log:

            def seen(line: str) -> None:
                log.write(line)
                if watch:
                    watch(line)

            jobs = f"-j{len(os.sched_getaffinity(0))}"
            return stream(["make", *self._variables, jobs, *goals], self.work / "tree", env, seen)

    def _make(
        self,
        goals: list[str],
        environment: Mapping[str, str] | None,
        watch: Callable[[str], None] | None = None,
    ) -> None:
        status = self.run(goals, environment, watch)
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
