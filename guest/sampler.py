# SPDX-License-Identifier: GPL-2.0
"""Counters of devices, page cache, CPUs and flushers, at intervals. Python's standard library only."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from pathlib import Path
from typing import Any

# What the names of kworkers have that flush: flushers, and the workers of XFS's AG-aware writeback.
FLUSHERS = ("flush-", "xfs-agwb/")
MIB = 1 << 20
# Less than this is not yet a job at work: a filesystem writes a little of its own accord.
IDLE_SECTORS = 2048
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Sampler:
    """Reads counters of the devices, the page cache, the CPUs and the kworkers, and keeps the series.

    Files stay open between samples: it must not take the CPU time that it looks at.
    """

    def __init__(self, devices: list[Path], proc: Path = Path("/proc")) -> None:
        """Prepare to read the counters of devices, by their folders in sysfs, and ``proc``.

        A RAM disk keeps none (its ``iostats`` is 0): then what was submitted to all devices counts.
        """
        # Two for each kworker stay open, and a machine has several kworkers for each CPU.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.proc = proc
        counted = all(keeps_statistics(device) for device in devices)
        stat_files = [device / "stat" for device in devices] if counted else []
        self.start = time.monotonic()
        self.samples: list[dict[str, Any]] = []
        self._stats = [os.open(path, os.O_RDONLY) for path in stat_files]
        self._vmstat = os.open(proc / "vmstat", os.O_RDONLY)
        self._stat = os.open(proc / "stat", os.O_RDONLY)
        self._others: set[str] = set()
        # The file of its name, and that of its times on a CPU if this kernel has it.
        self._kworker_files: dict[str, list[int]] = {}

    def close(self) -> None:
        """Close all files."""
        self._forget_others_than([])
        for fd in (*self._stats, self._vmstat, self._stat):
            os.close(fd)

    def sample(self) -> None:
        """Append one sample of the devices, the page cache and the kworkers."""
        vmstat = parse_vmstat(read(self._vmstat))
        self.samples.append(
            {
                "t": round(time.monotonic() - self.start, 4),
                "sectors": [sectors_written(read(fd)) for fd in self._stats] or [vmstat["pgpgout"] * 2],
                "dirty": vmstat["nr_dirty"],
                "writeback": vmstat["nr_writeback"],
                "idle_s": idle_s(read(self._stat)),
                "kworkers": self._kworkers(),
            }
        )

    def writing_s(self) -> float:
        """Return the seconds since the last sample before a job's writes reached the devices."""
        idle = sum(self.samples[0]["sectors"]) + IDLE_SECTORS
        before = [one["t"] for one in self.samples if sum(one["sectors"]) <= idle]
        return float(self.samples[-1]["t"] - before[-1])

    def written_mib(self) -> float:
        """Return the MiB that have reached the devices since the first sample."""
        first, last = self.samples[0]["sectors"], self.samples[-1]["sectors"]
        written: int = sum(last) - sum(first)
        return written * 512 / MIB

    def _kworkers(self) -> dict[str, list[Any]]:
        """Return pid -> [is it flushing, ns on a CPU]; None where this kernel has no schedstat."""
        found: dict[str, list[Any]] = {}
        pids = [pid for pid in os.listdir(self.proc) if pid.isdigit()]
        self._forget_others_than(pids)
        for pid in pids:
            if pid in self._others:
                continue
            # One that ended is gone between the listing and the reading; others may be hidden from a user.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if pid not in self._kworker_files and not self._open_kworker(pid):
                    continue
                comm, *schedstat = self._kworker_files[pid]
                flushing = any(name in read(comm) for name in FLUSHERS)
                found[pid] = [flushing, int(read(schedstat[0]).split()[0]) if schedstat else None]
        return found

    def _forget_others_than(self, pids: list[str]) -> None:
        """Close the files of kworkers that have ended; another task may get their number."""
        self._others.intersection_update(pids)
        for pid in self._kworker_files.keys() - pids:
            for fd in self._kworker_files.pop(pid):
                os.close(fd)

    def _open_kworker(self, pid: str) -> bool:
        """Open the files of a task if it is a kworker; remember it if it is none."""
        if not (self.proc / pid / "comm").read_bytes().startswith(b"kworker/"):
            self._others.add(pid)
            return False
        files = self._kworker_files[pid] = [os.open(self.proc / pid / "comm", os.O_RDONLY)]
        with contextlib.suppress(FileNotFoundError):
            files.append(os.open(self.proc / pid / "schedstat", os.O_RDONLY))
        return True


def keeps_statistics(device: Path) -> bool:
    """Say whether a device counts, by its folder in sysfs; a partition does if its disk does."""
    disk = device.parent if (device / "partition").exists() else device
    return (disk / "queue" / "iostats").read_text().strip() == "1"


def pages_written_kib(bdi: Path, debugfs: Path = Path("/sys/kernel/debug")) -> int:
    """Return how much of its page cache a device was written, by the folder of its backing_dev_info."""
    stats = (debugfs / "bdi" / bdi.resolve().name / "stats").read_text()
    return next(int(line.split()[1]) for line in stats.splitlines() if line.startswith("BdiWritten:"))


def read(fd: int) -> str:
    """Return what a file of the kernel's says now."""
    return os.pread(fd, 1 << 16, 0).decode()


def parse_vmstat(text: str) -> dict[str, int]:
    """Return ``/proc/vmstat`` as a mapping."""
    return {key: int(value) for key, value in (line.split() for line in text.splitlines())}


def idle_s(stat: str) -> float:
    """Return the seconds that all CPUs together were idle, from ``/proc/stat``."""
    idle, iowait = stat.split(maxsplit=6)[4:6]
    return (int(idle) + int(iowait)) / TICKS_PER_S


def sectors_written(stat: str) -> int:
    """Return the sectors of 512 bytes written, from a device's ``stat`` (Documentation/block/stat.rst)."""
    return int(stat.split()[6])
