# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with ROUNDS: does AG-aware writeback of XFS fragment files, and how much?

Four jobs write a sparse file each, in an AG of its own, in random order and each block once, in one mode
after the other. What is noted is how many extents each file gets, and how many pages it
has in memory when writeback comes to it. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from guest.fiemap import extents
from guest.record import leave
from lab.probes.ag import modes

MODES = ("off", "ag-hint", "rotor")
FILES = 4
FILE_MIB = 32
PAGE = 4096
PAGES = (FILE_MIB << 20) // PAGE
DIRTY_BYTES = 24 << 20
# Writeback has begun in earnest when it has written one page in twenty.
BEGUN_PAGES = PAGES // 20
INTERVAL_S = 0.01
JOB = (
    f"fio --name=job --rw=randwrite --bs=4k --size={FILE_MIB}m --numjobs={FILES} --invalidate=0 "
    "--filename_format=d$jobnum/file --fallocate=none --output=/dev/null"
)
# The same number on every architecture (include/uapi/asm-generic/unistd.h).
SYS_CACHESTAT = 451
libc = ctypes.CDLL(None, use_errno=True)


def cache(file: int) -> tuple[int, int]:
    """Return how many pages of an open file are in memory, and how many of these are dirty or being written.

    Raises:
        OSError: the kernel has no cachestat(2).
    """
    # struct cachestat_range, with a length of 0 up to the end, and struct cachestat (uapi/linux/mman.h)
    everything = (ctypes.c_uint64 * 2)()
    counts = (ctypes.c_uint64 * 5)()
    if libc.syscall(SYS_CACHESTAT, file, everything, counts, 0):
        raise OSError(ctypes.get_errno(), "cachestat")
    return counts[0], counts[1] + counts[2]


def pages_when_begun(samples: Sequence[tuple[int, int]]) -> int:
    """Return how many pages a file had in memory when writeback had begun.

    Args:
        samples: what :func:`cache` said, over time.

    Returns:
        That number; all of its pages if it was not seen to begin.
    """
    return next((pages for pages, dirty in samples if pages - dirty >= BEGUN_PAGES), PAGES)


def turn(mount: Path, folder: Path, mode: str) -> Iterator[tuple[int, int]]:
    """Have new files written in a mode.

    Yields:
        For each file the pages that it had in memory when writeback had begun, and its extents.
    """
    modes.choose(folder, mode)
    # XFS gives each new directory to the next AG.
    paths = [mount / f"d{number}" / "file" for number in range(FILES)]
    files = []
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        files.append(os.open(path, os.O_RDWR | os.O_CREAT))
        os.ftruncate(files[-1], FILE_MIB << 20)
    os.sync()
    jobs = subprocess.Popen([*JOB.split(), f"--directory={mount}"])
    samples: list[list[tuple[int, int]]] = [[] for _ in files]
    while jobs.poll() is None:
        for file, of_file in zip(files, samples, strict=True):
            of_file.append(cache(file))
        time.sleep(INTERVAL_S)
    if jobs.returncode:
        sys.exit("fio failed: see its message above")
    os.sync()
    for path, file, of_file in zip(paths, files, samples, strict=True):
        yield pages_when_begun(of_file), sum(1 for _ in extents(path))
        os.close(file)
        path.unlink()


def main(rounds: int) -> int:
    """Measure each mode in so many rounds."""
    mount = Path(os.environ["PWB_MNT"])
    folder = modes.folder()
    Path("/proc/sys/vm/dirty_bytes").write_text(str(DIRTY_BYTES))
    Path("/proc/sys/vm/dirty_background_bytes").write_text(str(DIRTY_BYTES // 2))
    order = random.Random(0)
    seen: dict[str, list[tuple[int, int]]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        for mode in order.sample(MODES, len(MODES)):
            seen[mode] += turn(mount, folder, mode)
    leave(seen)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
