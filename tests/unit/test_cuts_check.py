# SPDX-License-Identifier: GPL-2.0
"""How names are told from each other after a power cut; what a writer does with them is tested elsewhere."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.guest.cut_check import JOURNALED, Check, Found
from tests.guest.cut_match import Choices, best_match, moments
from tests.guest.cut_names import Names
from tests.guest.promises import PAGE_SECTORS, SECTOR_BYTES, File, History

FILESYSTEMS = (*JOURNALED, "f2fs")


@pytest.fixture
def names(tmp_path: Path) -> Names:
    (tmp_path / "writer" / "other").mkdir(parents=True)
    return Names(tmp_path / "writer")


def have(names: Names, found: Mapping[str, bytes | str]) -> None:
    """Have a folder as it is found: names with what they hold, or with another name of the same file."""
    for name, what in found.items():
        if isinstance(what, str):
            os.link(names.folder / what, names.folder / name)
        else:
            (names.folder / name).write_bytes(what)


def checked(fs: str, names: Names) -> Found:
    """Check a folder."""

    def create(name: str) -> None:
        names.change((name, File(99)))
        (names.folder / name).touch(exist_ok=False)

    return Check(fs, names, create).run()


def two_files(names: Names) -> tuple[File, File, bytes]:
    """Have two files whose names are promised, and tell what the second may hold; each may also be empty."""
    first, second = File(1), File(2)
    names.change(("file0", first), ("file1", second))
    first.write(0, 4)
    data = second.write(0, 8)
    return first, second, data


def test_a_copy_that_may_hold_anything_is_not_what_was_to_be_moved_there(names: Names) -> None:
    file, old, copy = File(1), File(2), File(3)
    data = file.write(0, 32)
    old.write(0, 4)
    names.change(("file1", old), ("other/file4", file))
    names.promise_all()
    copy.clone(file)
    copy.promise()
    names.change(("file1", copy))
    names.promise_folder(names.folder)
    more = file.write(5, 6)
    file.promise_range(5, 6)
    file.truncate(5 * SECTOR_BYTES)
    names.change(("other/file4", None), ("file1", file))
    # The log had the truncation, and not the move.
    have(names, {"file1": data, "other/file4": (data[: 5 * SECTOR_BYTES] + more)[: 5 * SECTOR_BYTES]})
    assert checked("xfs", names).lost == []
    assert (names.file("file1"), names.file("other/file4")) == (copy, file)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_files_that_were_to_change_their_names_are_told_from_each_other(names: Names, fs: str) -> None:
    first, second, data = two_files(names)
    names.change(("file0", second), ("file1", first))
    # Each name can be the second file by itself.
    have(names, {"file0": b"", "file1": data})
    assert checked(fs, names).lost == []
    assert (names.file("file0"), names.file("file1")) == (first, second)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_names_of_one_inode_are_one_file(names: Names, fs: str) -> None:
    first, second = File(1), File(2)
    names.change(("file0", first), ("file1", first))
    names.change(("file1", second))
    # The name can be of either by what it holds.
    have(names, {"file0": b"", "file1": "file0"})
    assert checked(fs, names).lost == []
    assert (names.file("file0"), names.file("file1")) == (first, None)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_one_file_is_not_two_inodes(names: Names, fs: str) -> None:
    first = File(1)
    names.change(("file0", first), ("file1", first))
    have(names, {"file0": b"", "file1": b""})
    (lost,) = checked(fs, names).lost
    assert "it can be file 1, which does not go with" in lost


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_two_files_are_not_one_inode(names: Names, fs: str) -> None:
    two_files(names)
    have(names, {"file0": b"", "file1": "file0"})
    (lost,) = checked(fs, names).lost
    assert "which does not go with" in lost


@pytest.mark.parametrize(("fs", "is_lost"), [("xfs", True), ("ext4", True), ("f2fs", False)])
def test_a_journal_has_a_folder_in_order_with_the_names(names: Names, fs: str, is_lost: bool) -> None:
    first, _, _ = two_files(names)
    first.promise()
    names.change_made()
    names.change(("file0", None), ("file1", first))
    have(names, {"file1": File(1).write(0, 4)})
    lost = checked(fs, names).lost
    assert lost == (["writer/made is not there, which does not go with what the other names are"] * is_lost)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_a_folder_that_was_promised_is_there(names: Names, fs: str) -> None:
    two_files(names)
    names.change_made()
    names.promise_folder(names.folder)
    have(names, {"file0": b"", "file1": b""})
    assert checked(fs, names).lost == ["writer/made is not what it was"]


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_a_name_is_lost_once_whatever_it_was_to_be(names: Names, fs: str) -> None:
    first, second, _ = two_files(names)
    first.promise()
    second.promise()
    names.change(("file1", first))
    have(names, {"file0": File(1).write(0, 4), "file1": b""})
    (lost,) = checked(fs, names).lost
    assert "writer/file1: " in lost
    assert "expected 2048 to 2048 of file 1, or 0 bytes" in lost
    assert "expected 4096 to 4096 of file 2" in lost
    # It is a new file, and the other one is what it was.
    file = names.file("file1")
    assert file is not None
    assert (file.number, names.file("file0")) == (99, first)


@pytest.mark.parametrize("fs", FILESYSTEMS)
def test_a_file_that_is_missing_is_told_by_who_it_was_to_be(names: Names, fs: str) -> None:
    two_files(names)
    have(names, {"file1": b""})
    assert checked(fs, names).lost == ["writer/file0: there is no such file, expected file 1"]


def test_a_moment_is_when_all_have_values_that_may_be_found() -> None:
    early, late = History[File | None](None), History(False)
    for change in (2, 5):
        early.add(change, File(change))
    for change in (3, 4):
        late.add(change, change == 3)
    late.promise(3)
    assert moments(early, late) == [5, 4, 3]


def test_a_match_prefers_what_comes_first_and_loses_as_little_as_possible() -> None:
    a, b, c = File(1), File(2), File(3)
    inodes = {"x": 11, "y": 12, "z": None}
    ways: list[Choices]
    ways = [{"x": [a, b], "y": [b, a], "z": [None]}]
    assert best_match(inodes, ways) == {"x": a, "y": b, "z": None}
    ways = [{"x": [a, b], "y": [a], "z": [None]}]
    assert best_match(inodes, ways) == {"x": b, "y": a, "z": None}
    # Of two ways the later one if that loses less.
    ways = [{"x": [a], "y": [a], "z": [None]}, {"x": [c], "y": [], "z": []}, {"x": [c], "y": [b], "z": []}]
    assert best_match(inodes, ways) == {"x": a, "z": None}
    assert best_match(inodes, ways[1:]) == {"x": c, "y": b}


def test_a_file_of_f2fs_can_be_longer(names: Names) -> None:
    first, _, _ = two_files(names)
    first.promise()
    page = PAGE_SECTORS * SECTOR_BYTES
    have(names, {"file0": File(1).write(0, 4).ljust(2 * page, b"\0"), "file1": b""})
    found = checked("f2fs", names)
    assert (found.longer, found.lost, found.promised) == (1, [], 1 + 4 + 1)
