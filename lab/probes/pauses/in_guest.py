# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with LIMIT_MIB: dirty pages and the pauses of writers over time.

Four processes overwrite 4 KiB at random places of a file each, and note every write() that took long: that
is where the kernel throttles them. Python's standard library only.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from guest.record import leave

MIB = 1 << 20
PAGE = 4096
WRITERS = 4
FILE_BYTES = 512 * MIB
SECONDS = 15
SAMPLE_S = 0.05
# A write() that is not throttled takes some 30 us here.
PAUSE_S = 0.002


def write(number: int, begin: float) -> list[tuple[float, float]]:
    """Overwrite a file at random until the time is up; return when each pause began, and its seconds."""
    place = random.Random(number)
    page = os.urandom(PAGE)
    fd = os.open(f"data.{number}", os.O_WRONLY)
    pauses = []
    now = time.monotonic()
    while now < begin + SECONDS:
        os.pwrite(fd, page, place.randrange(FILE_BYTES // PAGE) * PAGE)
        then, now = now, time.monotonic()
        if now - then >= PAUSE_S:
            pauses.append((round(then - begin, 4), round(now - then, 4)))
    return pauses


def dirty_mib() -> float:
    """Return the MiB of dirty pages and pages under writeback."""
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return (int(counts["nr_dirty"]) + int(counts["nr_writeback"])) * PAGE / MIB


def main(arguments: list[str]) -> int:
    """Lay out the files, set the limit, and run the writers beside a sampler."""
    limit = int(arguments[0]) * MIB
    results = Path(os.environ["PWB_RESULTS"])
    for number in range(WRITERS):
        with open(f"data.{number}", "wb") as file:
            for _ in range(FILE_BYTES // MIB):
                file.write(os.urandom(PAGE) * (MIB // PAGE))
    os.sync()
    Path("/proc/sys/vm/dirty_bytes").write_text(str(limit))
    Path("/proc/sys/vm/dirty_background_bytes").write_text(str(limit // 2))
    begin = time.monotonic()
    children = []
    for number in range(WRITERS):
        child = os.fork()
        if not child:
            (results / f"writer.{number}").write_text(json.dumps(write(number, begin)))
            os._exit(0)
        children.append(child)
    samples = []
    while time.monotonic() < begin + SECONDS:
        samples.append((round(time.monotonic() - begin, 3), round(dirty_mib(), 1)))
        time.sleep(SAMPLE_S)
    for child in children:
        if os.waitpid(child, 0)[1]:
            print("a writer failed", file=sys.stderr)
            return 1
    pauses = [json.loads((results / f"writer.{number}").read_text()) for number in range(WRITERS)]
    leave({"dirty": samples, "pauses": pauses})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
