# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: how many pages flushers are told to write after a write with RWF_DONTCACHE.

Four contexts have a dirty file each, and one of these is written so. Standard library only.
"""

from __future__ import annotations

import os
import re

from tests.guest.held import MNT, PAGE, flush_periodically, trace, traced, until

CONTEXTS = 4
PAGES = 256
RWF_DONTCACHE = 0x80


def main() -> None:
    """Print the most pages that a flusher was told to write, with all files dirty."""
    flush_periodically(centiseconds=0)
    files: dict[int, int] = {}
    for number in range(64):
        fd = os.open(MNT / str(number), os.O_RDWR | os.O_CREAT)
        if files.setdefault(os.fstat(fd).st_ino % CONTEXTS, fd) == fd:
            os.pwrite(fd, bytes(PAGES * PAGE), 0)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for fd in files.values():
        os.pwrite(fd, bytes(PAGE), 0)
    trace("writeback/writeback_start")
    os.pwritev(files[0], [bytes(PAGES * PAGE)], 0, RWF_DONTCACHE)
    started = re.compile(r"writeback_start: .* nr_pages=(\d+) .* reason=dontcache")
    until(lambda: any(started.search(line) for line in traced()))
    print(len(files), max(int(found[1]) for found in map(started.search, traced()) if found))


if __name__ == "__main__":
    main()
