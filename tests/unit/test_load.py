# SPDX-License-Identifier: GPL-2.0
"""The pure parts of guest/load.py, and that it refuses to run outside a guest."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guest import load
from lab.util.paths import REPO


def test_sectors_written_is_the_seventh_field() -> None:
    assert load.sectors_written("  10 1 80 5  20 2 4096 7 0 9 12 0 0 0 0 0 0\n") == 4096


def test_vmstat() -> None:
    assert load.parse_vmstat("nr_dirty 12\nnr_writeback 3\n") == {"nr_dirty": 12, "nr_writeback": 3}


def test_filefrag_counts_and_odd_names() -> None:
    text = "/mnt/test/a: 1 extent found\n/mnt/test/b c: d: 61533 extents found\n/mnt/test/x: unsupported\n"
    assert load.parse_filefrag(text) == {"/mnt/test/a": 1, "/mnt/test/b c: d": 61533}


def test_idle_time_is_that_of_all_cpus_waiting_for_io_included() -> None:
    assert load.idle_s("cpu  10 0 20 300 40 0 5 0 0 0\ncpu0 10 0 20 300 40 0 5 0 0 0\n") == 3.4


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
    sampler = load.Sampler([_device(tmp_path / "sda", 77)], proc)
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


def _device(sysfs: Path, sectors: int, *, counted: bool = True) -> Path:
    (sysfs / "queue").mkdir(parents=True, exist_ok=True)
    (sysfs / "queue" / "iostats").write_text(f"{int(counted)}\n")
    (sysfs / "stat").write_text("0 " * 6 + f"{sectors} 0")
    return sysfs


def _counters(proc: Path, dirty: int = 0, written_kib: int = 0) -> None:
    proc.mkdir(exist_ok=True)
    (proc / "vmstat").write_text(f"nr_dirty {dirty}\nnr_writeback 1\npgpgout {written_kib}\n")
    (proc / "stat").write_text("cpu  0 0 0 300 0 0 0 0 0 0\n")


def _paths(folder: Path) -> list[Path]:
    paths = [folder / f"d{number}" / "data" for number in range(4)]
    for path in paths:
        path.parent.mkdir()
    return paths


@pytest.fixture
def inodes_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Number inodes as they come, as on a fresh filesystem: on the host's every free number may be even."""
    numbers: dict[int, int] = {}

    def inode_number(path: Path) -> int:
        return numbers.setdefault(path.stat().st_ino, 131 + len(numbers))

    monkeypatch.setattr(load, "inode_number", inode_number)


@pytest.mark.usefixtures("inodes_in_a_row")
@pytest.mark.parametrize(("skewed", "expected"), [(False, [0, 1, 2, 3]), (True, [0, 0, 0, 0])])
def test_inode_numbers_are_chosen_and_misfits_go(tmp_path: Path, skewed: bool, expected: list[int]) -> None:
    paths = _paths(tmp_path)
    load.choose_inodes(paths, 4, skewed=skewed)
    assert [load.inode_number(path) % 4 for path in paths] == expected
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == paths


def test_inode_number_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "INODE_TRIES", 0)
    with pytest.raises(load.LoadError, match="d0/data: found no inode number that leaves 0 divided by 4"):
        load.choose_inodes(_paths(tmp_path), 4, skewed=False)


def test_written_amount_is_since_the_first_sample(tmp_path: Path) -> None:
    devices = [_device(tmp_path / name, 2048) for name in ("sda", "sdb")]
    _counters(tmp_path)
    sampler = load.Sampler(devices, tmp_path)
    sampler.sample()
    _device(devices[1], 8192)
    sampler.sample()
    assert sampler.written_mib() == 3


def test_what_is_written_to_devices_without_statistics(tmp_path: Path) -> None:
    devices = [_device(tmp_path / name, 0, counted=False) for name in ("ram0", "ram1")]
    _counters(tmp_path, written_kib=512)
    sampler = load.Sampler(devices, tmp_path)
    sampler.sample()
    _counters(tmp_path, written_kib=512 + 2048)
    sampler.sample()
    assert sampler.written_mib() == 2


def test_a_partition_is_counted_if_its_disk_is(tmp_path: Path) -> None:
    for name, counted in (("sda", True), ("ram0", False)):
        disk = _device(tmp_path / name, 0, counted=counted)
        (disk / "part").mkdir()
        (disk / "part" / "partition").write_text("1\n")
        assert load.keeps_statistics(disk) == load.keeps_statistics(disk / "part") == counted


def _run(**changes: float) -> load.Run:
    run: load.Run = {
        "name": "limit-128",
        "job": "job.fio",
        "settings": {},
        "dirty_limit_mib": 128,
        "stop_mib": None,
        "stop_s": None,
        "env": {},
    }
    return {**run, **changes}  # type: ignore[typeddict-item]


def test_a_run_is_over_with_its_amount_or_its_time(tmp_path: Path) -> None:
    _counters(tmp_path)
    sampler = load.Sampler([], tmp_path)
    for t, sectors in ((0.0, 0), (0.5, 0), (0.6, 2048), (0.7, 4096)):
        sampler.samples.append({"t": t, "sectors": [sectors]})
    assert not load.is_enough(_run(), sampler)
    assert load.is_enough(_run(stop_mib=1), sampler)
    assert not load.is_enough(_run(stop_mib=2), sampler)
    # It counts from the last sample before anything was written.
    assert load.is_enough(_run(stop_s=0.19), sampler)
    assert not load.is_enough(_run(stop_s=0.21), sampler)


def test_files_are_spread_over_all_devices(tmp_path: Path) -> None:
    plan = _plan(files=["d/a", "d/b", "c", "e"], size_mib=1, empty=True, devices=3)
    mounts = [tmp_path / name for name in ("one", "two", "three")]
    for mount in mounts:
        mount.mkdir()
    made = load.make_files(plan, mounts)
    assert [path.resolve().relative_to(tmp_path).parts[0] for path in made] == ["one", "two", "three", "one"]
    assert (mounts[1] / "d" / "b").stat().st_size == 1 << 20


def _plan(**changes: Any) -> load.Plan:
    plan: load.Plan = {
        "fio": "fio",
        "filefrag": "filefrag",
        "sample_s": 0.5,
        "directories": [],
        "files": [],
        "size_mib": 0,
        "empty": False,
        "inodes": None,
        "modulus": None,
        "placement": None,
        "layout_job": None,
        "prepare": None,
        "devices": 1,
        "runs": [],
    }
    return {**plan, **changes}  # type: ignore[typeddict-item]


@pytest.mark.usefixtures("inodes_in_a_row")
def test_empty_files_have_a_size_and_no_blocks(tmp_path: Path) -> None:
    plan = _plan(files=["d0/a", "d1/b"], size_mib=3, empty=True, inodes="even", modulus=2)
    load.lay_out(plan, [tmp_path], tmp_path)
    made = [tmp_path / name for name in plan["files"]]
    assert [(path.stat().st_size, path.stat().st_blocks) for path in made] == [(3 << 20, 0)] * 2
    assert [load.inode_number(path) % 2 for path in made] == [0, 1]


def test_placement_sets_switches_and_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switches = tmp_path / "sda" / "write_streams"
    switches.mkdir(parents=True)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.touch()
    given: list[tuple[str, tuple[int, ...]]] = []

    def ioctl(fd: int, request: int, argument: bytes) -> None:
        assert request == load.WRITE_STREAM
        given.append((Path(f"/proc/self/fd/{fd}").readlink().name, struct.unpack("=IIQ", argument)))

    monkeypatch.setattr("guest.load.fcntl.ioctl", ioctl)
    load.place("base", paths, Path("/dev/sda"), tmp_path)
    assert (switches / "generic_ags").read_text() == "1"
    load.place("generic", paths, Path("/dev/sda"), tmp_path)
    assert (switches / "generic_ags").read_text() == "4"
    assert given == []
    load.place("stream", paths, Path("/dev/sda"), tmp_path)
    assert [(path.name, path.read_text()) for path in sorted(switches.iterdir())] == [
        ("generic_ags", "1"),
        ("software", "2"),
    ]
    assert given == [("a", (4, 1, 0)), ("b", (4, 2, 0))]


def test_prepare_runs_in_the_filesystem_and_leaves_its_group(tmp_path: Path) -> None:
    script = "touch begun; (while :; do sleep 0.01; done) & echo $! > child"
    group = load.prepare(script, tmp_path, tmp_path / "said")
    child = int((tmp_path / "child").read_text())
    assert (tmp_path / "begun").exists()
    assert os.getpgid(child) == group
    os.killpg(group, signal.SIGTERM)


def test_prepare_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(load.LoadError, match="prepare ended with status 1: cat: missing"):
        load.prepare("cat missing; touch after", tmp_path, tmp_path / "said")
    assert not (tmp_path / "after").exists()


def test_fill_cache_says_which_file_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    load.fill_cache([tmp_path / "a"])
    with pytest.raises(load.LoadError, match=r"cannot read .*/missing: cat ended with status 1"):
        load.fill_cache([tmp_path / "a", tmp_path / "missing"])


def test_move_behind_link_keeps_written_data(tmp_path: Path) -> None:
    path, target = tmp_path / "a", tmp_path / "second" / "a"
    path.write_bytes(b"data" * 4096)
    load.move_behind_link(path, target)
    assert path.is_symlink()
    assert target.read_bytes() == b"data" * 4096


def test_move_behind_link_keeps_preallocation(tmp_path: Path) -> None:
    path, target = tmp_path / "a", tmp_path / "b"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 1 << 20)
    load.move_behind_link(path, target)
    assert target.stat().st_size == 1 << 20
    assert target.stat().st_blocks * 512 >= 1 << 20


def test_regular_files_see_through_links(tmp_path: Path) -> None:
    (tmp_path / "mnt" / "dir").mkdir(parents=True)
    (tmp_path / "other").write_text("12345")
    (tmp_path / "mnt" / "dir" / "b").symlink_to(tmp_path / "other")
    (tmp_path / "mnt" / "a").write_text("1")
    assert load.regular_files(tmp_path / "mnt") == [tmp_path / "mnt" / "a", tmp_path / "mnt" / "dir" / "b"]


@pytest.mark.parametrize("given", [{}, {"PWB_RESULTS": "/nowhere", "PWB_MNT": "/nowhere"}])
def test_refuses_to_run_outside_a_guest(given: dict[str, str]) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PWB_")} | given
    script = REPO / "guest" / "load.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", script, "plan"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "it changes sysctls" in done.stderr


def test_ag_counters_are_saved_where_there_are_any(tmp_path: Path) -> None:
    output = tmp_path / "limit-128.writeback.txt"
    load.save_ag_counters(output, tmp_path)
    assert not output.exists()
    (tmp_path / "xfs" / "nullb0").mkdir(parents=True)
    (tmp_path / "xfs" / "nullb0" / "writeback").write_text("overwrite: predicted 1\n")
    load.save_ag_counters(output, tmp_path)
    assert output.read_text() == "overwrite: predicted 1\n"


def test_each_run_has_two_marks_for_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    monkeypatch.setattr("signal.sigtimedwait", lambda _, seconds: made.append(seconds))
    monkeypatch.delenv("PWB_PROFILED", raising=False)
    load.Marks().end()
    assert made == []
    monkeypatch.setenv("PWB_PROFILED", "1")
    marks = load.Marks()
    for step, expected in ((marks.begin, 1), (marks.begin, 1), (marks.end, 2), (marks.end, 2)):
        step()
        assert len(made) == expected
    # The jobs ended before anything was written.
    load.Marks().end()
    assert len(made) == 4


@pytest.mark.parametrize(("text", "number"), [("3\n", 3), ("auto (12)\n", 12), (None, None)])
def test_number_of_contexts(tmp_path: Path, text: str | None, number: int | None) -> None:
    if text:
        (tmp_path / "nwritebacks").write_text(text)
    assert load.contexts_in_use(tmp_path) == number
