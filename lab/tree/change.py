# SPDX-License-Identifier: GPL-2.0
"""Which change a kernel has in it, told without a kernel tree: by what the compiler sees, and the settings.

Comments, exports to modules, and which patch brings what, are not in it: a measurement is of a kernel that
does the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from lab.tree import config, strictpatch
from lab.tree.hooks import own_files
from lab.util.paths import REPO
from lab.util.process import output

# No part of a kernel that is measured: documentation, tests.
_NOT_BUILT = re.compile(r"documentation|tests", re.IGNORECASE)
_MEASURED = "parallel"
# A string may hold what looks like a comment, and is found first.
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_EXPORT = re.compile(r"^EXPORT_SYMBOL(_GPL)?\(\w+\);$", re.MULTILINE)
# A hunk can begin or end within a comment.
_WITHIN_COMMENT = re.compile(r"\s*(/\*|\*/|\*\s|\*$)")
_C = (".c", ".h")


def identity(repo: Path = REPO) -> str:
    """Return the content key (hex) of the change that a clone holds: its C, its hooks, its settings.

    Args:
        repo: clone that holds ``kernel/``, ``hooks/`` and ``config/``.
    """
    fragments = {name for flavours in config.FRAGMENTS.values() for name in flavours[_MEASURED]}
    parts = [*_own(repo / "kernel"), *_hooks(repo / "hooks")]
    parts += [
        (f"config {name}", config.text(config.merge([repo / "config" / f"{name}.config"])))
        for name in fragments
    ]
    digest = hashlib.blake2b(digest_size=16)
    for name, text in sorted(parts):
        digest.update(f"\0{name}\0{len(text)}\0{text}".encode())
    return digest.hexdigest()


def commit(repo: Path = REPO) -> str:
    """Return the commit (hex) that a clone is at; empty if it cannot be told."""
    return output(["git", "-C", str(repo), "rev-parse", "--verify", "--quiet", "HEAD"])


def _own(folder: Path) -> Iterator[tuple[str, str]]:
    for path in own_files(folder):
        name = path.relative_to(folder).as_posix()
        if not _NOT_BUILT.search(name):
            text = path.read_text(encoding="utf-8")
            yield name, _code(text) if path.suffix in _C else text


def _hooks(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each hunk of a diff by the file that it changes, and each semantic patch."""
    for path in own_files(folder):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".cocci":
            yield "semantic patch", _code(text)
        elif path.suffix == ".diff":
            diff = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
            for file, hunks in strictpatch.parse(diff).items():
                if not _NOT_BUILT.search(file):
                    yield from ((file, _hunk(hunk)) for hunk in hunks)


def _hunk(hunk: strictpatch.Hunk) -> str:
    sides = ([line for line in of if not _WITHIN_COMMENT.match(line)] for of in (hunk.before, hunk.after))
    return "\0".join([hunk.heading, *(_code("\n".join(side)) for side in sides)])


def _code(text: str) -> str:
    """Return C without comments, exports and empty lines."""
    bare = _EXPORT.sub("", _COMMENT.sub(lambda found: found[1] or "", text))
    return "\n".join(line.rstrip() for line in bare.split("\n") if line.strip())
