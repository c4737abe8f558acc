# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: how many pages flushers are told to write after a write with RWF_DONTCACHE.

Four contexts have a dirty file each, and one of these is written so. Standard library only.
"""

from __future__ import annotations

import os
import re

from tests.guest import held

CONTEXTS = 4
PAGES = 256
RWF_DONTCACHE = 0x80


def main() -> None:
    """Print the most pages that a flusher was told to write, with all files dirty."""
    held.flush_periodically(centiseconds=0)
    files: dict[int, int] = {}
    for number in range(64):
        fd = os.open(held.MNT / str(number), os.O_RDWR | os.O_CREAT)
        if files.setdefault(os.fstat(fd).st_ino % CONTEXTS, fd) == fd:
            os.pwrite(fd, bytes(PAGES * held.PAGE), 0)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    for fd in files.values():
        os.pwrite(fd, bytes(held.PAGE), 0)
    held.trace("writeback/writeback_start")
    os.pwritev(files[0], [bytes(PAGES * held.PAGE)], 0, RWF_DONTCACHE)
    started = re.compile(r"writeback_start: .* nr_pages=(\d+) .* reason=dontcache")
    held.until(lambda: any(started.search(line) for line in held.traced()))
    print(len(files), max(int(found[1]) for found in map(started.search, held.traced()) if found))


if __name__ == "__main__":
    main()
