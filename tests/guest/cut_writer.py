# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: who writes while the power is cut, see cuts.py.

A writer changes files of its own at random until the power is gone, and has them checked after the cut. With
``lie`` nothing is synced and yet promised. Standard library only.
"""

from __future__ import annotations

import errno
import itertools
import random
from collections import Counter
from collections.abc import Callable

from tests.guest.cut_calls import MODES, MOUNT, has_power
from tests.guest.cut_check import Check, Found
from tests.guest.cut_operations import LARGE, Operations
from tests.guest.resize import shared_words

WRITERS = 4
# Names of small files, in two folders.
SMALL = ("file0", "file1", "file2", "file3", "other/file4", "other/file5")
# One writer has a large file beside them, and so often it writes to that.
LARGE_SHARE = 0.5
# Operations that are told where something is lost.
MOST_TOLD = 60
# What a filesystem without power answers.
CUT_OFF = {errno.EIO, errno.EROFS, errno.ESHUTDOWN}


class Writer:
    """A process that changes files of its own.

    Attributes:
        folder: where its files are.
        operations: what it can do to them.
        done: operations since the start, for who waits for them.
    """

    def __init__(self, fs: str, number: int, seed: int, *, lie: bool) -> None:
        """Begin without files; ``lie``: promise without a sync."""
        self._fs = fs
        self.folder = MOUNT / f"writer{number}"
        self._seed = f"{seed} {number}"
        self._chosen = random.Random(self._seed)
        numbers = itertools.count(number + WRITERS, WRITERS)
        self.operations = do = Operations(fs, self.folder, numbers, self._chosen, lie=lie)
        self._has_large = number == 0
        self._refused: set[str] = set()
        # What was begun since the last check, for who wants to know how something was lost.
        self._begun: list[str] = []
        self.done = shared_words(1)
        # By fallocate().
        allocated = [do.punch, do.zero, do.collapse, do.insert, do.reserve, do.unshare]
        self._ways: list[Callable[[str], None]] = [
            *[do.overwrite] * 4,
            *[do.append] * 4,
            *[do.write_and_sync] * 3,
            *[do.write_synchronously] * 2,
            *[do.write_mapped] * 2,
            do.write_beyond,
            *[do.write_directly] * 2,
            *[do.write_range] * 2,
            do.write_flagged,
            do.truncate,
            *allocated,
            do.allocate,
            do.replace,
            do.replace,
            do.copy,
            do.link,
            do.move,
            do.exchange,
            do.remove,
            do.make_folder,
            do.sync_all,
        ]
        self._large_ways: list[Callable[[str], None]] = [
            *[do.overwrite] * 6,
            *[do.append] * 6,
            *[do.write_synchronously] * 2,
            *[do.write_mapped] * 2,
            *[do.truncate] * 2,
            do.write_and_sync,
            *[do.write_directly] * 2,
            *[do.write_range] * 2,
            do.write_flagged,
            *allocated,
            do.replace,
            do.copy,
        ]

    def choose_anew(self, cut: int) -> None:
        """Have the seed and the number of a cut choose what is done."""
        self._chosen.seed(f"{self._seed} {cut}")

    def begin(self) -> None:
        """Make the files of a fresh filesystem."""
        (self.folder / "other").mkdir(parents=True)
        self._begun = []
        self._refused = {what for what, mode in MODES.items() if not self.operations.has(mode)}
        self.operations.begin([*SMALL, LARGE] if self._has_large else SMALL)

    def go_on(self) -> list[str]:
        """Change files until the power is gone; return how the filesystem gave up if it did so before."""
        try:
            while True:
                is_large = self._has_large and self._chosen.random() < LARGE_SHARE
                way = self._chosen.choice(self._large_ways if is_large else self._ways)
                name = LARGE if is_large else self._chosen.choice(SMALL)
                if way.__name__ in self._refused:
                    continue
                self._begun.append(f"{way.__name__} {name}")
                way(name)
                self.done[0] += 1
        except OSError as error:
            if error.errno not in CUT_OFF:
                raise
            # The power stays gone until the check: if it is on now, it was on when this failed.
            if has_power():
                return [self._told(f"{self.folder.name}: {error}, while the power was on")]
        return []

    def check(self) -> Found:
        """Compare all files, and begin anew."""
        try:
            found = Check(self._fs, self.operations.names, self.operations.create).run()
        except OSError as error:
            found = Found(0, 0, [str(error)])
        lost = [self._told(what) for what in found.lost]
        self._begun = []
        taken, self.operations.taken = self.operations.taken, Counter()
        return Found(found.promised, found.longer, lost, taken)

    def _told(self, what: str) -> str:
        """Say what is lost, and what had been begun."""
        return f"{what}; {self._begun[-MOST_TOLD:]}"
