# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the first mount of a device finds no memory for the device's contexts.

``python -m tests.guest.mount_allocations FAIL_NTH FS``, the program tests/guest/fail_nth.c. Such a mount has
one context, and the next one has them all. Nothing else of a mount fails: that is stock's business, and F2FS
has an allocation for each of hundreds of segments. So the trace of a mount with memory tells which of its
allocations is to fail. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.guest.kernel_log import Log
from tests.guest.scarce import (
    FAILURES,
    MAKE,
    MOUNT,
    NAME,
    NODE,
    TRACE,
    Program,
    Sites,
    device,
    drop,
    mount,
    umount,
)

CONTEXTS = 4
FILES = tuple(MOUNT / f"file{index}" for index in range(2 * CONTEXTS))
FILE_BYTES = 4096
# A device on top of the whole device, that was never mounted.
UPPER = Path("/dev/mapper/upper")
# A compiler may make one function of two.
ENABLING = {"sb_enable_wb_ctx", "bdi_grow_wb_ctx_arr"}
KMALLOC = re.compile(r"kmalloc: call_site=(\w+).* bytes_req=(\d+) ")
# Each has a cache of slabs; these have others, or cannot fail.
KMALLOC_BYTES = (8, 16, 32, 64, 96, 128, 192, 256, 512)
OTHER = re.compile(r"__GFP_NOFAIL|__GFP_RECLAIMABLE|accounted=true")
# No call makes so many allocations.
NONE = 1_000_000


class Kmalloc(NamedTuple):
    """A small allocation: by which function, and from which cache."""

    function: str
    cache: str


@contextlib.contextmanager
def upper_device() -> Iterator[str]:
    """Have the device, with contexts for the taking; yields the name of its BDI."""
    sectors = Path("/sys/class/block", NAME, "size").read_text().strip()
    table = f"0 {sectors} linear {NODE} 0"
    subprocess.run(["dmsetup", "create", UPPER.name, "--table", table], check=True)
    subprocess.run(["dmsetup", "mknodes"], check=True)
    number = UPPER.stat().st_rdev
    bdi = Path("/sys/class/bdi", f"{os.major(number)}:{os.minor(number)}")
    (bdi / "nwritebacks").write_text(str(CONTEXTS))
    (bdi / "wb_affinity").write_text("rotor")
    yield bdi.name
    subprocess.run(["dmsetup", "remove", "--retry", UPPER.name], check=True)


@contextlib.contextmanager
def kmallocs() -> Iterator[list[Kmalloc]]:
    """Yield a list, which at the end has the small allocations of calls in their order."""
    trace = TRACE / "instances" / "kmallocs"
    trace.mkdir()
    (trace / "events/kmem/kmalloc/filter").write_text('comm == "call"')
    (trace / "events/kmem/kmalloc/enable").write_text("1")
    made: list[Kmalloc] = []
    yield made
    for line in (trace / "trace").read_text().splitlines():
        found = KMALLOC.search(line)
        if found and not OTHER.search(line) and int(found[2]) <= KMALLOC_BYTES[-1]:
            size = next(size for size in KMALLOC_BYTES if int(found[2]) <= size)
            made.append(Kmalloc(found[1], f"kmalloc-{size}"))
    trace.rmdir()


@contextlib.contextmanager
def only_of(cache: str) -> Iterator[None]:
    """Have no allocation fail but from this cache."""
    knobs = {
        Path("/sys/kernel/slab", cache, "failslab"): "1",
        FAILURES / "failslab" / "cache-filter": "Y",
        # No pages: nobody asks for so many at once.
        FAILURES / "fail_page_alloc" / "min-order": "20",
    }
    before = {path: path.read_text() for path in knobs}
    for path, text in knobs.items():
        path.write_text(text)
    yield
    for path, text in before.items():
        path.write_text(text)


def contexts_of_files(bdi: str) -> int:
    """Write files and compare them; return how many contexts the device has then."""
    data = {path: os.urandom(FILE_BYTES) for path in FILES}
    for path, text in data.items():
        path.write_bytes(text)
    subprocess.run(["sync", "-f", str(MOUNT)], check=True)
    drop()
    for path, text in data.items():
        if path.read_bytes() != text:
            sys.exit(f"{path} holds something else")
    stats = Path("/sys/kernel/debug/bdi", bdi, "stats").read_text()
    return len(re.findall(r"^Context", stats, re.MULTILINE))


def place_of_enabling(program: Program, fs: str) -> tuple[str, int]:
    """Mount, and return the cache that the room for contexts comes from, and its number among those of it."""
    with upper_device(), kmallocs() as made:
        program.call(NONE, "mount", UPPER, MOUNT, fs)
        umount()
    before = [one.function in ENABLING for one in made].index(True)
    cache = made[before].cache
    return cache, 1 + sum(one.cache == cache for one in made[:before])


def first_mount(program: Program, fs: str) -> bool:
    """Mount without memory for contexts, and mount again; False if another allocation failed.

    Two mounts need not allocate the same: the second may find workers of the kernel that the first has made.
    """
    cache, number = place_of_enabling(program, fs)
    sites = Sites()
    with upper_device() as bdi:
        sites.since()
        with only_of(cache):
            program.call(number, "mount", UPPER, MOUNT, fs)
        if not ENABLING & sites.since().keys():
            if os.path.ismount(MOUNT):
                umount()
            return False
        without = contexts_of_files(bdi)
        umount()
        mount(fs, UPPER)
        contexts = contexts_of_files(bdi)
        umount()
    print(f"contexts: {without} without memory for more, {contexts} with")
    return True


def main(path: str, fs: str) -> None:
    """Do that for a filesystem."""
    log = Log()
    program = Program(path)
    with device(program), log.only_reports(allowed=()):
        subprocess.run([*MAKE[fs], str(NODE)], check=True)
        while not first_mount(program, fs):
            pass


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
