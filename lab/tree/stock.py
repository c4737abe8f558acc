# SPDX-License-Identifier: GPL-2.0
"""The copy of a stock kernel tree that is woven into, and what in it is no longer stock's."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
from collections.abc import Container, Iterator
from pathlib import Path

from lab.util.errors import LabError

# At the top of a tree only.
_NOT_COPIED = (".git", ".pwb-source.json")


def copy_stock(stock: Path, tree: Path) -> None:
    """Copy a kernel tree, whole or not at all; a copy that is there stays as it is.

    Args:
        stock: the tree.
        tree: the copy, in a folder that is there.

    Raises:
        LabError: it could not be copied.
    """
    if tree.is_dir():
        return
    partial = tree.with_name("linux.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    entries = [str(entry) for entry in sorted(stock.iterdir()) if entry.name not in _NOT_COPIED]
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", "-t", str(partial), "--", *entries],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        shutil.rmtree(partial, ignore_errors=True)
        raise LabError(
            f"copying the kernel tree for weaving failed, expected 2 GiB of room in the cache: {last}"
        )
    partial.rename(tree)


def altered(stock: Path, tree: Path, ours: Container[str]) -> Iterator[str]:
    """Say which of stock's files are no longer as they were copied: somebody has edited or removed them.

    A kernel built from such a tree would not be what its identity says. A file of the same size and time
    counts as the same; others are read.

    Args:
        stock: the tree.
        tree: its copy.
        ours: paths that may differ, relative to the tree.

    Yields:
        Paths relative to the tree, in no order.
    """
    folders = [""]
    while folders:
        folder = folders.pop()
        with os.scandir(stock / folder) as entries:
            for entry in entries:
                path = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if path not in _NOT_COPIED:
                        folders.append(f"{path}/")
                elif (
                    entry.is_file(follow_symlinks=False)
                    and path not in _NOT_COPIED
                    and path not in ours
                    and not _same(entry, tree / path)
                ):
                    yield path


def _same(entry: os.DirEntry[str], copy: Path) -> bool:
    try:
        found = copy.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    known = entry.stat(follow_symlinks=False)
    if found.st_size != known.st_size:
        return False
    return found.st_mtime_ns == known.st_mtime_ns or filecmp.cmp(entry.path, copy, shallow=False)
