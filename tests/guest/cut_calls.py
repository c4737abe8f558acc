# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the device whose power is cut, and the calls that change its files, see cuts.py.

Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path

from tests.guest.promises import SECTOR_BYTES

NODE = Path("/dev/cuts")
MOUNT = Path("/tmp/cuts")
POWER = Path("/sys/kernel/config/labblk/cuts/power")

FICLONE = 0x40049409
# Modes of fallocate(), by what is done with them.
MODES = {"punch": 0x03, "zero": 0x10, "collapse": 0x08, "insert": 0x20, "reserve": 0x01, "unshare": 0x41}
# Of renameat2().
RENAME_EXCHANGE, AT_FDCWD = 2, -100
SYNC_FILE_RANGE_WRITE_AND_WAIT = 7
RWF_DONTCACHE = 0x80

LIBC = ctypes.CDLL(None, use_errno=True)


def called(name: str, *arguments: object) -> None:
    """Call a function of the C library that Python does not have, or fall over its error."""
    if getattr(LIBC, name)(*arguments):
        raise OSError(ctypes.get_errno(), name)


def bytes_of(first: int, count: int) -> tuple[ctypes.c_long, ctypes.c_long]:
    """Return the offset and the length of sectors in bytes, for a function of the C library."""
    return ctypes.c_long(first * SECTOR_BYTES), ctypes.c_long(count * SECTOR_BYTES)


@contextlib.contextmanager
def opened(path: Path, flags: int = 0) -> Iterator[int]:
    """Open a file for reading and writing, as a descriptor."""
    fd = os.open(path, os.O_RDWR | flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


def put(fd: int, first: int, data: bytes | mmap, flags: int = 0) -> None:
    """Write sectors, with flags of pwritev2()."""
    if os.pwritev(fd, [data], first * SECTOR_BYTES, flags) != len(data):
        raise OSError(errno.EIO, "a short write")


def flush_device() -> None:
    """Have the device write what its cache holds."""
    node = os.open(NODE, os.O_RDONLY)
    try:
        os.fsync(node)
    finally:
        os.close(node)


def has_power() -> bool:
    """Tell whether the power is on; what failed before was not for want of it then."""
    return POWER.read_text() == "1\n"


def has_returned_in_time() -> None:
    """Fail as the call before should have if the power was gone when it returned: then nobody heard of it.

    Filesystems may call a sync done that comes after they have given up, stock ones too: XFS that of a
    directory, F2FS syncfs().
    """
    if not has_power():
        raise OSError(errno.EIO, "the power is gone")
