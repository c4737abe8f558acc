# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: files whose every byte follows from the versions of their pages. Standard library only.

What a page must hold follows from its file, its number and its version, as in resize.py; version 0 is a page
of zeros.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import random
import struct
from collections.abc import Callable, Iterator

from tests.guest.lab_device import MOUNT, fail
from tests.guest.resize import PAGE_BYTES, content, finish, shared_words, start, store

# What is read and written in one call where nothing depends on the size.
PIECE_PAGES = 64
OPERATIONS = 600


class File:
    """A file and what it must hold; the versions are shared with the processes that write."""

    def __init__(self, number: int, pages: int) -> None:
        """Name a file of at most so many pages; directories put files into different groups."""
        self.number = number
        self.path = MOUNT / f"dir{number}" / "data"
        self.versions = shared_words(pages)
        # How many pages it has.
        self.size = shared_words(1)
        # A page that cannot be read any more, plus 1.
        self.lost = shared_words(1)

    @property
    def most_pages(self) -> int:
        """Return how many pages it may have."""
        return len(self.versions)

    def write(self, fd: int, page: int) -> None:
        """Write the next version of a page."""
        self._put(fd, content(self.number, page, self.versions[page] + 1), page)
        self.versions[page] += 1

    def _put(self, fd: int, data: bytes, page: int) -> None:
        """Write whole pages from one on."""
        if os.pwrite(fd, data, page * PAGE_BYTES) != len(data):
            raise OSError(errno.ENOSPC, "short write")
        self.size[0] = max(self.size[0], page + len(data) // PAGE_BYTES)

    def content(self, first: int, end: int) -> bytes:
        """Return what pages must hold."""
        pages = enumerate(self.versions[first:end], first)
        return b"".join(
            content(self.number, page, version) if version else bytes(PAGE_BYTES) for page, version in pages
        )

    def write_all(self) -> None:
        """Write a version of every page, in order."""
        self.path.parent.mkdir(exist_ok=True)
        with self.open() as fd:
            for first in range(0, self.most_pages, PIECE_PAGES):
                end = min(first + PIECE_PAGES, self.most_pages)
                for page in range(first, end):
                    self.versions[page] += 1
                self._put(fd, self.content(first, end), first)

    def cut(self, page: int) -> None:
        """Note that the file ends before a page."""
        self.zero(page, self.size[0])
        self.size[0] = page

    def zero(self, first: int, end: int) -> None:
        """Note that pages hold zeros."""
        for page in range(first, end):
            self.versions[page] = 0

    @contextlib.contextmanager
    def open(self, flags: int = os.O_RDWR | os.O_CREAT) -> Iterator[int]:
        """Open the file, made if need be, as a descriptor."""
        fd = os.open(self.path, flags)
        try:
            yield fd
        finally:
            os.close(fd)

    def compare(self) -> None:
        """Compare every byte with what was written last, but for a page that is lost."""
        with self.open(os.O_RDONLY) as fd:
            if os.fstat(fd).st_size != self.size[0] * PAGE_BYTES:
                fail(f"{self.path} does not have {self.size[0]} pages")
            lost = self.lost[0] - 1 if self.lost[0] else self.size[0]
            self._compare(fd, 0, lost)
            self._compare(fd, lost + 1, self.size[0])

    def _compare(self, fd: int, first: int, end: int) -> None:
        """Compare some pages, a piece at a time."""
        for begin in range(first, end, PIECE_PAGES):
            pages = range(begin, min(begin + PIECE_PAGES, end))
            data = os.pread(fd, len(pages) * PAGE_BYTES, begin * PAGE_BYTES)
            if data == self.content(pages.start, pages.stop):
                continue
            for page in pages:
                at = (page - begin) * PAGE_BYTES
                found = data[at : at + PAGE_BYTES]
                if found != self.content(page, page + 1):
                    what = struct.unpack("<3Q", found.ljust(24, b"\0")[:24])
                    fail(f"page {page} of {self.path} is {what}, not version {self.versions[page]}")


def together(work: Callable[[File], None], files: list[File]) -> None:
    """Do something with each file, in a process each, and wait for all."""
    finish([start(work, file) for file in files])


def overwrite_some(file: File, operations: int = OPERATIONS) -> None:
    """Overwrite pages at random, by write() and mapped, with an fsync() now and then."""
    # A further call goes on at other pages, also in another process: what was written so far decides.
    choose = random.Random(f"{file.number} {sum(file.versions)}")
    with file.open() as fd, mmap.mmap(fd, file.size[0] * PAGE_BYTES) as mapped:
        for _ in range(operations):
            page = choose.randrange(file.size[0])
            if choose.random() < 0.25:
                store(mapped, page * PAGE_BYTES, content(file.number, page, file.versions[page] + 1))
                file.versions[page] += 1
            else:
                file.write(fd, page)
            if choose.random() < 0.001:
                os.fsync(fd)
