# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with ``streams`` or ``none``: where do the blocks of eight writers go?

Eight processes append to a file each, in one directory, side by side; with ``streams`` each file has a write
stream of its own. Python's standard library only.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import sys
from multiprocessing import Barrier, Process
from multiprocessing.synchronize import Barrier as BarrierType
from pathlib import Path

from guest.fiemap import extents
from guest.layout import SET_STREAM, WRITE_STREAM
from guest.record import leave

WRITERS = 8
CHUNK_BYTES = 64 << 10
FILE_BYTES = 24 << 20


def write(path: Path, stream: int, begin: BarrierType) -> None:
    """Append to a file, past the page cache, once all writers are there."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT, 0o644)
    if stream:
        fcntl.ioctl(fd, WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0))
    chunk = mmap.mmap(-1, CHUNK_BYTES)
    chunk.write(os.urandom(CHUNK_BYTES))
    begin.wait()
    for _ in range(FILE_BYTES // CHUNK_BYTES):
        os.write(fd, chunk)
    os.fsync(fd)


def main(arguments: list[str]) -> int:
    """Write, and tell where each file lies."""
    mount = Path(os.environ["PWB_MNT"])
    device = Path(os.environ["PWB_DEV"]).resolve().name
    with_streams = arguments == ["streams"]
    if with_streams:
        Path(f"/sys/fs/xfs/{device}/write_streams/software").write_text(str(WRITERS))
    begin = Barrier(WRITERS)
    paths = [mount / f"file.{number}" for number in range(WRITERS)]
    writers = [
        Process(target=write, args=(path, number if with_streams else 0, begin))
        for number, path in enumerate(paths, 1)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if any(writer.exitcode for writer in writers):
        return 1
    found = {
        "device_bytes": int(Path(f"/sys/block/{device}/size").read_text()) * 512,
        "files": [list(extents(path)) for path in paths],
    }
    leave(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
