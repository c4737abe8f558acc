# SPDX-License-Identifier: GPL-2.0
"""Run fio inside the guest and note, at intervals, what reaches the device and what the flushers cost.

Started as ``load.py PLAN``: a JSON file written by lab/experiment/cells.py, with the keys of :class:`Plan`.
For every run of the plan it makes the settings, sets the dirty limits, starts fio with the filesystem under
test as working directory, samples while fio and then the final ``sync`` run, and counts extents. Everything
goes to ``$PWB_RESULTS/raw.json`` as it was read: lab/experiment/measure.py makes the figures. Python's
standard library only: this runs on the host's Python, seen from the guest.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

MIB = 1 << 20
CHUNK_BYTES = 4 * MIB
# More files than this are not worth a filefrag each; the largest are taken.
MAX_FILES = 64
# Inode numbers come in order, with gaps: a fitting one comes within a few times the modulus.
INODE_TRIES = 16
# What the names of kworkers have that flush: flushers, and the workers of XFS's AG-aware writeback.
FLUSHERS = ("flush-", "xfs-agwb/")
# fio's exit status when it was told to stop.
FIO_STOPPED = 128
# AGs that the files of one directory are spread over, with the placement generic.
GENERIC_AGS = 4
# _IOWR('f', 135, struct fs_write_stream) of kernel/include/uapi/linux/write_stream.h, to set a stream.
WRITE_STREAM = 3 << 30 | 16 << 16 | ord("f") << 8 | 135
SET_STREAM = 1 << 2
MARK_S = 0.0001
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
VM = Path("/proc/sys/vm")


class Run(TypedDict):
    """One fio run of ``job``, a file in the results folder; ``dirty_limit_mib`` None changes no limit.

    ``settings`` are files of each device's backing_dev_info and what to write to them. fio is stopped when
    ``stop_mib`` have reached the devices or ``stop_s`` have passed since they were first written to, unless
    that is None.
    """

    name: str
    job: str
    settings: dict[str, str]
    dirty_limit_mib: int | None
    stop_mib: int | None
    stop_s: float | None
    env: dict[str, str]


class Plan(TypedDict):
    """What to do in one boot.

    ``files`` are written out in full and read into the page cache first, or left sparse with ``empty``;
    without any, ``layout_job`` (fio with create_only) makes them. ``inodes`` is ``even`` or ``skewed`` where
    their inode numbers by ``modulus`` matter (:func:`choose_inodes`). ``placement`` is None, or where XFS is
    to look for blocks: ``base``, ``generic`` or ``stream`` (:func:`place`).
    ``prepare`` is a shell script to run in the filesystem before every run.
    ``devices`` is how many there are: file i lies on device i modulo that, behind a symbolic link unless it
    is the first.
    """

    fio: str
    filefrag: str
    sample_s: float
    directories: list[str]
    files: list[str]
    size_mib: int
    empty: bool
    inodes: str | None
    modulus: int | None
    placement: str | None
    layout_job: str | None
    prepare: str | None
    devices: int
    runs: list[Run]


class LoadError(Exception):
    """The plan cannot be carried out; the text says why."""


class Disk(NamedTuple):
    """A device under test: its node, the folder of its backing_dev_info, and where it is mounted."""

    node: str
    bdi: Path
    mount: Path

    @property
    def sysfs(self) -> Path:
        """Return its folder in sysfs."""
        return Path("/sys/block") / Path(self.node).resolve().name


class Sampler:
    """Reads counters of the devices, the page cache, the CPUs and the kworkers, and keeps the series.

    Files stay open between samples: it must not take the CPU time that it looks at.
    """

    def __init__(self, devices: list[Path], proc: Path = Path("/proc")) -> None:
        """Prepare to read the counters of devices, by their folders in sysfs, and ``proc``.

        A RAM disk keeps none (its ``iostats`` is 0): then what was submitted to all devices counts.
        """
        self.proc = proc
        counted = all(keeps_statistics(device) for device in devices)
        stat_files = [device / "stat" for device in devices] if counted else []
        self.start = time.monotonic()
        self.samples: list[dict[str, Any]] = []
        self._stats = [os.open(path, os.O_RDONLY) for path in stat_files]
        self._vmstat = os.open(proc / "vmstat", os.O_RDONLY)
        self._stat = os.open(proc / "stat", os.O_RDONLY)
        self._others: set[str] = set()
        self._kworker_files: dict[str, tuple[int, int | None]] = {}

    def close(self) -> None:
        """Close all files."""
        kworkers = [fd for files in self._kworker_files.values() for fd in files if fd is not None]
        for fd in (*self._stats, self._vmstat, self._stat, *kworkers):
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
        """Return the seconds since the last sample before anything reached the devices."""
        before = [one["t"] for one in self.samples if one["sectors"] == self.samples[0]["sectors"]]
        return float(self.samples[-1]["t"] - before[-1])

    def written_mib(self) -> float:
        """Return the MiB that have reached the devices since the first sample."""
        first, last = self.samples[0]["sectors"], self.samples[-1]["sectors"]
        written: int = sum(last) - sum(first)
        return written * 512 / MIB

    def _kworkers(self) -> dict[str, list[Any]]:
        """Return pid -> [is it flushing, ns on a CPU]; None where this kernel has no schedstat."""
        found: dict[str, list[Any]] = {}
        for pid in os.listdir(self.proc):
            if not pid.isdigit() or pid in self._others:
                continue
            # One that ended is gone between the listing and the reading.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if pid not in self._kworker_files and not self._open_kworker(pid):
                    continue
                comm, schedstat = self._kworker_files[pid]
                flushing = any(name in read(comm) for name in FLUSHERS)
                found[pid] = [flushing, None if schedstat is None else int(read(schedstat).split()[0])]
        return found

    def _open_kworker(self, pid: str) -> bool:
        """Open the files of a task if it is a kworker; remember it if it is none."""
        comm = os.open(self.proc / pid / "comm", os.O_RDONLY)
        if not read(comm).startswith("kworker/"):
            os.close(comm)
            self._others.add(pid)
            return False
        try:
            schedstat = os.open(self.proc / pid / "schedstat", os.O_RDONLY)
        except FileNotFoundError:
            schedstat = None
        self._kworker_files[pid] = comm, schedstat
        return True


class Marks:
    """Shows the profiler, where there is one, what to look at, as the agent does for the whole command.

    A run has two marks, whatever becomes of it.
    """

    def __init__(self) -> None:
        """Nothing is marked yet."""
        self._left = 2 if "PWB_PROFILED" in os.environ else 0

    def begin(self) -> None:
        """Mark the beginning, once."""
        if self._left == 2:
            self._mark()

    def end(self) -> None:
        """Mark the end, once, and the beginning if there was none."""
        while self._left:
            self._mark()

    def _mark(self) -> None:
        signal.sigtimedwait((), MARK_S)
        self._left -= 1


def keeps_statistics(device: Path) -> bool:
    """Say whether a device counts, by its folder in sysfs; a partition does if its disk does."""
    disk = device.parent if (device / "partition").exists() else device
    return (disk / "queue" / "iostats").read_text().strip() == "1"


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


def parse_filefrag(text: str) -> dict[str, int]:
    """Return path -> extents from what filefrag prints."""
    return {
        name: int(count) for name, count in re.findall(r"^(.*): (\d+) extents? found$", text, re.MULTILINE)
    }


def write_out(path: Path, size: int) -> None:
    """Fill ``path`` with ``size`` bytes by large direct writes: every block allocated and written."""
    buffer = mmap.mmap(-1, CHUNK_BYTES)
    buffer.write(os.urandom(4096) * (CHUNK_BYTES // 4096))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o644)
    try:
        done = 0
        while done < size:
            done += os.write(fd, memoryview(buffer)[: min(CHUNK_BYTES, size - done)])
        os.fsync(fd)
    finally:
        os.close(fd)


def inode_number(path: Path) -> int:
    """Return the number of a file's inode."""
    return path.stat().st_ino


def choose_inodes(paths: list[Path], modulus: int, *, skewed: bool) -> None:
    """Make empty files of which the inode number leaves a wanted remainder.

    Files are made, kept and looked at until a number fits; what did not fit is removed at the end, for a
    filesystem hands out a freed number again.

    Args:
        paths: files to make; their folders are there.
        modulus: what the inode numbers are divided by.
        skewed: every number leaves 0, all made in the folder of the first; else file i leaves i.
    """
    misfits: list[Path] = []
    for index, path in enumerate(paths):
        folder = paths[0].parent if skewed else path.parent
        wanted = 0 if skewed else index % modulus
        for _ in range(INODE_TRIES * modulus):
            made = folder / f"inode.{len(misfits)}"
            made.touch()
            if inode_number(made) % modulus == wanted:
                made.rename(path)
                break
            misfits.append(made)
        else:
            raise LoadError(f"{path}: found no inode number that leaves {wanted} divided by {modulus}")
    for misfit in misfits:
        misfit.unlink()


def fill_cache(paths: list[Path]) -> None:
    """Read files into the page cache, all at once: a page that is there costs a writer nothing to make."""
    readers = [subprocess.Popen(["cat", str(path)], stdout=subprocess.DEVNULL) for path in paths]
    for reader, path in zip(readers, paths, strict=True):
        if reader.wait():
            raise LoadError(f"cannot read {path}: cat ended with status {reader.returncode}")


def move_behind_link(path: Path, target: Path) -> None:
    """Put a file on the other device, preallocated or written as it was, and link to it."""
    size = path.stat().st_size
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source, target.open("wb") as copy:
        try:
            os.lseek(source.fileno(), 0, os.SEEK_DATA)
            written = True
        except OSError:
            written = False  # ENXIO: preallocated only
        if written:
            while block := source.read(CHUNK_BYTES):
                copy.write(block)
        elif size:
            os.posix_fallocate(copy.fileno(), 0, size)
        os.fsync(copy.fileno())
    path.unlink()
    path.symlink_to(target)


def regular_files(mount: Path) -> list[Path]:
    """Return the largest files under ``mount``, behind links too, by name."""
    found = [path for path in sorted(mount.rglob("*")) if path.is_file()]
    return sorted(sorted(found, key=lambda path: -path.stat().st_size)[:MAX_FILES])


def set_dirty_limit(limit_mib: int, vm: Path = VM) -> dict[str, int]:
    """Set ``vm.dirty_bytes``, and ``vm.dirty_background_bytes`` to half; return all dirty settings."""
    (vm / "dirty_bytes").write_text(str(limit_mib * MIB))
    (vm / "dirty_background_bytes").write_text(str(limit_mib * MIB // 2))
    return dirty_settings(vm)


def dirty_settings(vm: Path = VM) -> dict[str, int]:
    """Return all settings of ``vm.dirty_*``."""
    return {path.name: int(path.read_text()) for path in sorted(vm.glob("dirty*"))}


def count_extents(filefrag: str, mount: Path) -> dict[str, int]:
    """Return extents by file name, for the files under ``mount``."""
    files = regular_files(mount)
    if not files:
        return {}
    done = subprocess.run([filefrag, *map(str, files)], capture_output=True, text=True, check=False)
    return {str(Path(name).relative_to(mount)): count for name, count in parse_filefrag(done.stdout).items()}


def fio(
    program: list[str], job: Path, output: Path, mount: Path, env: dict[str, str]
) -> subprocess.Popen[str]:
    """Start fio on ``job`` with ``mount`` as its working directory, as the leader of a process group."""
    return subprocess.Popen(
        [*program, "--output-format=json+", f"--output={output}", str(job)],
        cwd=mount,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def fail_with_fio(words: str, output: Path, what: str) -> None:
    """Raise what fio said, on its streams or ahead of its JSON."""
    notes = output.read_text().split("{", 1)[0] if output.exists() else ""
    said = [line for line in (words + "\n" + notes).splitlines() if line.startswith("fio:") or "rror" in line]
    raise LoadError(f"fio failed in {what}: {'; '.join(dict.fromkeys(said)) or 'it said nothing'}")


def place(placement: str, paths: list[Path], device: Path, sysfs: Path = Path("/sys/fs/xfs")) -> None:
    """Say where XFS is to look for the blocks of files.

    Args:
        placement: ``base``: in the AG of the inode; ``generic``: in a window of AGs from that one on;
            ``stream``: each file in the AGs of a write stream of its own.
        paths: the files; with streams they stay open until the end, for a stream lasts as long as its inode.
        device: of the filesystem.
        sysfs: where mounted filesystems have their switches.
    """
    switches = sysfs / device.resolve().name / "write_streams"
    (switches / "generic_ags").write_text(str(GENERIC_AGS if placement == "generic" else 1))
    if placement != "stream":
        return
    (switches / "software").write_text(str(len(paths)))
    for stream, path in enumerate(paths, 1):
        fcntl.ioctl(os.open(path, os.O_WRONLY), WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0))


def lay_out(plan: Plan, mounts: list[Path], results: Path) -> None:
    """Make the files that the jobs write to, spread over the devices."""
    mount = mounts[0]
    for directory in plan["directories"]:
        (mount / directory).mkdir(parents=True, exist_ok=True)
    paths = make_files(plan, mounts)
    if plan["placement"]:
        place(plan["placement"], paths, Path(os.environ["PWB_DEV"]))
    if plan["layout_job"]:
        output = results / "layout.json"
        done = fio([plan["fio"]], results / plan["layout_job"], output, mount, plan["runs"][0]["env"])
        words = done.communicate()[0]
        if done.returncode:
            fail_with_fio(words, output, "laying out its files")
        output.unlink(missing_ok=True)
        files = regular_files(mount)
        if len(files) < len(mounts):
            raise LoadError(f"{len(files)} files cannot be spread over {len(mounts)} devices")
        for index, path in enumerate(files):
            other = mounts[index % len(mounts)]
            if other != mount:
                move_behind_link(path, other / path.relative_to(mount))
    os.sync()
    if not plan["empty"]:
        fill_cache(paths)


def make_files(plan: Plan, mounts: list[Path]) -> list[Path]:
    """Make the plan's own files and return their paths."""
    mount = mounts[0]
    paths = [mount / name for name in plan["files"]]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    for index, path in enumerate(paths):
        other = mounts[index % len(mounts)]
        if other != mount:
            target = other / path.relative_to(mount)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
    if plan["inodes"] and plan["modulus"]:
        choose_inodes(paths, plan["modulus"], skewed=plan["inodes"] == "skewed")
    for path in paths:
        if plan["empty"]:
            path.touch()
            os.truncate(path, plan["size_mib"] * MIB)
        else:
            write_out(path, plan["size_mib"] * MIB)
    return paths


def prepare(script: str, mount: Path, said: Path) -> int:
    """Run a shell script with ``mount`` as its working directory, and its words in the file ``said``.

    Returns:
        The process group, in which the script may have left something running.
    """
    with said.open("w", encoding="utf-8") as words:
        process = subprocess.Popen(
            ["sh", "-ec", script], cwd=mount, stdout=words, stderr=words, start_new_session=True
        )
    if status := process.wait():
        raise LoadError(f"the scenario's prepare ended with status {status}: {said.read_text().strip()}")
    return process.pid


def save_ag_counters(output: Path, debugfs: Path = Path("/sys/kernel/debug")) -> None:
    """Save what XFS's AG-aware writeback has counted, where there is any, in the file ``output``."""
    counted = "".join(path.read_text() for path in sorted(debugfs.glob("xfs/*/writeback")))
    if counted:
        output.write_text(counted, encoding="utf-8")


def wait(process: subprocess.Popen[str], seconds: float) -> bool:
    """Wait until a process has ended or the time is over; return whether it has ended."""
    end = os.pidfd_open(process.pid)
    try:
        select.select([end], [], [], seconds)
    finally:
        os.close(end)
    return process.poll() is not None


def watch(
    process: subprocess.Popen[str], sampler: Sampler, sample_s: float, enough: Callable[[], bool]
) -> str | None:
    """Sample until fio has ended, and ask it to end once there is enough.

    Args:
        process: fio, just started.
        sampler: has had its first sample; the last one is that of when fio had ended.
        sample_s: seconds between samples.
        enough: says, after each sample, whether fio has done what the run is about.

    Returns:
        None, or fio's words where it failed.
    """
    words: list[str] = []
    reader = threading.Thread(target=lambda: words.append(process.stdout.read() if process.stdout else ""))
    reader.start()
    marks = Marks()
    stopped = False
    while not wait(process, sample_s):
        sampler.sample()
        if sampler.written_mib() > 0:
            marks.begin()
        if not stopped and enough():
            marks.end()
            process.send_signal(signal.SIGINT)
            stopped = True
    marks.end()
    sampler.sample()
    reader.join()
    failed = process.returncode and not (stopped and process.returncode == FIO_STOPPED)
    return "".join(words) if failed else None


def is_enough(run: Run, sampler: Sampler) -> bool:
    """Say whether the jobs have done what the run is about."""
    if run["stop_mib"] is not None and sampler.written_mib() > run["stop_mib"]:
        return True
    return run["stop_s"] is not None and sampler.writing_s() > run["stop_s"]


def contexts_in_use(bdi: Path) -> int | None:
    """Return the number of writeback contexts, ``3`` or ``auto (3)``; None where the kernel has none."""
    number = bdi / "nwritebacks"
    found = re.search(r"\d+", number.read_text()) if number.exists() else None
    return int(found[0]) if found else None


def measure(plan: Plan, run: Run, results: Path, disks: list[Disk]) -> dict[str, Any]:
    """Do one run and return what was read during it."""
    mount = disks[0].mount
    for name, value in run["settings"].items():
        for disk in disks:
            (disk.bdi / name).write_text(value)
    settings = {}
    if run["dirty_limit_mib"]:
        settings = set_dirty_limit(run["dirty_limit_mib"])
    else:
        # Direct I/O over cached pages would pay for throwing them out.
        Path("/proc/sys/vm/drop_caches").write_text("1")
    group = prepare(plan["prepare"], mount, results / "prepare.txt") if plan["prepare"] else None
    output = results / f"{run['name']}.fio.json"
    sampler = Sampler([disk.sysfs for disk in disks])
    sampler.sample()
    process = fio([plan["fio"]], results / run["job"], output, mount, run["env"])
    failure = watch(process, sampler, plan["sample_s"], lambda: is_enough(run, sampler))
    fio_s = sampler.samples[-1]["t"]
    if failure is not None:
        fail_with_fio(failure, output, f"run {run['name']}")
    contexts = contexts_in_use(disks[0].bdi)
    begin = time.monotonic()
    os.sync()
    sync_s = time.monotonic() - begin
    sampler.sample()
    sampler.close()
    save_ag_counters(results / f"{run['name']}.writeback.txt")
    if group is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
    return {
        "name": run["name"],
        "dirty_settings": settings,
        "fio_json": output.name,
        "fio_s": fio_s,
        "sync_s": round(sync_s, 4),
        "contexts": contexts,
        "samples": sampler.samples,
        "extents": count_extents(plan["filefrag"], mount),
    }


def main(arguments: list[str]) -> int:
    """Carry out the plan named by the only argument."""
    results = os.environ.get("PWB_RESULTS")
    mount = os.environ.get("PWB_MNT")
    if not results or not mount or not os.path.ismount(mount):
        print(
            "load.py: PWB_RESULTS and PWB_MNT are not those of a guest: it changes sysctls, "
            "run it there only",
            file=sys.stderr,
        )
        return 2
    plan: Plan = json.loads(Path(arguments[0]).read_text())
    disks = [
        Disk(os.environ[f"PWB_DEV{n}"], Path(os.environ[f"PWB_BDI{n}"]), Path(os.environ[f"PWB_MNT{n}"]))
        for n in ["", *range(2, plan["devices"] + 1)]
    ]
    raw: dict[str, Any] = {
        "kernel": os.uname().release,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "cpus": os.cpu_count(),
        "runs": [],
        "failure": None,
    }
    try:
        begin = time.monotonic()
        lay_out(plan, [disk.mount for disk in disks], Path(results))
        raw["layout_s"] = round(time.monotonic() - begin, 4)
        raw["extents_before"] = count_extents(plan["filefrag"], Path(mount))
        for run in plan["runs"]:
            raw["runs"].append(measure(plan, run, Path(results), disks))
    except (LoadError, OSError) as error:
        raw["failure"] = str(error)
    (Path(results) / "raw.json").write_text(json.dumps(raw, separators=(",", ":")))
    return 1 if raw["failure"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
