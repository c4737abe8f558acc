# SPDX-License-Identifier: GPL-2.0
"""What a writer of the power cuts does with its files; the cuts themselves are guest tests."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

import pytest

from tests.guest import cut_calls, cut_operations, cut_writer
from tests.guest.promises import SECTOR_BYTES, File, History

# Not every filesystem of a host can do these.
HAVE_NEEDS = {*cut_calls.MODES, "allocate", "write_directly"}
# What makes a promise each time if chance will have it.
PROMISING = (
    "append",
    "write_and_sync",
    "write_synchronously",
    "write_directly",
    "write_flagged",
    "write_mapped",
    "write_range",
    "collapse",
    "insert",
    "replace",
    "copy",
    "link",
    "move",
    "exchange",
    "remove",
    "make_folder",
)


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cut_writer.Writer:
    for name, held in (("power", "1\n"), ("node", "")):
        (tmp_path / name).write_text(held)
        monkeypatch.setattr(cut_calls, name.upper(), tmp_path / name)
    monkeypatch.setattr(cut_writer, "MOUNT", tmp_path)
    writer = cut_writer.Writer("ext4", number=1, seed=1, lie=False)
    monkeypatch.setattr(writer, "_ways", [way for way in writer._ways if way.__name__ not in HAVE_NEEDS])
    writer.begin()
    return writer


def test_every_change_can_follow_a_cut_that_removed_the_file(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for way in writer._ways:
        with monkeypatch.context() as chance:
            chance.setattr(writer.operations, "_sync_names_at_times", lambda _: None)
            writer.operations.remove("file0")
        # The cut came between the removal and the file that was to take its place.
        (writer.folder / "file0").unlink()
        found = writer.check()
        assert (found.lost, (writer.folder / "file0").exists()) == ([], False)
        way("file0")


def test_what_nobody_lost_is_there(writer: cut_writer.Writer) -> None:
    for way in writer._ways:
        way("file1")
    found = writer.check()
    assert found.lost == []
    assert found.promised > 0


@pytest.mark.parametrize("way", PROMISING)
def test_a_promise_that_was_not_kept_is_seen(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    assert lost_by(writer, monkeypatch, tmp_path, way)


@pytest.mark.parametrize("way", PROMISING)
def test_what_was_not_promised_may_be_lost(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> None:
    monkeypatch.setattr(File, "promise", lambda _: None)
    monkeypatch.setattr(File, "promise_range", lambda *_, **__: None)
    monkeypatch.setattr(History, "promise", lambda *_: None)
    assert lost_by(writer, monkeypatch, tmp_path, way) == []


def test_a_file_whose_removal_was_promised_is_not_there(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = writer.folder / "file0"
    before = path.read_bytes()
    with monkeypatch.context() as no_file:
        no_file.setattr(writer._chosen, "random", lambda: 0.0)
        no_file.setattr(writer.operations, "create", lambda _: None)
        writer.operations.remove("file0")
    path.write_bytes(before)
    assert "was removed" in writer.check().lost[0]


def test_sync_of_everything_promises_what_was_written(writer: cut_writer.Writer) -> None:
    path = writer.folder / "file0"
    before = path.read_bytes()
    writer.operations.overwrite("file0")
    writer.operations.sync_all("file0")
    path.write_bytes(before)
    assert "file0" in writer.check().lost[0]


def test_what_is_done_to_the_large_file_is_there(writer: cut_writer.Writer) -> None:
    large = cut_writer.Writer("ext4", number=0, seed=1, lie=False)
    large.begin()
    for way in large._large_ways:
        if way.__name__ not in HAVE_NEEDS:
            way(cut_operations.LARGE)
    large.operations.sync_all(cut_operations.LARGE)
    found = large.check()
    assert found.lost == []
    assert found.promised > cut_operations.LEAST_LARGE_SECTORS


def test_a_file_that_was_renamed_is_not_gone_from_both_names(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer.operations, "_sync_names_at_times", lambda _: None)
    before = {name: (writer.folder / name).read_bytes() for name in cut_writer.SMALL}
    writer.operations.move("file0")
    (target,) = (name for name in before if name != "file0" and read(writer, name) != before[name])
    (writer.folder / target).write_bytes(before[target])
    assert "does not go with" in writer.check().lost[0]


def read(writer: cut_writer.Writer, name: str) -> bytes:
    """Return what a writer's file holds."""
    return (writer.folder / name).read_bytes()


def lost_by(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str
) -> list[str]:
    """Do something, have the folder as it was before, and return what is lost."""
    monkeypatch.setattr(writer._chosen, "random", lambda: 0.0)
    # What the filesystem of this host may not have does nothing, which is a promise that is not kept, too.
    monkeypatch.setattr(os, "O_DIRECT", 0)
    if way in cut_calls.MODES:
        monkeypatch.setattr(cut_operations, "called", lambda *_: None)
    if way == "copy":
        monkeypatch.setattr(fcntl, "ioctl", lambda *_: None)
    before = tmp_path / "before"
    shutil.copytree(writer.folder, before)
    getattr(writer.operations, way)("file0")
    shutil.rmtree(writer.folder)
    before.rename(writer.folder)
    return writer.check().lost


@pytest.mark.parametrize("number", sorted(cut_writer.CUT_OFF))
@pytest.mark.parametrize("power", ["1\n", "0\n"])
def test_a_filesystem_that_gives_up_while_there_is_power_has_failed(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, power: str, number: int
) -> None:
    def fail(_: str) -> None:
        raise OSError(number, "it has given up")

    monkeypatch.setattr(writer, "_ways", [fail])
    (tmp_path / "power").write_text(power)
    # Told at once: the filesystem may be one that cannot be mounted, and so not be checked.
    assert [("it has given up" in one, "fail file" in one) for one in writer.go_on()] == (
        [(True, True)] if power == "1\n" else []
    )
    (tmp_path / "power").write_text("1\n")
    assert writer.check().lost == []


def test_seed_and_number_of_a_cut_choose_what_is_done(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done_in(cut: int, most: int) -> list[str]:
        done: list[str] = []

        def note(name: str) -> None:
            done.append(name)
            if len(done) == most:
                raise OSError(errno.EIO, "the power is gone")

        with monkeypatch.context() as noted:
            noted.setattr(writer, "_ways", [note])
            noted.setattr(cut_writer, "has_power", lambda: False)
            writer.choose_anew(cut)
            writer.go_on()
        return done

    first = done_in(1, 30)
    # Wherever the power went in the cut before.
    done_in(0, 7)
    assert done_in(1, 30) == first
    assert done_in(2, 30) != first
    other = cut_writer.Writer("ext4", number=2, seed=1, lie=False)
    other.choose_anew(1)
    writer.choose_anew(1)
    assert other._chosen.random() != writer._chosen.random()


@pytest.mark.parametrize(("fs", "is_promised"), [("xfs", True), ("ext4", True), ("f2fs", False)])
@pytest.mark.parametrize("way", ["append", "write_and_sync"])
def test_a_new_file_that_was_synced_is_there_by_its_name(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, fs: str, way: str, is_promised: bool
) -> None:
    monkeypatch.setattr(writer.operations, "_fs", fs)
    monkeypatch.setattr(writer.operations, "_sync_names_at_times", lambda _: None)
    writer.operations.remove("file0")
    monkeypatch.setattr(writer._chosen, "random", lambda: 0.0)
    getattr(writer.operations, way)("file0")
    (writer.folder / "file0").unlink()
    lost = writer.check().lost
    assert ["file0: there is no such file" in one for one in lost] == [True] * is_promised


def test_sync_file_range_leaves_open_where_blocks_are(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = writer.operations.names.file("file0")
    assert file is not None
    path = writer.folder / "file0"
    path.write_bytes(file.write(0, 40))
    os.truncate(path, file.size)
    file.promise()
    # Not in the file itself, which can then be found without it.
    file.collapse(16, 8)
    monkeypatch.setattr(writer.operations, "_range_within", lambda *_: (0, 8))
    writer.operations.write_range("file0")
    assert writer.operations.taken["sync_file_range"] == 1
    later = file.write(24, 8)
    data = path.read_bytes()
    path.write_bytes(data[: 32 * SECTOR_BYTES] + later + data[40 * SECTOR_BYTES :])
    assert writer.check().lost == []


@pytest.mark.parametrize("way", ["move", "link", "exchange"])
def test_a_new_file_that_had_another_name_is_not_promised_by_a_sync(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(writer.operations, "_sync_names_at_times", lambda _: None)
    writer.operations.remove("file0")
    monkeypatch.setattr(writer._chosen, "choice", lambda those: "file1" if "file1" in those else those[0])
    getattr(writer.operations, way)("file0")
    monkeypatch.setattr(writer._chosen, "random", lambda: 0.0)
    writer.operations.append("file1")
    histories = writer.operations.names.histories()
    assert all(len(histories[name].possible) > 1 for name in ("file0", "file1"))


def test_a_direct_write_that_is_short_is_no_write(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "O_DIRECT", 0)
    monkeypatch.setattr(os, "pwritev", lambda *_: SECTOR_BYTES)
    with pytest.raises(OSError, match="short"):
        writer.operations.write_directly("file0")


def test_a_mapped_write_is_there_if_its_first_store_missed(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, heard = writer.folder / "file0", tmp_path / "heard"
    before = path.read_bytes()

    def hear() -> None:
        path.write_bytes(before)
        heard.touch()

    # The page had just been cleaned, of which the process hears with its next system call.
    monkeypatch.setattr(os, "getppid", hear)
    monkeypatch.setattr(writer._chosen, "random", lambda: 0.0)
    writer.operations.write_mapped("file0")
    assert heard.exists()
    assert path.read_bytes() != before
    assert writer.check().lost == []


@pytest.mark.parametrize("answer", [0, errno.ENOTTY, errno.EINVAL, errno.EPERM])
def test_a_stream_counts_where_it_was_taken(
    writer: cut_writer.Writer, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    def answered(*_: object) -> None:
        if answer:
            raise OSError(answer, "a stream")

    monkeypatch.setattr(fcntl, "ioctl", answered)
    if answer == errno.EPERM:
        with pytest.raises(OSError, match="a stream"):
            have_streams(writer)
        return
    have_streams(writer)
    assert (writer.check().taken["stream"] > 0) == (not answer)


def have_streams(writer: cut_writer.Writer) -> None:
    """Make a file often enough for one of them to be given a stream."""
    for _ in range(20):
        writer.operations.remove("file0")
