# SPDX-License-Identifier: GPL-2.0
"""Where the blocks of a file lie, by FS_IOC_FIEMAP. Python's standard library only."""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

# _IOWR('f', 11, struct fiemap) of include/uapi/linux/fiemap.h.
FIEMAP = 3 << 30 | 32 << 16 | ord("f") << 8 | 11
HEAD = struct.Struct("=2Q4I")
EXTENT = struct.Struct("=5Q4I")
# FIEMAP_FLAG_SYNC
SYNC = 1
COUNT = 4096
UINT64_MAX = (1 << 64) - 1


def extents(path: Path) -> Iterator[tuple[int, int]]:
    """Yield where each extent of a file begins on the device, and how long it is, in bytes."""
    fd = os.open(path, os.O_RDONLY)
    try:
        start = 0
        while True:
            buffer = bytearray(HEAD.pack(start, UINT64_MAX - start, SYNC, 0, COUNT, 0))
            buffer += bytes(EXTENT.size * COUNT)
            fcntl.ioctl(fd, FIEMAP, buffer)
            mapped = HEAD.unpack_from(buffer)[3]
            for number in range(mapped):
                place = HEAD.size + number * EXTENT.size
                logical, physical, length, *_ = EXTENT.unpack_from(buffer, place)
                start = logical + length
                yield physical, length
            if mapped < COUNT:
                return
    finally:
        os.close(fd)
