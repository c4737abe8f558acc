# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: write files with write streams in every way, and tell where the streams and blocks went.

After ``python -m tests.guest.streams``:

``bios WAY...``: how many sectors of each stream went to the device, by way of writing, as JSON.
``uring FILE STREAM``: a direct write that names a stream; prints the symbol of the error or 0.
``fill FILE STREAM``: write until the filesystem is full; prints the MiB that fitted.
``ags FILE...``: for each file its AGs and how many blocks of 4 KiB are in each, as JSON.
``scatter STREAM FILE...``: a process for each file fills every other block of it; then JSON as above.
``dirty STREAM FILE...``: make each file and leave a page of it dirty.
Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import re
import struct
import sys
import time
from collections import Counter
from multiprocessing import Process
from pathlib import Path
from threading import Thread

from guest.fiemap import extents
from guest.layout import SET_STREAM, WRITE_STREAM

BLOCK = 4096
FILE_BYTES = 1 << 20
SCATTERED_BYTES = 1 << 20
BEYOND = 200
NS_PER_S = 1_000_000_000
SYNC_FILE_RANGE_WRITE = 2
SYNC_FILE_RANGE_WRITE_AND_WAIT = 7
WRITE_NS = Path("/sys/kernel/config/labblk") / Path(os.environ["PWB_DEV"]).name / "write_ns"
TRACING = Path("/sys/kernel/tracing")
QUEUED = re.compile(r"block_bio_queue: \S+ W\S* \d+ \+ (\d+) \[.*\] stream (\d+)$", re.MULTILINE)

# include/uapi/linux/io_uring.h; the system calls have these numbers everywhere.
SETUP, ENTER = 425, 426
GETEVENTS = 1
OP_WRITE = 23
OFF_SQES = 0x10000000
SQE = struct.Struct("=BBHiQQIIQHHB19x")
LIBC = ctypes.CDLL(None, use_errno=True)


def set_stream(fd: int, stream: int) -> None:
    """Give a file a write stream."""
    fcntl.ioctl(fd, WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0))


def block_of(byte: int, size: int = BLOCK) -> mmap.mmap:
    """Return memory that direct writes take, filled."""
    memory = mmap.mmap(-1, size)
    memory.write(bytes([byte]) * size)
    return memory


def uring_write(fd: int, data: mmap.mmap, offset: int, stream: int) -> int:
    """Write by io_uring, naming a stream; return the result, negative for an error."""
    params = ctypes.create_string_buffer(120)
    ring = LIBC.syscall(SETUP, 1, params)
    if ring < 0:
        raise OSError(ctypes.get_errno(), "io_uring_setup")
    # struct io_uring_params: ten numbers, then the offsets of both rings.
    sq_tail, sq_array = (struct.unpack_from("=I", params, 40 + 4 * i)[0] for i in (1, 6))
    cqes = struct.unpack_from("=I", params, 80 + 4 * 5)[0]
    with mmap.mmap(ring, mmap.PAGESIZE) as rings, mmap.mmap(ring, mmap.PAGESIZE, offset=OFF_SQES) as sqes:
        address = ctypes.addressof(ctypes.c_char.from_buffer(data))
        entry = SQE.pack(OP_WRITE, 0, 0, fd, offset, address, len(data), 0, 0, 0, 0, stream)
        sqes[: len(entry)] = entry
        struct.pack_into("=I", rings, sq_array, 0)
        struct.pack_into("=I", rings, sq_tail, 1)
        if LIBC.syscall(ENTER, ring, 1, 1, GETEVENTS, None, 0) != 1:
            raise OSError(ctypes.get_errno(), "io_uring_enter")
        (result,) = struct.unpack_from("=i", rings, cqes + 8)
    os.close(ring)
    return int(result)


def opened(path: str, stream: int, *, direct: bool = False) -> int:
    """Open a file of a megabyte of zeros that is all on the device, with a stream."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, bytes(FILE_BYTES))
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    fd = os.open(path, os.O_RDWR | (os.O_DIRECT if direct else 0))
    set_stream(fd, stream)
    return fd


def buffered(stream: int) -> None:
    """Write by write()."""
    fd = opened("buffered", stream)
    os.pwrite(fd, b"1" * FILE_BYTES, 0)
    os.fsync(fd)


def direct(stream: int) -> None:
    """Write past the page cache, into a hole besides."""
    fd = opened("direct", stream, direct=True)
    for offset in range(0, FILE_BYTES // 2, BLOCK):
        os.pwrite(fd, block_of(2), offset)
    for offset in range(FILE_BYTES, FILE_BYTES + FILE_BYTES // 2, BLOCK):
        os.pwrite(fd, block_of(2), offset)
    os.fsync(fd)


def mapped(stream: int) -> None:
    """Write to memory."""
    fd = opened("mapped", stream)
    with mmap.mmap(fd, FILE_BYTES) as mapping:
        mapping[:] = b"3" * FILE_BYTES
        mapping.flush()
    os.fsync(fd)


def uring(stream: int) -> None:
    """Write past the page cache by io_uring, which names no stream."""
    fd = opened("uring", stream, direct=True)
    for offset in range(0, FILE_BYTES, BLOCK):
        assert uring_write(fd, block_of(4), offset, 0) == BLOCK
    os.fsync(fd)


def named(stream: int) -> None:
    """Write by io_uring, which names a stream; the file has another."""
    fd = opened("named", stream % 2 + 1, direct=True)
    for offset in range(0, FILE_BYTES, BLOCK):
        assert uring_write(fd, block_of(5), offset, stream) == BLOCK
    os.fsync(fd)


def beyond(stream: int) -> None:
    """Write by io_uring, which names a stream that the device does not have."""
    fd = opened("beyond", stream, direct=True)
    for offset in range(0, FILE_BYTES, BLOCK):
        assert uring_write(fd, block_of(9), offset, BEYOND) == BLOCK
    os.fsync(fd)


def cached(stream: int) -> None:
    """Write to the page cache by io_uring, which names streams that the device has and has not."""
    fd = opened("cached", stream)
    for offset in range(0, FILE_BYTES, BLOCK):
        assert uring_write(fd, block_of(10), offset, 1 if offset % (2 * BLOCK) else BEYOND) == BLOCK
    os.fsync(fd)


def changed(stream: int) -> None:
    """Write by write(), with the stream for the second half only; both are dirty when it is set."""
    fd = opened("changed", 0)
    # Block by block, so that no folio lies in both halves.
    for offset in range(0, FILE_BYTES, BLOCK):
        os.pwrite(fd, b"6" * BLOCK, offset)
    half = FILE_BYTES // 2
    # The first half only, without a change of metadata.
    if LIBC.sync_file_range(fd, ctypes.c_long(0), ctypes.c_long(half), SYNC_FILE_RANGE_WRITE_AND_WAIT):
        raise OSError(ctypes.get_errno(), "sync_file_range")
    set_stream(fd, stream)
    os.fsync(fd)


def between(stream: int) -> None:
    """Get the stream while a flusher has one page in hand and waits for the next: a bio could hold both.

    It waits because the page is on its way to a slow device already, and has been written again since.
    """
    (TRACING / "events/iomap/iomap_add_to_ioend/enable").write_text("1")
    fd = opened("between", 0)
    second = ctypes.c_long(BLOCK)
    while True:
        set_stream(fd, 0)
        WRITE_NS.write_text(str(NS_PER_S))
        os.pwrite(fd, b"7" * BLOCK, BLOCK)
        if LIBC.sync_file_range(fd, second, second, SYNC_FILE_RANGE_WRITE):
            raise OSError(ctypes.get_errno(), "sync_file_range")
        os.pwrite(fd, b"7" * 2 * BLOCK, 0)
        flusher = Thread(target=os.fsync, args=(fd,))
        (TRACING / "trace").write_text("")
        flusher.start()
        while flusher.is_alive() and not (
            "iomap_add_to_ioend:" in (TRACING / "trace").read_text() and is_asleep(flusher)
        ):
            time.sleep(0.01)
        set_stream(fd, stream)
        in_time = not QUEUED.search((TRACING / "trace").read_text())
        WRITE_NS.write_text("0")
        flusher.join()
        if in_time:
            return


def is_asleep(thread: Thread) -> bool:
    """Tell whether a thread waits for I/O; it may have ended."""
    try:
        status = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(") ")[2].startswith("D")


WAYS = (buffered, direct, mapped, uring, named, changed, beyond, cached, between)


def bios(wanted: list[str]) -> dict[str, dict[str, int]]:
    """Write in these ways, each with a stream of its own, and count sectors by stream; 0 is left out."""
    found = {}
    (TRACING / "events/block/block_bio_queue/enable").write_text("1")
    ways = [way for way in WAYS if way.__name__ in wanted]
    for number, way in enumerate(ways, 1):
        (TRACING / "trace").write_text("")
        way(number)
        sectors: Counter[str] = Counter()
        for count, stream in QUEUED.findall((TRACING / "trace").read_text()):
            sectors[stream] += int(count)
        sectors.pop("0", None)
        found[way.__name__] = dict(sectors)
    return found


def ags(paths: list[str]) -> dict[str, dict[str, int]]:
    """Return the AGs of files."""
    info = os.popen("xfs_info .").read()
    ag_bytes = int(re.search(r"agsize=(\d+) blks", info)[1]) * BLOCK  # type: ignore[index]
    found = {}
    for path in paths:
        blocks: Counter[str] = Counter()
        for physical, length in extents(Path(path)):
            for byte in range(physical, physical + length, BLOCK):
                blocks[str(byte // ag_bytes)] += 1
        found[path] = dict(blocks)
    return found


def scatter_one(path: str, stream: int) -> None:
    """Fill every other block of a file directly: each has to be allocated."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    if stream:
        set_stream(fd, stream)
    data = block_of(7)
    for offset in range(0, SCATTERED_BYTES, 2 * BLOCK):
        os.pwrite(fd, data, offset)
    os.fsync(fd)


def scatter(stream: int, paths: list[str]) -> dict[str, dict[str, int]]:
    """Fill files side by side and return their AGs."""
    writers = [Process(target=scatter_one, args=(path, stream)) for path in paths]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    return ags(paths)


def dirty(stream: int, paths: list[str]) -> None:
    """Make files, each with its stream before its first page, and write nothing back."""
    for path in paths:
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        if stream:
            set_stream(fd, stream)
        os.pwrite(fd, bytes(BLOCK), 0)
        os.close(fd)


def fill(path: str, stream: int) -> int:
    """Write until there is no space; return the MiB that fitted."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    if stream:
        set_stream(fd, stream)
    written = 0
    try:
        while True:
            written += os.write(fd, bytes(FILE_BYTES))
            if written % (8 * FILE_BYTES) == 0:
                os.fsync(fd)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    return written >> 20


def main(mode: str, *arguments: str) -> None:
    """Do what is asked for, in the current folder."""
    if mode == "bios":
        print(json.dumps(bios(list(arguments))))
    elif mode == "ags":
        print(json.dumps(ags(list(arguments))))
    elif mode == "scatter":
        print(json.dumps(scatter(int(arguments[0]), list(arguments[1:]))))
    elif mode == "dirty":
        dirty(int(arguments[0]), list(arguments[1:]))
    elif mode == "fill":
        print(fill(arguments[0], int(arguments[1])))
    else:
        fd = os.open(arguments[0], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        result = uring_write(fd, block_of(8), 0, int(arguments[1]))
        print(errno.errorcode[-result] if result < 0 else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
