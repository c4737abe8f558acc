# SPDX-License-Identifier: GPL-2.0
"""The object folder of a configuration.

It is kept, so that make compiles only what a patch changes and what includes that; and it is kept what was
last said of each object, so that an old warning is known.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lab.check import messages
from lab.check.configurations import FOLDERS, Configuration
from lab.check.messages import Messages
from lab.check.patches import CheckTree
from lab.tree import config
from lab.tree.kbuild import MAKE_VARIABLES, Kbuild
from lab.util.errors import LabError
from lab.util.progress import Progress

# One mistake in a header must not hide what comes after it, and what is said of an object stands together.
_OPTIONS = ("--keep-going", "--output-sync=target", "--no-print-directory")


class Folder:
    """Objects of a configuration, made of the tree as it stands.

    Attributes:
        configuration: whose objects they are.
        objects: the object folder.
    """

    def __init__(self, configuration: Configuration, tree: CheckTree, home: Path, progress: Progress) -> None:
        """Take the configuration, the tree, the folder of all configurations, and where progress is shown."""
        self.configuration = configuration
        self._tree = tree
        self._progress = progress
        work = home / configuration.name
        variables = (*MAKE_VARIABLES, *configuration.variables(), *_OPTIONS)
        self._kbuild = Kbuild(work, f"series for {configuration.name}", variables, progress)
        self.objects = self._kbuild.objects
        self._state = work / "said.json"
        # Read once: a clone that is edited during a run of hours changes nothing of what is compiled.
        self._requests = configuration.requests()
        self._made: tuple[int, list[str]] | None = None

    def compile(self) -> list[str]:
        """Compile the tree as it stands, unless that was done last; return why it does not, or nothing."""
        if self._made is None or self._made[0] != self._tree.at:
            self._made = (self._tree.at, self.make(FOLDERS))
        return self._made[1]

    def make(self, goals: Sequence[str]) -> list[str]:
        """Configure the tree and make goals; return why that failed, or nothing."""
        said = self.said()
        for target in [target for target in said if not self._has_source(target)]:
            # What a run for a later patch left of a file that is not there yet would hide what it says then.
            del said[target]
            (self.objects / target).unlink(missing_ok=True)
        if not said:
            # It may be that an earlier run was killed before it wrote that: compile all of it again.
            shutil.rmtree(self.objects, ignore_errors=True)
        self._kbuild.link(self._tree.path)
        self._state.unlink(missing_ok=True)
        lines: list[str] = []
        try:
            return self._configure(lines) or self._run(goals, lines)
        finally:
            found: Messages = {"": Counter()} | messages.parse(lines)
            self._state.write_text(json.dumps(said | found), encoding="utf-8")

    def _has_source(self, target: str) -> bool:
        path = self._tree.path / target
        return path.suffix != ".o" or path.with_suffix(".c").exists() or path.with_suffix(".S").exists()

    def make_with(self, variables: Sequence[str], goals: Sequence[str]) -> tuple[list[str], Messages]:
        """Make goals of the tree, which is compiled, with further variables of make.

        Returns:
            Why that failed, or nothing; and what was said.
        """
        # The next make of this folder compiles them again without the variables.
        self._made = None
        lines: list[str] = []
        failures = self._run([*variables, *goals], lines) if goals else []
        return failures, messages.parse(lines)

    def said(self) -> Messages:
        """Return what was last said of each object."""
        try:
            kept = json.loads(self._state.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        return {target: Counter(said) for target, said in kept.items()}

    def _configure(self, lines: list[str]) -> list[str]:
        requests = self._requests
        wanted = self._kbuild.work / "wanted.config"
        wanted.write_text(config.text(requests), encoding="utf-8")
        said: list[str] = []
        status = self._kbuild.run(["allnoconfig"], {"KCONFIG_ALLCONFIG": str(wanted)}, said.append)
        lines += [line.rstrip("\n") for line in said]
        if status != 0:
            return _why(lines)
        # Settings of the series are there from the patch on that brings them.
        known = [one for one in requests if self._tree.introduced.get(one.symbol, 0) <= self._tree.at]
        try:
            config.verify(known, (self.objects / ".config").read_text(encoding="utf-8"))
        except LabError as error:
            return [" ".join(str(error).split())]
        return []

    def _run(self, goals: Sequence[str], lines: list[str]) -> list[str]:
        def seen(line: str) -> None:
            lines.append(line.rstrip("\n"))
            if line.startswith("  CC "):
                self._progress.advance()

        return [] if self._kbuild.run(goals, {}, seen) == 0 else _why(lines)


def _why(lines: Sequence[str]) -> list[str]:
    return messages.errors(lines) or [line.strip() for line in lines[-1:]] or ["make failed without a word"]
