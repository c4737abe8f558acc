# SPDX-License-Identifier: GPL-2.0
"""The oracle of the power cuts: what it accepts, and what it calls lost."""

from __future__ import annotations

import random

import pytest

from tests.guest.promises import SECTOR_BYTES, ZEROS, File, data_of


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
    assert file.broken(b"") == "0 bytes, expected 1024 to 1024"
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
    assert file.broken(data[:SECTOR_BYTES]) == "512 bytes, expected 1024 to 2048"
    file.truncate(0)
    assert file.broken(b"") is None


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


def test_a_copy_holds_what_its_source_held() -> None:
    source, copy = File(1), File(2)
    data = source.write(0, 1)
    copy.clone(source)
    copy.promise()
    source.write(0, 1)
    assert copy.broken(data) is None
    assert copy.promised() == 1


CHANGES = ["write", "zero", "punch", "truncate", "allocate", "promise", "settle"]


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
        elif what == "promise":
            file.promise()
        else:
            file.settle(held(file))
        assert file.broken(held(file)) is None
