# SPDX-License-Identifier: GPL-2.0
"""The oracle of the power cuts: what it accepts, and what it calls lost."""

from __future__ import annotations

import random

import pytest

from tests.guest.promises import SECTOR_BYTES, ZEROS, Content, File, History, data_of


def held(file: File) -> bytes:
    """Return what a file holds that lost nothing."""
    sectors = range(file.size // SECTOR_BYTES)
    return b"".join(data_of(file._history(sector).last) for sector in sectors)


def test_what_was_not_promised_may_be_there_or_not() -> None:
    file = File(1)
    data = file.write(0, 2)
    assert file.broken(b"") is None
    assert file.broken(data) is None
    assert file.broken(data[:SECTOR_BYTES] + ZEROS) is None
    assert file.promised() == 0


def test_what_was_promised_is_there() -> None:
    file = File(1)
    data = file.write(0, 2)
    file.promise()
    assert file.promised() == 2
    assert file.broken(data) is None
    assert file.broken(b"") == "0 bytes, expected 1024 to 1024 of file 1"
    assert "sector 1 of 2 is zeros" in str(file.broken(data[:SECTOR_BYTES] + ZEROS))
    assert "sector 0 of 2 is something else" in str(file.broken(b"x" * 1024))


def test_both_owners_of_blocks_share_them() -> None:
    source, copy, other = File(1), File(2), File(3)
    source.write(0, 2)
    copy.clone(source)
    assert (source.shares, copy.shares, other.shares) == (True, True, False)


def test_each_sector_is_what_was_promised_or_newer() -> None:
    file = File(1)
    oldest = file.write(0, 2)
    old = file.write(0, 2)
    file.promise()
    new = file.write(0, 2)
    assert file.broken(old[:SECTOR_BYTES] + new[SECTOR_BYTES:]) is None
    assert "sector 0 of 2 is Content(file=1, sector=0, change=1)" in str(file.broken(oldest))


def test_words_of_two_writes_may_be_mixed_and_stay_so() -> None:
    file = File(1)
    old = file.write(0, 1)
    file.promise()
    new = file.write(0, 1)
    mixed = old[:40] + new[40:]
    assert file.broken(mixed) is None
    file.settle(mixed)
    assert file.broken(mixed) is None
    assert file.broken(old) is not None
    other = File(2).write(0, 1)
    assert "is something else" in str(file.broken(old[:40] + other[40:]))


def test_what_was_not_synced_may_hold_anything_where_data_is_not_waited_for() -> None:
    file = File(1)
    data = file.write(0, 1)
    other = File(2).write(0, 1)
    assert file.broken(other) is not None
    assert file.broken(other, anything_else=True) is None
    file.promise()
    assert file.broken(other, anything_else=True) is not None
    assert file.broken(data, anything_else=True) is None


def test_a_promise_for_some_sectors_leaves_the_others() -> None:
    file = File(1)
    file.write(0, 2)
    file.promise()
    data = file.write(0, 2)
    file.promise_range(1, 1)
    assert file.promised() == 2
    assert file.broken(data) is None
    assert file.broken(ZEROS + data[SECTOR_BYTES:]) is not None


def test_a_promise_for_some_sectors_is_one_that_the_file_reaches_there() -> None:
    file = File(1)
    data = file.write(0, 4)
    file.promise_range(1, 1)
    assert file.broken(data[: 2 * SECTOR_BYTES]) is None
    found = f"512 bytes that begin with {Content(1, 0, 1)}"
    assert file.broken(data[:SECTOR_BYTES]) == f"{found}, expected 1024 to 2048 of file 1"
    file.truncate(0)
    assert file.broken(b"") is None


def test_only_what_was_promised_and_no_hole_since_is_written_in_place() -> None:
    file = File(1)
    file.write(0, 4)
    assert not file.is_in_place(0, 1)
    file.promise()
    assert file.is_in_place(0, 4)
    assert not file.is_in_place(3, 2)
    file.write(0, 1)
    assert file.is_in_place(0, 1)
    file.zero(1, 1, keep_size=True)
    file.write(1, 1)
    assert (file.is_in_place(0, 1), file.is_in_place(0, 2)) == (True, False)
    File(2).clone(file)
    assert not file.is_in_place(0, 1)


def test_a_hole_and_what_was_cut_off_are_zeros() -> None:
    file = File(1)
    data = file.write(0, 4)
    file.zero(1, 1, keep_size=True)
    file.truncate(2 * SECTOR_BYTES)
    file.truncate(4 * SECTOR_BYTES)
    file.promise()
    assert file.broken(data[:SECTOR_BYTES] + ZEROS * 3) is None
    assert "sector 1 of 4" in str(file.broken(data))


def test_what_was_cut_off_may_come_to_light_until_zeros_are_promised() -> None:
    file = File(1)
    data = file.write(0, 4)
    file.promise()
    file.truncate(2 * SECTOR_BYTES)
    file.promise()
    more = file.write(4, 1)
    assert file.broken(data + more) is None
    file.promise()
    assert "sector 2 of 5" in str(file.broken(data + more))
    assert file.broken(data[: 2 * SECTOR_BYTES] + 2 * ZEROS + more) is None


def test_what_is_taken_out_or_put_in_moves_the_rest() -> None:
    file = File(1)
    data = file.write(0, 4)
    file.promise()
    file.collapse(1, 2)
    shorter = data[:SECTOR_BYTES] + data[3 * SECTOR_BYTES :]
    half_way = data[:SECTOR_BYTES] + ZEROS + data[2 * SECTOR_BYTES :]
    assert [file.broken(found) for found in (data, shorter, half_way)] == [None, None, None]
    file.promise()
    assert file.broken(shorter) is None
    assert "expected 1024 to 1024" in str(file.broken(data))
    assert "sector 1 of 2 is zeros" in str(file.broken(data[:SECTOR_BYTES] + ZEROS))
    file.insert(1, 1)
    file.promise()
    assert file.broken(data[:SECTOR_BYTES] + ZEROS + data[3 * SECTOR_BYTES :]) is None
    assert "expected 1536 to 1536" in str(file.broken(shorter))


def test_what_is_written_to_a_block_that_was_moved_may_be_where_it_was() -> None:
    file = File(1)
    data = file.write(0, 6)
    file.promise()
    file.collapse(1, 2)
    file.insert(1, 1)
    new = file.write(2, 1)
    where_it_was = data[: 3 * SECTOR_BYTES] + new + data[4 * SECTOR_BYTES :]
    assert file.broken(where_it_was) is None
    assert file.broken(data[: 4 * SECTOR_BYTES] + new + data[5 * SECTOR_BYTES :]) is not None
    moved = data[:SECTOR_BYTES] + ZEROS + new + data[4 * SECTOR_BYTES :]
    assert held(file) == moved
    file.promise()
    assert file.broken(moved) is None
    assert file.broken(where_it_was) is not None
    later = file.write(2, 1)
    assert file.broken(data[:SECTOR_BYTES] + ZEROS + later + data[4 * SECTOR_BYTES :]) is None
    assert file.broken(moved[: 3 * SECTOR_BYTES] + later + moved[4 * SECTOR_BYTES :]) is not None


@pytest.mark.parametrize("has_metadata", [True, False])
def test_where_blocks_were_is_forgotten_when_metadata_is_synced(has_metadata: bool) -> None:
    file = File(1)
    file.write(0, 40)
    file.promise()
    file.collapse(0, 8)
    file.write(24, 8)
    file.promise_range(24, 8, has_metadata=has_metadata)
    kept = held(file)
    later = file.write(16, 8)
    where_it_was = kept[: 24 * SECTOR_BYTES] + later + kept[32 * SECTOR_BYTES :]
    assert (file.broken(where_it_was) is None) == (not has_metadata)
    assert file.broken(held(file)) is None


def test_a_file_ends_with_a_whole_sector() -> None:
    file = File(1)
    data = file.write(0, 2)
    assert file.broken(data[:SECTOR_BYTES]) is None
    assert "1023 bytes" in (file.broken(data[:-1]) or "")


def test_a_history_tells_what_it_was_when() -> None:
    history: History[str | None] = History("old")
    history.add(3, None)
    history.add(5, "new")
    assert history.begins == [0, 3, 5]
    assert [history.at(change) for change in range(7)] == ["old"] * 3 + [None] * 2 + ["new"] * 2
    history.promise(3)
    assert [history.at(change) for change in range(3, 7)] == [None, None, "new", "new"]


def test_a_copy_holds_what_its_source_held() -> None:
    source, copy = File(1), File(2)
    data = source.write(0, 1)
    copy.clone(source)
    copy.promise()
    source.write(0, 1)
    assert copy.broken(data) is None
    assert copy.promised() == 1


CHANGES = ["write", "zero", "punch", "truncate", "allocate", "collapse", "insert", "promise", "settle"]


@pytest.mark.parametrize("seed", range(50))
def test_a_file_that_lost_nothing_is_never_called_broken(seed: int) -> None:
    chosen = random.Random(seed)
    file = File(1)
    for _ in range(60):
        what, first, count = chosen.choice(CHANGES), chosen.randint(0, 12), chosen.randint(1, 8)
        if what == "write":
            file.write(first, count)
        elif what == "zero":
            file.zero(first, count, keep_size=False)
        elif what == "punch":
            file.zero(first, count, keep_size=True)
        elif what == "truncate":
            file.truncate(first * SECTOR_BYTES)
        elif what == "allocate":
            file.allocate(count * SECTOR_BYTES)
        elif what in ("collapse", "insert") and (first + count) * SECTOR_BYTES < file.size:
            getattr(file, what)(first, count)
        elif what == "promise":
            file.promise()
        else:
            file.settle(held(file))
        assert file.broken(held(file)) is None
