# SPDX-License-Identifier: GPL-2.0
"""What files may hold after a power cut: what was promised, or anything that was written later.

A file is told by its sectors. Each has a history, from what the last promise covers to what was written last;
any of these may be found, for a device tears pages at sectors. So it is with the size, and with which file a
name stands for. One process writes a file, so its history has an order. Standard library only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

SECTOR_BYTES = 512
PAGE_SECTORS = 8
_STAMP = struct.Struct("<8Q")
_WORDS = struct.Struct("<64Q")
_MAGIC = 0x70726F6D69736564

Value = TypeVar("Value")


class Content(NamedTuple):
    """What a write has put into a sector: the file, the sector and how many changes the file had seen."""

    file: int
    sector: int
    change: int

    def data(self) -> bytes:
        """Return the bytes."""
        stamp = _STAMP.pack(_MAGIC, *self, *self, ~_MAGIC & (1 << 64) - 1)
        return stamp * (SECTOR_BYTES // _STAMP.size)


ZEROS = bytes(SECTOR_BYTES)


# What a sector holds: that of a write, zeros (None), or any bytes that were found there.
Sector = Content | bytes | None


def data_of(sector: Sector) -> bytes:
    """Return the bytes of a sector."""
    if isinstance(sector, Content):
        return sector.data()
    return sector or ZEROS


def is_mixture(found: bytes, possible: Sequence[Sector]) -> bool:
    """Tell whether each word of a sector is that of one of several that there may be."""
    # Nearly always: words take ten times as long.
    if any(found == data_of(one) for one in possible):
        return True
    words = zip(*(_WORDS.unpack(data_of(one)) for one in possible), strict=True)
    return all(word in choice for word, choice in zip(_WORDS.unpack(found), words, strict=True))


class History(Generic[Value]):
    """What something has been, each with the number of the change that made it so; the first is promised."""

    def __init__(self, value: Value) -> None:
        """Begin with a value that is promised."""
        self._values = [(0, value)]

    @property
    def last(self) -> Value:
        """What it is now."""
        return self._values[-1][1]

    @property
    def possible(self) -> list[Value]:
        """All that may be found, the promised value first."""
        return [value for _, value in self._values]

    @property
    def begins(self) -> list[int]:
        """After which change it became each of the possible values."""
        return [change for change, _ in self._values]

    def at(self, change: int) -> Value:
        """Return what it was after a change, of the possible values; not before the first one."""
        return [value for begin, value in self._values if begin <= change][-1]

    def add(self, change: int, value: Value) -> None:
        """Note that it may be another value from now on."""
        self._values.append((change, value))

    def may_be(self, value: Value) -> None:
        """Note that it may also be found as this for as long as its last value is not promised."""
        self._values.insert(-1, (self._values[-1][0], value))

    def promise(self, change: int) -> None:
        """Note that what it was after this change will be found, or a later value."""
        while len(self._values) > 1 and self._values[1][0] <= change:
            del self._values[0]


class File:
    """A file and what it may hold.

    What lies beyond the end is zeros when the file grows over it. But where a filesystem zeroes the rest of
    the last block only in memory, and a cut comes when the new size is on the device and that is not, what
    was there before comes to light: stock XFS and ext4 do so. It is the file's own, and nobody promised
    otherwise. And a page that is written to while a device takes it may go there with words of both.

    A block that is moved within a file is written in place, and that can be on the device before the log has
    the move: then what was written is found where the block was, see moved_cut.py.

    Attributes:
        number: tells its content from that of other files.
        change: how many changes it has seen.
        shares: whether it has shared blocks with another file.
        only_name: the name that it was made by; None if it had another one since, or was made by none.
    """

    def __init__(self, number: int) -> None:
        """Begin with an empty file."""
        self.number = number
        self.change = 0
        self.shares = False
        self.only_name: str | None = None
        self._size = History(0)
        # Sectors below were promised, so the file reaches there.
        self._least_size = 0
        self._sectors: dict[int, History[Sector]] = {}
        # What was not synced since: sectors from the first on were so much farther behind.
        self._moves: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._size.last

    @property
    def largest(self) -> int:
        """The largest size that may be found, in bytes."""
        return max(self._size.possible)

    def write(self, first: int, count: int) -> bytes:
        """Note that sectors are written, and return their new bytes."""
        self.change += 1
        contents = [Content(self.number, sector, self.change) for sector in range(first, first + count)]
        self._put(first, contents)
        return b"".join(content.data() for content in contents)

    def zero(self, first: int, count: int, *, keep_size: bool) -> None:
        """Note that sectors become zeros, and that the file grows to hold them unless it keeps its size."""
        self.change += 1
        if keep_size:
            count = min(count, self.size // SECTOR_BYTES - first)
        self._put(first, [None] * count)

    def allocate(self, size: int) -> None:
        """Note that the file is at least so large."""
        self.change += 1
        self._grow(size)

    def truncate(self, size: int) -> None:
        """Note a new size; beyond it all is zeros."""
        self.change += 1
        for sector, history in self._sectors.items():
            if sector * SECTOR_BYTES >= size and history.last is not None:
                history.add(self.change, None)
        self._size.add(self.change, size)
        self._least_size = min(self._least_size, size)

    def collapse(self, first: int, count: int) -> None:
        """Note that sectors are taken out, and that those behind them come nearer."""
        moved = [self._history(sector).last for sector in range(first + count, self.size // SECTOR_BYTES)]
        self._move(first, [*moved, *[None] * count])
        self._moves.append((first, count))
        self._size.add(self.change, self.size - count * SECTOR_BYTES)
        self._least_size = min(self._least_size, self.size)

    def insert(self, first: int, count: int) -> None:
        """Note that zeros are put in, and that what was there moves away."""
        moved = [self._history(sector).last for sector in range(first, self.size // SECTOR_BYTES)]
        self._move(first, [*[None] * count, *moved])
        self._moves.append((first + count, -count))
        self._size.add(self.change, self.size + count * SECTOR_BYTES)

    def _move(self, first: int, sectors: Sequence[Sector]) -> None:
        """Note that sectors become those that were elsewhere, one extent after the other: meanwhile holes."""
        self.change += 1
        for sector, content in enumerate(sectors, first):
            self._history(sector).add(self.change, None)
            self._history(sector).add(self.change, content)

    def clone(self, source: File) -> None:
        """Note that a new file becomes a copy of another one."""
        self.change += 1
        self.shares = source.shares = True
        count = source.size // SECTOR_BYTES
        self._put(0, [source._history(sector).last for sector in range(count)])

    def promise(self) -> None:
        """Note that what was done will be found."""
        for sector, history in self._sectors.items():
            if sector * SECTOR_BYTES < self.size:
                history.promise(self.change)
        self._size.promise(self.change)
        self._moves.clear()

    def promise_range(self, first: int, count: int, *, has_metadata: bool = True) -> None:
        """Note that what these sectors hold now will be found; the size may be any that reaches there.

        Args:
            first: of the sectors.
            count: how many they are.
            has_metadata: whether it was synced, too, which blocks the file has, and where.
        """
        for sector in range(first, first + count):
            self._history(sector).promise(self.change)
        self._least_size = max(self._least_size, (first + count) * SECTOR_BYTES)
        if has_metadata:
            self._moves.clear()

    def is_in_place(self, first: int, count: int) -> bool:
        """Tell whether what is written to these sectors goes to where promised data is.

        Only of such a write no metadata has to follow. A sector that was a hole since the promise may have
        lost its block, and one of shared blocks gets another.
        """
        sectors = range(first, first + count)
        return not self.shares and all(None not in self._history(sector).possible for sector in sectors)

    def promised(self) -> int:
        """Return how many sectors hold data that has to be found."""
        return sum(None not in history.possible for history in self._sectors.values())

    def broken(self, data: bytes, *, anything_else: bool = False) -> str | None:
        """Say what of the promises does not hold for what a file is found to hold; None: they hold.

        Args:
            data: what was found.
            anything_else: whether a sector that was written and not synced since may hold anything, as in
                F2FS, whose checkpoints do not wait for data.
        """
        sizes = self._size.possible
        least = max(min(sizes), self._least_size)
        # Nobody writes, or cuts off, less than a sector.
        if not least <= len(data) <= self.largest or len(data) % SECTOR_BYTES:
            begin = f" that begin with {_told(data[:SECTOR_BYTES])}" if len(data) >= SECTOR_BYTES else ""
            return f"{len(data)} bytes{begin}, expected {least} to {self.largest} of file {self.number}"
        for sector in range(len(data) // SECTOR_BYTES):
            found = data[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
            possible = self._history(sector).possible
            if anything_else and len(possible) > 1:
                continue
            if not is_mixture(found, possible):
                return (
                    f"sector {sector} of {len(data) // SECTOR_BYTES} is {_told(found)}, expected {possible}"
                )
        return None

    def settle(self, data: bytes) -> None:
        """Begin anew with what was found, which is on the device and possible."""
        for sector in range(len(data) // SECTOR_BYTES):
            found = data[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES]
            known = (one for one in self._history(sector).possible if data_of(one) == found)
            self._sectors[sector] = History(next(known, found))
        for sector, history in self._sectors.items():
            if sector * SECTOR_BYTES >= len(data) and history.last is not None:
                history.add(self.change, None)
        self._size = History(len(data))
        self._least_size = 0
        self._moves.clear()

    def _history(self, sector: int) -> History[Sector]:
        return self._sectors.setdefault(sector, History(None))

    def _put(self, first: int, contents: Sequence[Sector]) -> None:
        for sector, content in enumerate(contents, first):
            self._history(sector).add(self.change, content)
            place = sector
            for begin, distance in reversed(self._moves):
                if place >= begin:
                    place += distance
                    self._history(place).may_be(content)
        self._grow((first + len(contents)) * SECTOR_BYTES)

    def _grow(self, size: int) -> None:
        if size > self.size:
            self._size.add(self.change, size)


def _told(found: bytes) -> str:
    """Say what a sector holds."""
    if found == ZEROS:
        return "zeros"
    magic, *words, _ = _STAMP.unpack_from(found)
    content = Content(*words[:3])
    return str(content) if magic == _MAGIC and content.data() == found else "something else"
