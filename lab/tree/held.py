# SPDX-License-Identifier: GPL-2.0
"""A woven tree that stays as it is while it is read: clones that share a cache share it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.tree.source import Source
from lab.tree.weave import Part, Woven, weave
from lab.util.lock import exclusive
from lab.util.paths import REPO


@contextmanager
def woven(
    source: Source, what: str, repo: Path = REPO, *, part: Part = "all", waits: bool = False
) -> Iterator[Woven]:
    """Weave, and keep other clones from weaving another change for the length of a ``with`` block.

    Args:
        source: the tree to weave onto.
        what: what is done with the woven tree, such as ``"building the debug kernel"``; others are told.
        repo: clone that holds ``kernel/`` and ``hooks/``.
        part: as for :func:`lab.tree.weave.weave`.
        waits: as for :func:`lab.util.lock.exclusive`.

    Raises:
        LabError: it does not weave, or another run holds the tree and is not waited for.
    """
    tree = weave(source, repo, part=part)
    with exclusive(tree.path.parent / "lock", what, waits=waits):
        # At once, unless another clone was faster, which this refuses.
        yield weave(source, repo, part=part)
