# SPDX-License-Identifier: GPL-2.0
"""What the guest reads of its counters."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from guest import sampler as counters


def test_sectors_written_is_the_seventh_field() -> None:
    assert counters.sectors_written("  10 1 80 5  20 2 4096 7 0 9 12 0 0 0 0 0 0\n") == 4096


def test_vmstat() -> None:
    assert counters.parse_vmstat("nr_dirty 12\nnr_writeback 3\n") == {"nr_dirty": 12, "nr_writeback": 3}


def test_pages_written_of_a_device(tmp_path: Path) -> None:
    stats = tmp_path / "bdi/1:0/stats"
    stats.parent.mkdir(parents=True)
    stats.write_text("BdiDirtied:        20 kB\nBdiWritten:        16 kB\nBdiWriteBandwidth: 9 kBps\n")
    (tmp_path / "ram0").symlink_to(tmp_path / "1:0")
    assert counters.pages_written_kib(tmp_path / "ram0", tmp_path) == 16


def test_idle_time_is_that_of_all_cpus_waiting_for_io_included() -> None:
    assert counters.idle_s("cpu  10 0 20 300 40 0 5 0 0 0\ncpu0 10 0 20 300 40 0 5 0 0 0\n") == 3.4


def _task(proc: Path, pid: int, comm: str, ns: int) -> None:
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    (proc / str(pid) / "comm").write_text(comm + "\n")
    (proc / str(pid) / "schedstat").write_text(f"{ns} 0 0\n")


def test_sampler_takes_kworkers_only_and_tells_flushers(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    _task(proc, 7, "kworker/u9:2+flush-252:0", 500)
    _task(proc, 8, "kworker/0:1-events", 30)
    _task(proc, 6, "kworker/u9:1+xfs-agwb/nullb0", 20)
    _task(proc, 9, "fio", 99)
    _counters(proc, dirty=5)
    sampler = counters.Sampler([_device(tmp_path / "sda", 77)], proc)
    sampler.sample()
    # One came without CPU times, one went, one is flushing now.
    _task(proc, 10, "kworker/2:0", 0)
    (proc / "10" / "schedstat").unlink()
    _task(proc, 8, "kworker/0:1+flush-252:0", 31)
    for name in ("comm", "schedstat"):
        (proc / "7" / name).unlink()
    (proc / "7").rmdir()
    sampler.sample()
    sampler.close()
    sample, later = sampler.samples
    assert later["kworkers"] == {"6": [True, 20], "8": [True, 31], "10": [False, None]}
    assert later["idle_s"] == 3.0
    assert sample["kworkers"] == {"6": [True, 20], "7": [True, 500], "8": [False, 30]}
    assert (sample["sectors"], sample["dirty"], sample["writeback"]) == ([77], 5, 1)


def test_files_of_kworkers_that_ended_are_closed(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    for pid, comm in ((7, "kworker/0:1"), (8, "kworker/0:2"), (9, "fio")):
        _task(proc, pid, comm, 1)
    _counters(proc)
    before = len(os.listdir("/proc/self/fd"))
    sampler = counters.Sampler([_device(tmp_path / "sda", 0)], proc)
    sampler.sample()
    opened = len(os.listdir("/proc/self/fd"))
    for pid in (8, 9):
        for name in ("comm", "schedstat"):
            (proc / str(pid) / name).unlink()
        (proc / str(pid)).rmdir()
    sampler.sample()
    assert len(os.listdir("/proc/self/fd")) == opened - 2
    # Numbers are used again.
    _task(proc, 8, "kworker/0:3", 5)
    _task(proc, 9, "kworker/0:4", 6)
    sampler.sample()
    assert sampler.samples[-1]["kworkers"] == {"7": [False, 1], "8": [False, 5], "9": [False, 6]}
    sampler.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_tasks_that_are_hidden_from_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with /proc mounted hidepid=1: others' are listed, and not to be read."""
    proc = tmp_path / "proc"
    _task(proc, 7, "kworker/0:1", 1)
    _task(proc, 9, "init", 1)
    _counters(proc)
    read_bytes = Path.read_bytes

    def hidden(path: Path) -> bytes:
        if path.parent.name == "9":
            raise PermissionError(1, "Operation not permitted", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", hidden)
    sampler = counters.Sampler([_device(tmp_path / "sda", 0)], proc)
    sampler.sample()
    sampler.close()
    assert sampler.samples[-1]["kworkers"] == {"7": [False, 1]}


def test_there_may_be_many_kworkers(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    for pid in range(100):
        _task(proc, pid, "kworker/0:1", 1)
    _counters(proc)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, hard))
    try:
        sampler = counters.Sampler([_device(tmp_path / "sda", 0)], proc)
        sampler.sample()
        sampler.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert len(sampler.samples[0]["kworkers"]) == 100


def _device(sysfs: Path, sectors: int, *, counted: bool = True) -> Path:
    (sysfs / "queue").mkdir(parents=True, exist_ok=True)
    (sysfs / "queue" / "iostats").write_text(f"{int(counted)}\n")
    (sysfs / "stat").write_text("0 " * 6 + f"{sectors} 0")
    return sysfs


def _counters(proc: Path, dirty: int = 0, written_kib: int = 0) -> None:
    proc.mkdir(exist_ok=True)
    (proc / "vmstat").write_text(f"nr_dirty {dirty}\nnr_writeback 1\npgpgout {written_kib}\n")
    (proc / "stat").write_text("cpu  0 0 0 300 0 0 0 0 0 0\n")


def test_written_amount_is_since_the_first_sample(tmp_path: Path) -> None:
    devices = [_device(tmp_path / name, 2048) for name in ("sda", "sdb")]
    _counters(tmp_path)
    sampler = counters.Sampler(devices, tmp_path)
    sampler.sample()
    _device(devices[1], 8192)
    sampler.sample()
    assert sampler.written_mib() == 3


def test_what_is_written_to_devices_without_statistics(tmp_path: Path) -> None:
    devices = [_device(tmp_path / name, 0, counted=False) for name in ("ram0", "ram1")]
    _counters(tmp_path, written_kib=512)
    sampler = counters.Sampler(devices, tmp_path)
    sampler.sample()
    _counters(tmp_path, written_kib=512 + 2048)
    sampler.sample()
    assert sampler.written_mib() == 2


def test_a_partition_is_counted_if_its_disk_is(tmp_path: Path) -> None:
    for name, counted in (("sda", True), ("ram0", False)):
        disk = _device(tmp_path / name, 0, counted=counted)
        (disk / "part").mkdir()
        (disk / "part" / "partition").write_text("1\n")
        assert counters.keeps_statistics(disk) == counters.keeps_statistics(disk / "part") == counted
