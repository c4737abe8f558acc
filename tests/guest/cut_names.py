# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: which files the names of a folder may stand for after a power cut, see cuts.py.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.guest.promises import File, History


class Names:
    """The names of a folder, and what each of them may stand for.

    Attributes:
        folder: where they are; a name can begin with a folder in that.
        new: the path of a file that has no name of these yet.
        made: the path of a folder that is made and removed.
        is_made: whether that is there.
    """

    def __init__(self, folder: Path) -> None:
        """Begin without names."""
        self.folder = folder
        self.new = folder / "new"
        self.made = folder / "made"
        self.is_made = History(False)
        self._histories: dict[str, History[File | None]] = {}
        self._change = 0

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._histories)

    def file(self, name: str) -> File | None:
        """Return the file that a name stands for now, if any."""
        return self._histories[name].last

    def histories(self) -> dict[str, History[File | None]]:
        """Return what each name may stand for."""
        return dict(self._histories)

    def change(self, *changed: tuple[str, File | None]) -> None:
        """Note that names stand for other files, or for none, which is one change; a new name is promised."""
        self._change += 1
        for name, file in changed:
            if file:
                file.only_name = None
            if name in self._histories:
                self._histories[name].add(self._change, file)
            else:
                self._histories[name] = History(file)

    def create(self, name: str, file: File) -> None:
        """Note that a file is made by a name."""
        self.change((name, file))
        file.only_name = name

    def change_made(self) -> None:
        """Note that the folder is made, or removed if it is there."""
        self._change += 1
        self.is_made.add(self._change, not self.is_made.last)

    def promise(self, name: str) -> None:
        """Note that what a name stands for will be found, and what was done to that file."""
        history = self._histories[name]
        history.promise(self._change)
        for file in filter(None, history.possible):
            file.promise()

    def promise_only(self, file: File) -> None:
        """Note that a file will be found by the name that it was made by, if it never had another one."""
        if file.only_name:
            self._histories[file.only_name].promise(self._change)

    def promise_all(self) -> None:
        """Note that all names and all that was done to their files will be found."""
        for name in self._histories:
            self.promise(name)
        self.is_made.promise(self._change)

    def promise_folder(self, folder: Path) -> None:
        """Note that what the names in one folder stand for will be found."""
        for name, history in self._histories.items():
            if (self.folder / name).parent == folder:
                history.promise(self._change)
        if self.made.parent == folder:
            self.is_made.promise(self._change)

    def settle(self, name: str, file: File | None) -> None:
        """Begin anew with the file that a name was found to stand for."""
        self._histories[name] = History(file)

    def settle_made(self, is_made: bool) -> None:
        """Begin anew with whether the folder was found."""
        self.is_made = History(is_made)

    def count_anew(self) -> None:
        """Count changes from the start, when all has been settled."""
        self._change = 0
