# SPDX-License-Identifier: GPL-2.0
"""The patches of the series, and a whole kernel tree that can be put to any of them."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.tree import held
from lab.tree.source import Source
from lab.tree.stock import copy_stock
from lab.tree.weave import BRANCH, LAB_TAG, git
from lab.util.errors import LabError
from lab.util.paths import REPO

_SYMBOL = re.compile(r"^\+(?:menu)?config (\w+)", re.MULTILINE)
_RANGE = re.compile(r"(\d*)(?:(\.\.)(\d*))?")


@dataclass(frozen=True)
class Patch:
    """One patch.

    Attributes:
        number: its place in the series, from 1.
        title: its subject.
        commit: its commit.
        before: the commit below it.
        key: what it makes of what: two patches of the same key differ in their messages only.
        files: what it adds or changes, as paths in the tree.
        added: how many lines it adds.
        removed: how many lines it removes; one that it changes counts here and there.
    """

    number: int
    title: str
    commit: str
    before: str
    key: str
    files: tuple[str, ...]
    added: int
    removed: int

    def __str__(self) -> str:
        """Name it as a sentence does."""
        return f"patch {self.number} ({self.title})"


class CheckTree:
    """A copy of a kernel tree at one patch of the series.

    Attributes:
        path: the tree.
        patches: the series, in order.
        at: number of the patch that the tree shows; 0: none of them; -1: it has shown nothing yet.
    """

    def __init__(self, source: Source, home: Path, repo: Path = REPO) -> None:
        """Weave and read the series; the tree itself is there after :meth:`make` only.

        Args:
            source: the tree that the series is for.
            home: folder of the cache for the tree.
            repo: clone that holds ``kernel/`` and ``hooks/``.

        Raises:
            LabError: the series does not weave.
        """
        self._source = source
        self._repo = repo
        self.path = home / "linux"
        self.at = -1
        with held.woven(source, "reading what was woven", repo, waits=True) as woven:
            self.patches = listed(woven.path)

    def make(self) -> None:
        """Have the tree; what is there from an earlier time is used.

        Raises:
            LabError: there is no room for the tree.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        copy_stock(self._source.path, self.path)
        if not (self.path / ".git").is_dir():
            git(self.path, "init", "--quiet", "--initial-branch=checked", "--template=")
        with held.woven(self._source, "reading what was woven", self._repo, waits=True) as woven:
            wanted = [f"+{ref}:{ref}" for ref in (f"refs/heads/{BRANCH}", f"refs/tags/{LAB_TAG}")]
            git(self.path, "fetch", "--quiet", "--no-tags", str(woven.path), *wanted)

    @functools.cached_property
    def introduced(self) -> dict[str, int]:
        """The settings (``CONFIG_...``) that the series brings, and the number of the first patch with it."""
        return {
            f"CONFIG_{symbol}": patch.number
            for patch in reversed(self.patches)
            for symbol in _SYMBOL.findall(git(self.path, "diff", "-U0", patch.before, patch.commit))
        }

    def show(self, number: int) -> None:
        """Put the tree to a patch; files that stay the same keep their times, so that make builds little.

        Args:
            number: of the patch; 0: none of them.
        """
        commit = self.patches[number - 1].commit if number else self.patches[0].before
        self._leave_stock(commit)
        git(self.path, "checkout", "--quiet", "--force", "--detach", commit)
        self.at = number

    def _leave_stock(self, commit: str) -> None:
        """Make stock again, and no longer git's, what another series changed and a commit does not know."""
        wanted = set(git(self.path, "ls-tree", "-r", "--name-only", commit).splitlines())
        others = set(git(self.path, "ls-files").splitlines()) - wanted
        stock = sorted(name for name in others if (self._source.path / name).is_file())
        for name in stock:
            shutil.copyfile(self._source.path / name, self.path / name)
        if stock:
            git(self.path, "update-index", "--force-remove", "--", *stock)


def listed(tree: Path) -> list[Patch]:
    """Return the patches of the change, in order, from a git tree that has the woven branch."""
    before, below = git(tree, "log", "-1", "--format=%H %T", LAB_TAG).split()
    commits = git(tree, "log", "--reverse", "--format=%H %T %s", f"{LAB_TAG}..{BRANCH}").splitlines()
    patches = []
    for number, line in enumerate(commits, start=1):
        commit, content, title = line.split(" ", 2)
        counted = git(tree, "diff-tree", "-r", "--numstat", "--diff-filter=d", before, commit).splitlines()
        added, removed, files = zip(*(entry.split("\t") for entry in counted), strict=True)
        key = f"{below}-{content}"
        lines = (sum(map(int, added)), sum(map(int, removed)))
        patches.append(Patch(number, title, commit, before, key, files, *lines))
        before, below = commit, content
    return patches


def chosen(patches: Sequence[Patch], wanted: str | None) -> list[Patch]:
    """Return the patches that a user asks for.

    Args:
        patches: the series.
        wanted: a number, ``FROM..TO``, ``FROM..`` or ``..TO``, both included; None: all.

    Raises:
        LabError: it is none of that, or there are no such patches.
    """
    if wanted is None:
        return list(patches)
    found = _RANGE.fullmatch(wanted)
    if found is None or not (found[1] or found[3]):
        raise LabError(f"{wanted!r} names no patches: expected a number, or two such as 2..5")
    first = int(found[1] or 1)
    last = int(found[3] or len(patches)) if found[2] else first
    taken = [patch for patch in patches if first <= patch.number <= last]
    if not taken:
        raise LabError(f"there is no patch {wanted}: the series has {len(patches)}")
    return taken
