# SPDX-License-Identifier: GPL-2.0
"""Which change a kernel has in it, told without a kernel tree: by what is woven in, and the settings."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from lab.tree import config
from lab.tree.hooks import own_files
from lab.util.paths import REPO

# No part of a kernel that is measured: documentation, tests, messages of commits.
_NOT_BUILT = re.compile(r"documentation|tests|\.toml$|\.j2$", re.IGNORECASE)
_MEASURED = "parallel"


def identity(repo: Path = REPO) -> str:
    """Return the content key (hex) of the change that a clone holds: its C, its hooks, its settings.

    Args:
        repo: clone that holds ``kernel/``, ``hooks/`` and ``config/``.
    """
    fragments = {name for flavours in config.FRAGMENTS.values() for name in flavours[_MEASURED]}
    paths = [*own_files(repo / "kernel"), *own_files(repo / "hooks")]
    paths += [repo / "config" / f"{name}.config" for name in fragments]
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        name = path.relative_to(repo).as_posix()
        if not _NOT_BUILT.search(name):
            data = path.read_bytes()
            digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
