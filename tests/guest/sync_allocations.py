# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: does a sync keep its promise that gets no memory?

``python -m tests.guest.sync_allocations FAIL_NTH FS``. Standard library only.

A sync tells each writeback what to do: one of each context and cgroup. It allocates an order for each, and
waits for each by itself where it cannot. Files of two cgroups are dirty in eight contexts, nobody writes but
the call that has to, and of its allocations the first fails, then the second, until it makes no more; at last
all of those that may not wait for memory. Then the filesystem is shut down without a flush, mounted, and what
the call has promised is there. Without a call it is not.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.guest.kernel_log import Log
from tests.guest.lab_device import fail, flush
from tests.guest.scarce import (
    CGROUPS,
    CONTEXTS,
    FAILURES,
    MOUNT,
    Program,
    Sites,
    device,
    drop,
    every_number,
    in_cgroup,
    mount,
    mounted,
    read,
    umount,
)
from tests.guest.syncproof import SHUTDOWN, WITHOUT_FLUSH

GROUPS = tuple(CGROUPS / f"synced{number}" for number in range(2))
PAGE_BYTES = 4096
FILES = 4 * CONTEXTS
# A flusher that is woken, as by the first dirty inode, also writes what exceeds its share of the background
# limit, which is nothing for one that has written nothing for a while: none is woken for 1,000 s.
ASLEEP = {"dirty_writeback_centisecs": 100_000, "dirty_expire_centisecs": 100_000}
# Pages of so high an order nobody allocates.
NO_ORDER = 20
#: Where a sync allocates its orders.
SPLIT = "bdi_split_work_to_wbs"
#: Calls that promise.
OPERATIONS = ("syncfs", "sync", "fsync", "umount")


class Promises:
    """Files of two cgroups, and the version that each holds."""

    def __init__(self, fs: str) -> None:
        """Make the cgroups and the files."""
        self._fs = fs
        self._version = 0
        self.of_group = [[MOUNT / f"{group.name}-{index}" for index in range(FILES)] for group in GROUPS]
        for group in GROUPS:
            group.mkdir()
        self.dirty()
        os.sync()

    def dirty(self) -> None:
        """Write a new version of every file, each in its cgroup."""
        self._version += 1
        # A page belongs to the cgroup that has read it, and with its first dirty one so does the inode.
        drop()
        for group, paths in zip(GROUPS, self.of_group, strict=True):
            in_cgroup(group, functools.partial(self._write, paths))

    def _write(self, paths: list[Path]) -> bool:
        for path in paths:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT)
            os.pwrite(fd, self._content(), 0)
            os.close(fd)
        return True

    def _content(self) -> bytes:
        return self._version.to_bytes(8, "little") * (PAGE_BYTES // 8)

    def cut_off(self) -> None:
        """Shut the filesystem down without a flush, and mount it again."""
        root = os.open(MOUNT, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(root, SHUTDOWN, WITHOUT_FLUSH)
        os.close(root)
        umount()
        self.mount()

    def mount(self) -> None:
        """Mount it again."""
        mount(self._fs)

    def missing(self, paths: list[Path]) -> int:
        """Return how many of some files do not hold the last version."""
        return sum(read(path) != self._content() for path in paths)

    def all_files(self) -> list[Path]:
        """Return the files of both cgroups."""
        return [path for paths in self.of_group for path in paths]


def lie(promises: Promises) -> None:
    """See that nothing is there that nobody has asked to be written."""
    promises.dirty()
    promises.cut_off()
    if promises.missing(promises.all_files()) != len(promises.all_files()):
        fail("files were written though nobody has asked: this test would see nothing")


def durable(program: Program, promises: Promises, operation: str, number: int | str) -> bool:
    """Have the last versions written by a call whose allocation of this number fails, and compare."""
    one = promises.of_group[1][0]
    promised = [one] if operation == "fsync" else promises.all_files()
    words = {"syncfs": [one], "fsync": [one], "umount": [MOUNT]}.get(operation, [])
    promises.dirty()
    outcome = program.outcome(number, operation, *words)
    if operation != "umount":
        promises.cut_off()
    elif outcome.is_done:
        promises.mount()
    missing = promises.missing(promised) if outcome.is_done else 0
    if missing:
        fail(f"{operation} without allocation {number}: {missing} of {len(promised)} files are missing")
    return outcome.has_failed


@contextlib.contextmanager
def no_memory_at_once() -> Iterator[None]:
    """Let no slab give what must not be waited for to a task that is made to fail."""
    settings = {"ignore-gfp-wait": "Y", "probability": "100", "times": "-1", "task-filter": "Y"}
    for name, value in settings.items():
        (FAILURES / "failslab" / name).write_text(value)
    yield
    (FAILURES / "failslab" / "probability").write_text("0")
    (FAILURES / "failslab" / "ignore-gfp-wait").write_text("N")


def main(path: str, fs: str) -> None:
    """Try every call."""
    log = Log()
    program = Program(path)
    with device(program), mounted(fs):
        flush(ASLEEP)
        # Orders come from slabs. One that grows would take the failure, and get by with fewer pages.
        (FAILURES / "fail_page_alloc" / "min-order").write_text(str(NO_ORDER))
        sites = Sites()
        promises = Promises(fs)
        parts: dict[str, Callable[[], object]] = {"nothing": functools.partial(lie, promises)}
        for operation in OPERATIONS:
            call = functools.partial(durable, program, promises, operation)
            parts[operation] = functools.partial(every_number, call)
            parts[f"{operation} without any"] = functools.partial(call, "every")
        for name, part in parts.items():
            program.failed = 0
            sites.since()
            without_any = no_memory_at_once() if name.endswith("any") else contextlib.nullcontext()
            with log.only_reports(allowed=()), without_any:
                part()
            print(f"{name}: {program.failed} calls, {sites.since()[SPLIT]} orders failed", flush=True)
    for group in GROUPS:
        group.rmdir()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
