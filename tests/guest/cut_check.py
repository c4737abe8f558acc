# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the check of what a power cut has left of a folder's files, see cuts.py.

Standard library only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.guest.cut_names import Names
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File, History

# Their journal keeps the order in which names change; F2FS brings back a synced file by itself.
JOURNALED = ("xfs", "ext4")


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


class Check:
    """A comparison of a folder with what its names may stand for; the names begin anew with what is found."""

    def __init__(self, fs: str, names: Names, create: Callable[[str], None]) -> None:
        """Look at names in a filesystem; ``create`` makes a file of a name that no file has."""
        self._fs = fs
        self._names = names
        self._folder = names.folder
        self._create = create
        self._longer = 0

    def run(self) -> Found:
        """Compare all files, once."""
        promised = 0
        lost: list[str] = []
        histories = self._names.histories()
        fitting = {}
        if self._fs in JOURNALED:
            fitting = {name: self._fitting(name, history.possible) for name, history in histories.items()}
        for name, history in histories.items():
            candidates = history.possible
            if len(candidates) == 1 and candidates[0]:
                promised += 1 + candidates[0].promised()
            found, broken = self._found(name, candidates)
            lost += [f"{self._folder.name}/{name}: {one}" for one in broken]
            self._names.settle(name, found)
            if found:
                round_up(self._folder / name, found)
        if fitting and not lost and not were_together(histories, fitting):
            lost.append(f"{self._folder.name}: the names were never so at once")
        is_made = self._names.made.is_dir()
        if is_made not in self._names.is_made.possible:
            lost.append(f"{self._folder.name}/{self._names.made.name} is not what it was")
        self._names.settle_made(is_made)
        self._drop_second_names()
        self._forget_sharing()
        self._names.new.unlink(missing_ok=True)
        self._names.count_anew()
        return Found(promised, self._longer, lost)

    def _fitting(self, name: str, possible: Sequence[File | None]) -> list[int]:
        """Return which of its possible values a name may stand for by what is found, by their places."""
        path = self._folder / name
        if len(possible) == 1:
            return [0]
        if not path.exists():
            return [place for place, one in enumerate(possible) if one is None]
        data = path.read_bytes()
        return [place for place, one in enumerate(possible) if one and self._broken(one, data) is None]

    def _found(self, name: str, candidates: Sequence[File | None]) -> tuple[File | None, list[str]]:
        """Return which of the files a name stands for, and what is lost if it can be none."""
        try:
            data = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None, [] if None in candidates else ["there is no such file"]
        broken = [] if any(candidates) else ["there is a file, which was removed"]
        for candidate in filter(None, reversed(candidates)):
            wrong = self._broken(candidate, data)
            if wrong is not None and self._is_extended(candidate, data):
                self._longer += 1
                wrong = None
            if wrong is None:
                candidate.settle(data)
                return candidate, []
            broken.append(wrong)
        # Whatever it is now, it is a file without a history.
        (self._folder / name).unlink()
        self._create(name)
        os.sync()
        self._names.promise(name)
        return self._names.file(name), broken

    def _is_extended(self, file: File, data: bytes) -> bool:
        """Tell whether recovery has extended a file over blocks behind its end, as that of F2FS does."""
        whole = len(data) % (PAGE_SECTORS * SECTOR_BYTES) == 0
        return self._fs == "f2fs" and whole and self._broken(file, data[: file.largest]) is None

    def _broken(self, file: File, data: bytes) -> str | None:
        # What was overwritten or cut off may be another's by then that had shared it, see shared_cut.py.
        return file.broken(data, anything_else=self._fs == "f2fs" or file.shares)

    def _drop_second_names(self) -> None:
        """Remove names of files that have another one, so that each file is told by its name."""
        known: list[File] = []
        for name in self._names:
            file = self._names.file(name)
            if file in known:
                (self._folder / name).unlink()
                self._names.settle(name, None)
            elif file:
                known.append(file)

    def _forget_sharing(self) -> None:
        """Note that a file does not share its blocks any more when the others are gone."""
        if self._names.new.exists():
            return
        files = [self._names.file(name) for name in self._names]
        sharing = [file for file in files if file and file.shares]
        if len(sharing) == 1:
            sharing[0].shares = False


def were_together(names: dict[str, History[File | None]], fitting: dict[str, list[int]]) -> bool:
    """Tell whether there was a moment when each name stood for one of those that fit it."""
    moments = {begin for history in names.values() for begin in history.begins}
    return any(
        all(history.was(moment, fitting[name]) for name, history in names.items()) for moment in moments
    )


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
