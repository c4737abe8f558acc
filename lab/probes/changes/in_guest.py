# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with LIMIT_MIB CPUS: the number of contexts while the load changes.

A load starts with half as many jobs as CPUs, doubles, becomes one file that all jobs write, and stops. Each
job overwrites 4 KiB at random places of its file. What the device had written, and how many contexts it had,
is noted at intervals. Python's standard library only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from guest.record import leave

MIB = 1 << 20
CHUNK = 4 * MIB
# Of all files together: they have to fit the page cache.
FILES_MIB = 2048
SAMPLE_S = 0.05
# Seconds of each part. The first is a cold start. The second is a steady load, until the kernel, which tries
# fewer contexts 10 s after it has found no more to try (docs/auto.md), has done so. The one file lasts until
# it can have come down from 64 contexts to one.
COLD_S = 3.5
STEADY_S = 13.0
ONE_FILE_S = 13.0
STOPPED_S = 0.5


def lay_out(name: str, size_mib: int) -> None:
    """Write a file past the page cache, and read it into the cache: the jobs allocate neither."""
    dd = ["dd", f"of={name}", "if=/dev/zero", f"bs={CHUNK}", f"count={size_mib * MIB // CHUNK}"]
    subprocess.run([*dd, "oflag=direct"], check=True, stderr=subprocess.DEVNULL)
    with open(name, "rb") as file:
        while file.read(CHUNK):
            pass


def load(jobs: int, files: str, size_mib: int, seconds: float) -> None:
    """Run so many jobs on the files of this name, in which fio puts the number of the job."""
    command = ["fio", "--name=load", f"--filename_format={files}", f"--numjobs={jobs}", f"--size={size_mib}m"]
    command += ["--rw=randwrite", "--bs=4k", "--norandommap=1", "--ioengine=psync", "--time_based"]
    command += [f"--runtime={seconds * 1000:.0f}ms", "--group_reporting", "--minimal"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


class Sampler(threading.Thread):
    """Notes what the device has written and its number of contexts until it is told to stop."""

    def __init__(self, begin: float) -> None:
        """Start from now on."""
        super().__init__()
        bdi = Path(os.environ["PWB_BDI"])
        self.stats = Path("/sys/kernel/debug/bdi", bdi.resolve().name, "stats")
        self.number = bdi / "nwritebacks"
        self.begin = begin
        self.samples: list[tuple[float, int, int]] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        """Sample at intervals."""
        while not self.stopped.wait(SAMPLE_S):
            written = re.search(r"BdiWritten: *(\d+) kB", self.stats.read_text())
            contexts = re.search(r"\d+", self.number.read_text())
            assert written and contexts
            now = round(time.monotonic() - self.begin, 4)
            self.samples.append((now, int(contexts[0]), int(written[1])))


def main(arguments: list[str]) -> int:
    """Lay out the files, set the limit, and run one load after the other beside a sampler."""
    limit, cpus = int(arguments[0]) * MIB, int(arguments[1])
    size_mib = FILES_MIB // cpus
    for job in range(cpus):
        lay_out(f"data.{job}", size_mib)
    Path("/proc/sys/vm/dirty_bytes").write_text(str(limit))
    Path("/proc/sys/vm/dirty_background_bytes").write_text(str(limit // 2))
    begin = time.monotonic()
    sampler = Sampler(begin)
    sampler.start()
    parts = []
    for name, jobs, files, seconds in (
        (f"{cpus // 2} files", cpus // 2, "data.$jobnum", COLD_S),
        (f"{cpus} files", cpus, "data.$jobnum", STEADY_S),
        ("one file", cpus, "data.0", ONE_FILE_S),
    ):
        parts.append((round(time.monotonic() - begin, 4), name))
        load(jobs, files, size_mib, seconds)
    parts.append((round(time.monotonic() - begin, 4), "nothing"))
    time.sleep(STOPPED_S)
    sampler.stopped.set()
    sampler.join()
    leave({"parts": parts, "samples": sampler.samples})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
