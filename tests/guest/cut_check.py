# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the check of what a power cut has left of a folder's files, see cuts.py.

Standard library only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.guest.cut_match import Choices, Match, best_match, moments
from tests.guest.cut_names import Names
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File, History

# Their journal keeps the order in which names change; F2FS brings back a synced file by itself.
JOURNALED = ("xfs", "ext4")
# How what is found can be that of a file: it is what was written, it may be anything, it is longer.
EXACT, ANYTHING, LONGER = range(3)
# What is wrong with something that could be so by itself.
ALONE = "which does not go with what the other names are"


@dataclass(frozen=True)
class Found:
    """What a check has found.

    Attributes:
        promised: sectors and names that had to be there.
        longer: files that hold what was promised, and more behind it.
        lost: what is lost, a text each.
        taken: how often the filesystem took each thing that it may refuse.
        mended: filesystems that could be mounted only after their superblock had been mended.
    """

    promised: int
    longer: int
    lost: list[str]
    taken: Counter[str] = field(default_factory=Counter)
    mended: int = 0


class Fit(NamedTuple):
    """How a name can stand for one of those that it may, by what is found, or what is wrong with that."""

    how: int | None
    wrong: str = ""


# Of what a name may stand for.
Fits = Mapping[File | None, Fit]


class Place:
    """A name as it is found.

    Attributes:
        inode: its number; None: there is no file.
        data: what it holds.
    """

    def __init__(self, path: Path) -> None:
        """Look at a path."""
        self.inode: int | None = None
        self.data = b""
        try:
            self.data = path.read_bytes()
            self.inode = path.stat().st_ino
        except FileNotFoundError:
            return


class Check:
    """A comparison of a folder with what its names may stand for; the names begin anew with what is found."""

    def __init__(self, fs: str, names: Names, create: Callable[[str], None]) -> None:
        """Look at names in a filesystem; ``create`` makes a file of a name that no file has."""
        self._fs = fs
        self._names = names
        self._folder = names.folder
        self._made = names.made.name
        self._create = create

    def run(self) -> Found:
        """Compare all files, once."""
        histories = self._names.histories()
        promised = sum(_promised(history) for history in histories.values())
        places = {name: Place(self._folder / name) for name in histories}
        fits = {
            name: {one: self._fit(one, places[name]) for one in reversed(history.possible)}
            for name, history in histories.items()
        }
        is_made = self._names.made.is_dir()
        # The folder is there or it is not: it can go with the others, but be none of them.
        inodes = {name: place.inode for name, place in places.items()} | {self._made: None}
        match = best_match(inodes, self._ways(fits, is_made=is_made))
        lost = [
            f"{self._folder.name}/{name}: {_told(fits[name], place)}"
            for name, place in places.items()
            if name not in match
        ]
        if self._made not in match:
            is_possible = is_made in self._names.is_made.possible
            wrong = f"is {'' if is_made else 'not '}there, {ALONE}" if is_possible else "is not what it was"
            lost.append(f"{self._folder.name}/{self._made} {wrong}")
        longer = sum(file is not None and fits[name][file].how == LONGER for name, file in match.items())
        self._settle(places, match)
        self._names.settle_made(is_made)
        self._forget_sharing()
        self._names.new.unlink(missing_ok=True)
        self._names.count_anew()
        return Found(promised, longer, lost)

    def _fit(self, one: File | None, place: Place) -> Fit:
        if one is None or place.inode is None:
            return Fit(EXACT if one is None and place.inode is None else None)
        wrong = one.broken(place.data)
        if wrong is None:
            return Fit(EXACT)
        # What was overwritten or cut off may be another's by then that had shared it, see shared_cut.py.
        anything_else = self._fs == "f2fs" or one.shares
        if anything_else:
            wrong = one.broken(place.data, anything_else=True)
            if wrong is None:
                return Fit(ANYTHING)
        # Recovery of F2FS can extend a file over blocks behind its end.
        begin = place.data[: one.largest]
        is_whole = self._fs == "f2fs" and len(place.data) % (PAGE_SECTORS * SECTOR_BYTES) == 0
        if is_whole and one.broken(begin, anything_else=True) is None:
            return Fit(LONGER)
        return Fit(None, wrong)

    def _ways(self, fits: Mapping[str, Fits], *, is_made: bool) -> list[Choices]:
        """Return what may have been, best first: all names at each moment, or each name by itself."""
        histories, made = self._names.histories(), self._names.is_made
        if self._fs in JOURNALED:
            at_once = [
                ({name: [history.at(moment)] for name, history in histories.items()}, [made.at(moment)])
                for moment in moments(*histories.values(), made)
            ]
        else:
            at_once = [({name: history.possible for name, history in histories.items()}, made.possible)]
        return [
            {name: _fitting(fits[name], those, how) for name, those in possible.items()}
            | {self._made: [None] if is_made in those_made else []}
            for how in (EXACT, ANYTHING, LONGER)
            for possible, those_made in at_once
        ]

    def _settle(self, places: Mapping[str, Place], match: Match) -> None:
        """Begin anew with what was found, and have one name for each file, by which it is told."""
        known: list[File] = []
        for name, place in places.items():
            path = self._folder / name
            file = match.get(name)
            if name not in match and place.inode is not None:
                # Whatever it is now, it is a file without a history.
                path.unlink()
                self._create(name)
                os.sync()
                self._names.promise(name)
                file = self._names.file(name)
            elif file in known:
                path.unlink()
                file = None
            elif file:
                file.settle(place.data)
            self._names.settle(name, file)
            if file:
                known.append(file)
                round_up(path, file)

    def _forget_sharing(self) -> None:
        """Note that a file does not share its blocks any more when the others are gone."""
        if self._names.new.exists():
            return
        files = [self._names.file(name) for name in self._names]
        sharing = [file for file in files if file and file.shares]
        if len(sharing) == 1:
            sharing[0].shares = False


def _promised(history: History[File | None]) -> int:
    """Return how much of a name and its file had to be there."""
    file = history.last
    return 1 + file.promised() if file and len(history.possible) == 1 else 0


def _fitting(fits: Fits, those: Sequence[File | None], worst: int) -> list[File | None]:
    """Return which of those it can be that fit no worse, the latest first."""
    return [one for one, fit in fits.items() if one in those and fit.how is not None and fit.how <= worst]


def _told(fits: Fits, place: Place) -> str:
    """Say what is wrong with a name that can be nothing which goes with the other names."""
    if place.inode is None:
        expected = " or ".join(f"file {one.number}" for one in fits if one)
        return f"there is no such file, {ALONE if None in fits else f'expected {expected}'}"
    files = {one: fit for one, fit in fits.items() if one}
    told = [fit.wrong or f"it can be file {one.number}, {ALONE}" for one, fit in files.items()]
    return ", or ".join(told) or "there is a file, which was removed"


def round_up(path: Path, file: File) -> None:
    """Have a file end with a whole block of its own, and no blocks behind it.

    F2FS, stock's too, leaves in the last block what was cut off. XFS warns when a file that has written
    blocks behind its end grows over them, see blocks_behind.py.
    """
    block = PAGE_SECTORS * SECTOR_BYTES
    last = file.size // block * block
    if last < file.size:
        with path.open("r+b", buffering=0) as written:
            written.seek(last)
            data = written.read()
            written.seek(last)
            written.write(data.ljust(block, b"\0"))
    os.truncate(path, path.stat().st_size)
    file.settle(path.read_bytes())
