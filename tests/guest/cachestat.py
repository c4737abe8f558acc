# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: which pages of a file are dirty, and which are being written. Standard library only."""

from __future__ import annotations

import ctypes
import os

from tests.guest.agwb import LIBC
from tests.guest.lab_device import fail
from tests.guest.resize import PAGE_BYTES

CACHESTAT = 451


class Range(ctypes.Structure):
    """struct cachestat_range."""

    _fields_ = (("off", ctypes.c_uint64), ("len", ctypes.c_uint64))


class Cached(ctypes.Structure):
    """struct cachestat."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cache", "dirty", "writeback", "evicted", "recently")
    )


def unwritten(fd: int, first: int = 0, pages: int = 0) -> tuple[int, int]:
    """Return how many pages are dirty, and how many are being written; without a range, of the whole file."""
    found = Cached()
    span = Range(first * PAGE_BYTES, pages * PAGE_BYTES)
    if LIBC.syscall(CACHESTAT, fd, ctypes.byref(span), ctypes.byref(found), 0):
        fail(f"cachestat: {os.strerror(ctypes.get_errno())}")
    return found.dirty, found.writeback


def states(fd: int, first: int, pages: int) -> tuple[set[int], set[int]]:
    """Return which pages of a range are dirty, and which are clean; each at some time of the call.

    What is neither is being written.
    """
    dirty, writeback = unwritten(fd, first, pages)
    here = set(range(first, first + pages))
    if dirty == pages:
        return here, set()
    if dirty + writeback == 0:
        return set(), here
    if pages in (writeback, 1):
        return set(), set()
    half = pages // 2
    left, right = states(fd, first, half), states(fd, first + half, pages - half)
    return left[0] | right[0], left[1] | right[1]
