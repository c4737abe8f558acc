# SPDX-License-Identifier: GPL-2.0
"""The pure parts of guest/load.py, and that it refuses to run outside a guest."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

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


def test_cpu_time_is_none_without_schedstat(tmp_path: Path) -> None:
    assert load.cpu_ns(tmp_path / "schedstat") is None
    (tmp_path / "schedstat").write_text("1234 5 6\n")
    assert load.cpu_ns(tmp_path / "schedstat") == 1234


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
    (proc / "vmstat").write_text("nr_dirty 5\nnr_writeback 1\n")
    stat = tmp_path / "stat"
    stat.write_text("0 0 0 0 0 0 77 0 0 0 0")
    sampler = load.Sampler([stat], proc)
    sampler.sample()
    [sample] = sampler.samples
    assert sample["kworkers"] == {"6": [True, 20], "7": [True, 500], "8": [False, 30]}
    assert (sample["sectors"], sample["dirty"], sample["writeback"]) == ([77], 5, 1)


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
    for name in ("sda", "sdb"):
        (tmp_path / name).write_text("0 " * 6 + "2048 0")
    (tmp_path / "vmstat").write_text("nr_dirty 0\nnr_writeback 0\n")
    sampler = load.Sampler([tmp_path / "sda", tmp_path / "sdb"], tmp_path)
    sampler.sample()
    (tmp_path / "sdb").write_text("0 " * 6 + "8192 0")
    sampler.sample()
    assert sampler.written_mib() == 3


@pytest.mark.usefixtures("inodes_in_a_row")
def test_empty_files_have_a_size_and_no_blocks(tmp_path: Path) -> None:
    plan: load.Plan = {
        "fio": "fio",
        "filefrag": "filefrag",
        "sample_s": 0.5,
        "directories": [],
        "files": ["d0/a", "d1/b"],
        "size_mib": 3,
        "empty": True,
        "inodes": "even",
        "modulus": 2,
        "placement": None,
        "layout_job": None,
        "prepare": None,
        "spread": False,
        "runs": [],
    }
    load.lay_out(plan, tmp_path, None, tmp_path)
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
