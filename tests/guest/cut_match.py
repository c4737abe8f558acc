# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: which files the names of a folder stand for after a power cut, see cuts.py.

A file by itself can look like another one: files that hold nothing yet, or copies that may hold anything. So
all names are looked at together. Two names of one inode stand for one file, and those of two inodes for two.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from tests.guest.promises import File, History

# What each name may stand for, best first.
Choices = Mapping[str, Sequence[File | None]]
# What each name stands for; those are missing that can be nothing which goes with the others.
Match = dict[str, File | None]


def best_match(inodes: Mapping[str, int | None], ways: Sequence[Choices]) -> Match:
    """Return what names stand for so that as few of them as possible are lost.

    Args:
        inodes: that of each name, None where there is no file.
        ways: choices for all names, each of which may be so; the first ones are preferred.
    """
    matches = (_match(list(inodes), inodes, choices, {}, most) for most in count() for choices in ways)
    return next(match for match in matches if match is not None)


def moments(*histories: History[File | None] | History[bool]) -> list[int]:
    """Return after which changes all of these had values that may be found, the latest first."""
    earliest = max(history.begins[0] for history in histories)
    begins = {begin for history in histories for begin in history.begins}
    return sorted((begin for begin in begins if begin >= earliest), reverse=True)


def _match(
    names: Sequence[str],
    inodes: Mapping[str, int | None],
    choices: Choices,
    files: Mapping[int, File],
    most: int,
) -> Match | None:
    """Match names, all but so many, where some inodes are known to be some files."""
    if not names:
        return {}
    name, *others = names
    inode = inodes[name]
    for file in choices[name]:
        known = files
        if inode is not None and file:
            if files.get(inode, file) is not file or (inode not in files and file in files.values()):
                continue
            known = {**files, inode: file}
        match = _match(others, inodes, choices, known, most)
        if match is not None:
            return {name: file, **match}
    return _match(others, inodes, choices, files, most - 1) if most else None
