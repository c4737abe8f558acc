# SPDX-License-Identifier: GPL-2.0
"""What a step needs of this machine, checked before it starts: packages, disk, cores, room for guest RAM."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.util.errors import LabError
from lab.util.paths import REPO, cache_dir

GIB = 1 << 30
_PROC = Path("/proc")
_PACKAGES = REPO / "setup" / "packages.txt"


@dataclass(frozen=True)
class Need:
    """What a step needs; a zero or ``packages=False`` leaves that part unchecked.

    Attributes:
        packages: whether the packages of set-up must be there.
        disk_bytes: room in the cache.
        cpus: cores that no other guest runs on.
        guest_mem_bytes: memory of a guest of User-mode Linux, which is a file.
        memory_bytes: memory of any other program.
    """

    packages: bool = True
    disk_bytes: int = 0
    cpus: int = 0
    guest_mem_bytes: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True)
class Guest:
    """A guest kernel that runs on this machine: its process and the cores it was given."""

    pid: int
    cpus: int


def listed_packages(path: Path = _PACKAGES) -> list[str]:
    """Return the package names in a file of ``name  # why`` lines."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def running_guests(proc: Path = _PROC) -> list[Guest]:
    """Find the guests with kernels of our cache that run now, whoever started them."""
    cpus, parents = {}, {}
    for entry in proc.glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended while we looked
            continue
        if given := _guest_cpus(words):
            pid = int(entry.name)
            cpus[pid] = given
            parents[pid] = int(stat.rpartition(")")[2].split()[1])
    # A helper process of a guest has the same command line: only the topmost counts.
    return [Guest(pid, cpus[pid]) for pid in sorted(cpus) if parents[pid] not in cpus]


def _guest_cpus(words: list[str]) -> int:
    """Return how many cores of this machine a command line keeps busy as a guest of ours, 0 if it is none."""
    kernels = str(cache_dir() / "kernel") + os.sep
    if words[0].startswith(kernels) and "seccomp=on" in words:
        return _number(words, "maxcpus=") or 1
    options = dict(itertools.pairwise(words))
    if "qemu" in words[0] and options.get("-kernel", "").startswith(kernels):
        plugin = options.get("-plugin", "").split(",")
        cpus = _number(options.get("-append", "").split(), "maxcpus=") or 1
        # With fewer lanes fewer of its CPUs run at once, with more CPUs than cores they take turns.
        return min(cpus, _number(plugin, "lanes=") or cpus, len(os.sched_getaffinity(0)))
    return 0


def _number(words: list[str], name: str) -> int:
    """Return the number after the first word that begins with ``name``, 0 if there is none."""
    given = [word.removeprefix(name) for word in words if word.startswith(name)]
    return int(given[0]) if given and given[0].isdigit() else 0


def check(need: Need) -> None:
    """Check that the machine has what a step needs.

    Raises:
        LabError: names each missing thing on a line of its own, with the command that mends it.
    """
    missing = [*_packages(need), *_disk(need), *_cores(need), *_guest_memory(need)]
    if missing:
        raise LabError(
            "this machine lacks what the next step needs:\n" + "\n".join(f"  {line}" for line in missing)
        )


def ram_dir() -> Path:
    """Return the folder that holds the file which is a guest's RAM.

    User-mode Linux takes the first that is set of $TMPDIR, $TMP and $TEMP, else /dev/shm
    (arch/um/os-Linux/mem.c).
    """
    for name in ("TMPDIR", "TMP", "TEMP"):
        folder = os.environ.get(name)
        if folder:
            return Path(folder)
    return Path("/dev/shm")


def _packages(need: Need) -> Iterator[str]:
    """Tell which listed packages are not installed."""
    if not need.packages:
        return
    names = listed_packages()
    try:
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        yield "dpkg-query is missing: this project runs on Debian 12 or newer"
        return
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    absent = [name for name in names if name not in installed]
    if absent:
        yield f"packages: {' '.join(absent)}; install them with: make setup"


def _disk(need: Need) -> Iterator[str]:
    """Tell when the cache's disk is too full."""
    if not need.disk_bytes:
        return
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < need.disk_bytes:
        yield (
            f"disk: {need.disk_bytes / GIB:.1f} GiB for {cache}, which has {free / GIB:.1f}; "
            f"make room, or choose another folder with: export PWB_CACHE=FOLDER"
        )


def _cores(need: Need) -> Iterator[str]:
    """Tell when there are too few cores, or another guest holds them."""
    if not need.cpus:
        return
    cores = len(os.sched_getaffinity(0))
    guests = running_guests()
    if cores < need.cpus:
        yield f"cores: {need.cpus}, this machine gives {cores}; ask for fewer with: --cpus {cores}"
    elif cores - sum(guest.cpus for guest in guests) < need.cpus:
        pids = " ".join(str(guest.pid) for guest in guests)
        yield (
            f"free cores: {need.cpus} of {cores}, but other guests run on them (process {pids}); "
            f"wait for them, or stop them with: kill -9 {pids}"
        )


def _guest_memory(need: Need) -> Iterator[str]:
    """Tell when the guest's RAM has no room, in memory or in the tmpfs that its file lies in."""
    wanted_bytes = need.guest_mem_bytes + need.memory_bytes
    available = available_memory_bytes() if wanted_bytes else 0
    if available < wanted_bytes:
        yield (
            f"memory: {wanted_bytes / GIB:.1f} GiB for the guest, {available / GIB:.1f} are available; "
            "end what takes most of it, see: top -o %MEM"
        )
    if not need.guest_mem_bytes:
        return
    wanted = f"{need.guest_mem_bytes / GIB:.1f} GiB"
    folder = ram_dir()
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    if free < need.guest_mem_bytes:
        size_gib = -(-need.guest_mem_bytes // GIB) + 1
        mend = (
            f"enlarge it with: sudo mount -o remount,size={size_gib}G /dev/shm"
            if folder == Path("/dev/shm")
            else "use shared memory instead with: unset TMPDIR TMP TEMP"
        )
        yield f"room for guest RAM: {wanted} in {folder}, which has {free / GIB:.1f}; {mend}"


def available_memory_bytes() -> int:
    """Return what the kernel says programs can still take without swapping."""
    for line in (_PROC / "meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
