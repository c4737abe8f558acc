# SPDX-License-Identifier: GPL-2.0
"""The patches of the series, and a whole kernel tree that can be put to any of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.tree.source import Source
from lab.tree.weave import BRANCH, LAB_TAG, copy_stock, git, weave
from lab.util.errors import LabError
from lab.util.lock import exclusive
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
    """

    number: int
    title: str
    commit: str
    before: str
    key: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        """Name it as a sentence does."""
        return f"patch {self.number} ({self.title})"


class CheckTree:
    """A copy of a kernel tree at one patch of the series.

    Attributes:
        path: the tree.
        patches: the series, in order.
        introduced: the settings (``CONFIG_...``) that the series brings, and the number of the first patch
            with it.
        at: number of the patch that the tree shows; 0: none of them.
    """

    def __init__(self, source: Source, home: Path, repo: Path = REPO) -> None:
        """Weave, and have the tree and its patches in a folder of the cache.

        Args:
            source: the tree that the series is for.
            home: the folder; what is in it from an earlier time is used.
            repo: clone that holds ``kernel/`` and ``hooks/``.

        Raises:
            LabError: the series does not weave, or there is no room for the tree.
        """
        self._source = source
        self.path = home / "linux"
        home.mkdir(parents=True, exist_ok=True)
        copy_stock(source.path, self.path)
        if not (self.path / ".git").is_dir():
            git(self.path, "init", "--quiet", "--initial-branch=checked", "--template=")
        woven = weave(source, repo)
        with exclusive(woven.path.parent / "lock", "reading what was woven"):
            # At once, unless another clone has woven another change since, which this refuses.
            weave(source, repo)
            wanted = [f"+{ref}:{ref}" for ref in (f"refs/heads/{BRANCH}", f"refs/tags/{LAB_TAG}")]
            git(self.path, "fetch", "--quiet", "--no-tags", str(woven.path), *wanted)
        self.patches = self._patches()
        self.introduced = {
            f"CONFIG_{symbol}": patch.number
            for patch in reversed(self.patches)
            for symbol in _SYMBOL.findall(git(self.path, "diff", "-U0", patch.before, patch.commit))
        }
        self.at = -1

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

    def _patches(self) -> list[Patch]:
        wanted = ("--reverse", "--format=%H %T %s")
        before, below = git(self.path, "log", "-1", "--format=%H %T", LAB_TAG).split()
        patches = []
        for number, line in enumerate(
            git(self.path, "log", *wanted, f"{LAB_TAG}..{BRANCH}").splitlines(), start=1
        ):
            commit, tree, title = line.split(" ", 2)
            names = git(self.path, "diff-tree", "-r", "--name-only", "--diff-filter=d", before, commit)
            patches.append(Patch(number, title, commit, before, f"{below}-{tree}", tuple(names.split())))
            before, below = commit, tree
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
