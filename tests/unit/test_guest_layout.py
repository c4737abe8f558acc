# SPDX-License-Identifier: GPL-2.0
"""Files as a plan wants them."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from guest import layout
from guest.plan import LoadError, Plan


def _plan(**changes: Any) -> Plan:
    plan: Plan = {
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

    monkeypatch.setattr(layout, "inode_number", inode_number)


@pytest.mark.parametrize(("mounts", "refused"), [(1, False), (2, True)])
def test_job_that_makes_its_files_as_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: int, refused: bool
) -> None:
    """One device takes it as it is; over several nothing can be spread."""
    monkeypatch.setattr(os, "sync", lambda: None)
    run: Any = {"env": {}}
    # A program that makes no file stands for fio.
    plan = _plan(fio="true", layout_job="layout.fio", runs=[run])
    folders = [tmp_path / str(number) for number in range(mounts)]
    for folder in folders:
        folder.mkdir()
    if refused:
        with pytest.raises(LoadError, match="0 files cannot be spread over 2 devices"):
            layout.lay_out(plan, folders, tmp_path)
    else:
        layout.lay_out(plan, folders, tmp_path)


@pytest.mark.usefixtures("inodes_in_a_row")
@pytest.mark.parametrize(("skewed", "expected"), [(False, [0, 1, 2, 3]), (True, [0, 0, 0, 0])])
def test_inode_numbers_are_chosen_and_misfits_go(tmp_path: Path, skewed: bool, expected: list[int]) -> None:
    paths = _paths(tmp_path)
    layout.choose_inodes(paths, 4, skewed=skewed)
    assert [layout.inode_number(path) % 4 for path in paths] == expected
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == paths


def test_inode_number_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "INODE_TRIES", 0)
    with pytest.raises(LoadError, match="d0/data: found no inode number that leaves 0 divided by 4"):
        layout.choose_inodes(_paths(tmp_path), 4, skewed=False)


def test_files_are_spread_over_all_devices(tmp_path: Path) -> None:
    plan = _plan(files=["d/a", "d/b", "c", "e"], size_mib=1, empty=True, devices=3)
    mounts = [tmp_path / name for name in ("one", "two", "three")]
    for mount in mounts:
        mount.mkdir()
    made = layout.make_files(plan, mounts)
    assert [path.resolve().relative_to(tmp_path).parts[0] for path in made] == ["one", "two", "three", "one"]
    assert (mounts[1] / "d" / "b").stat().st_size == 1 << 20


@pytest.mark.usefixtures("inodes_in_a_row")
def test_empty_files_have_a_size_and_no_blocks(tmp_path: Path) -> None:
    plan = _plan(files=["d0/a", "d1/b"], size_mib=3, empty=True, inodes="even", modulus=2)
    layout.lay_out(plan, [tmp_path], tmp_path)
    made = [tmp_path / name for name in plan["files"]]
    assert [(path.stat().st_size, path.stat().st_blocks) for path in made] == [(3 << 20, 0)] * 2
    assert [layout.inode_number(path) % 2 for path in made] == [0, 1]


def test_placement_sets_switches_and_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    switches = tmp_path / "sda" / "write_streams"
    switches.mkdir(parents=True)
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.touch()
    given: list[tuple[str, tuple[int, ...]]] = []

    def ioctl(fd: int, request: int, argument: bytes) -> None:
        assert request == layout.WRITE_STREAM
        given.append((Path(f"/proc/self/fd/{fd}").readlink().name, struct.unpack("=IIQ", argument)))

    monkeypatch.setattr("guest.layout.fcntl.ioctl", ioctl)
    layout.place("base", paths, Path("/dev/sda"), tmp_path)
    assert (switches / "generic_ags").read_text() == "1"
    layout.place("generic", paths, Path("/dev/sda"), tmp_path)
    assert (switches / "generic_ags").read_text() == "4"
    assert given == []
    layout.place("stream", paths, Path("/dev/sda"), tmp_path)
    assert [(path.name, path.read_text()) for path in sorted(switches.iterdir())] == [
        ("generic_ags", "1"),
        ("software", "2"),
    ]
    assert given == [("a", (4, 1, 0)), ("b", (4, 2, 0))]


def test_fill_cache_says_which_file_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    layout.fill_cache([tmp_path / "a"])
    with pytest.raises(LoadError, match=r"cannot read .*/missing: cat ended with status 1"):
        layout.fill_cache([tmp_path / "a", tmp_path / "missing"])


def test_move_behind_link_keeps_written_data(tmp_path: Path) -> None:
    path, target = tmp_path / "a", tmp_path / "second" / "a"
    path.write_bytes(b"data" * 4096)
    layout.move_behind_link(path, target)
    assert path.is_symlink()
    assert target.read_bytes() == b"data" * 4096


def test_move_behind_link_keeps_preallocation(tmp_path: Path) -> None:
    path, target = tmp_path / "a", tmp_path / "b"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1 << 20)
    layout.move_behind_link(path, target)
    assert target.stat().st_size == 1 << 20
    assert target.stat().st_blocks * 512 >= 1 << 20


@pytest.mark.parametrize("data", [b"", b"data"])
def test_move_behind_link_keeps_what_lies_behind_a_hole(tmp_path: Path, data: bytes) -> None:
    path, target = tmp_path / "a", tmp_path / "b"
    with path.open("wb") as file:
        file.truncate(1 << 20)
        file.seek(1 << 20)
        file.write(data)
    layout.move_behind_link(path, target)
    assert target.read_bytes() == bytes(1 << 20) + data
    assert data or target.stat().st_blocks == 0
