# SPDX-License-Identifier: GPL-2.0
"""The objects of a kernel that our change touches, and those that it adds; the static checks look at them.

Without those of User-mode Linux: they are of no other machine, and part of them is code of the host's.
"""

from __future__ import annotations

from pathlib import PurePath

from lab.tree.hooks import load_patches
from lab.tree.source import Source
from lab.util.paths import REPO

KERNEL = REPO / "kernel"
MACHINE = "arch/um/"


def ours() -> list[str]:
    """Return the objects of our own files."""
    objects = {str(path.with_suffix(".o")) for path in _sources() if not _is_test(path)}
    return sorted(name for name in objects if not name.startswith(MACHINE))


def touched(source: Source) -> list[str]:
    """Return the objects of a stock kernel's files that hooks change."""
    patches = load_patches(REPO / "hooks", KERNEL, source.series)
    hooked = {PurePath(path) for patch in patches for hook in patch.hooks for path in hook.places}
    objects = {str(path.with_suffix(".o")) for path in hooked - {*_sources()} if path.suffix == ".c"}
    return sorted(name for name in objects if not name.startswith(MACHINE))


def _sources() -> list[PurePath]:
    return [PurePath(path.relative_to(KERNEL)) for path in KERNEL.rglob("*.c")]


def _is_test(path: PurePath) -> bool:
    return bool({"tests", "testing"} & {*path.parts})


def without_block(objects: list[str]) -> list[str]:
    """Return those that are built without block devices: nothing of drivers, and of no filesystem."""
    return [name for name in objects if name.startswith(("fs/", "mm/")) and name.count("/") == 1]


def without_cgroups(objects: list[str]) -> list[str]:
    """Return those that are built without control groups of block devices."""
    return [name for name in objects if name != "block/blk-cgroup.o"]


def without_hints(objects: list[str]) -> list[str]:
    """Return those that are built without hints of XFS's AG-aware writeback."""
    return [name for name in objects if not name.startswith("fs/xfs/xfs_agwb_hint")]
