# SPDX-License-Identifier: GPL-2.0
"""The kernel's pages build with Sphinx, and without a new warning."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from lab.check import messages
from lab.check.patches import CheckTree, Patch
from lab.tree.kbuild import Kbuild
from lab.tree.source import Source
from lab.util.errors import LabError
from lab.util.progress import Progress

# Folders of Documentation/ with pages of the series; what it adds to Documentation/ABI is shown in the first.
FOLDERS = ("admin-guide", "filesystems", "userspace-api")
#: Warnings by what they are without numbers of lines: all that differ in these.
Said = dict[str, set[str]]
_SAID = re.compile(r"\b(?:warning|error|severe|critical): ", re.IGNORECASE)
_UNKNOWN = re.compile(r"\bunknown document: '/([^']+)'")


class Docs:
    """The check of the pages, made once for all patches: with the last one, against the tree without any.

    A build of the pages takes a minute or more.
    """

    name = "docs"

    def __init__(self, source: Source, tree: CheckTree, home: Path, progress: Progress) -> None:
        """Take the tree that the series is for, the one with it, a folder to build in, and the progress."""
        self._source = source
        self._tree = tree
        program = Path(sys.executable).with_name("sphinx-build")
        variables = ("O=obj", f"SPHINXBUILD={program}", f"SPHINXDIRS={' '.join(FOLDERS)}")
        self._kbuild = Kbuild(home, "documentation", variables, progress)
        self._before: Said = {}

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome."""
        return [patch.key, *FOLDERS, importlib.metadata.version("sphinx")]

    def before(self, patch: Patch) -> None:
        """Build the pages of the tree that the series is for.

        Raises:
            LabError: they do not build.
        """
        failures, self._before = self._build(self._source.path)
        if failures:
            raise LabError(
                f"the documentation does not build without the series, mend that first: {failures[0]}"
            )

    def after(self, patch: Patch) -> list[str]:
        """Build the pages with the series; return what is wrong."""
        failures, said = self._build(self._tree.path)
        new = (
            line
            for text, lines in said.items()
            if len(lines) > len(self._before.get(text, ()))
            for line in sorted(lines)
        )
        return failures or [line for line in new if not self._is_elsewhere(line)]

    def _is_elsewhere(self, line: str) -> bool:
        """Say whether a warning is of a page of another folder: it is not found, for that is not built."""
        named = _UNKNOWN.search(line)
        return named is not None and (self._tree.path / "Documentation" / f"{named[1]}.rst").is_file()

    def _build(self, tree: Path) -> tuple[list[str], Said]:
        """Build all pages of a tree; return why that failed, or nothing, and what was said."""
        # Of a page that it need not read again Sphinx says nothing.
        shutil.rmtree(self._kbuild.objects, ignore_errors=True)
        self._kbuild.link(tree)
        lines: list[str] = []
        status = self._kbuild.run(["htmldocs"], {}, lines.append)
        made = self._kbuild.objects / "Documentation" / "output"
        if status != 0 or not all((made / name / "index.html").is_file() for name in FOLDERS):
            last = ([line.strip() for line in lines if line.strip()] or ["make said nothing"])[-1]
            return messages.errors(lines) or [f"there are not all pages: {last}"], {}
        return [], _said("".join(lines), (tree.resolve(), self._kbuild.objects.parent, ".."))


def _said(log: str, roots: Iterable[Path | str]) -> Said:
    """Return the warnings of a log, without the trees that they name, by what each is without lines.

    How often one of a line is told depends on how Sphinx shares the pages out to its workers.
    """
    for root in roots:
        log = log.replace(f"{root}/", "")
    found = (line.strip() for line in log.splitlines() if _SAID.search(line))
    said: Said = {}
    for line in found:
        said.setdefault(re.sub(r":\d+\b", "", line), set()).add(line)
    return said
