# SPDX-License-Identifier: GPL-2.0
"""The sentence for a name that is not known."""

from __future__ import annotations

from lab.util.errors import unknown_name


def test_names_the_nearest() -> None:
    assert str(unknown_name("kernel", "paralel", ["stock", "parallel", "debug"])) == (
        "unknown kernel 'paralel': expected parallel"
    )


def test_names_all_where_none_is_near() -> None:
    assert (
        str(unknown_name("device", "zzz", ["nolat", "100us"]))
        == "unknown device 'zzz': expected 100us or nolat"
    )


def test_names_all_of_a_short_list_with_commas() -> None:
    assert (
        str(unknown_name("filesystem", "btrfs", ["xfs", "ext4", "f2fs"]))
        == "unknown filesystem 'btrfs': expected ext4, f2fs or xfs"
    )


def test_says_when_there_is_nothing_to_choose_from() -> None:
    assert (
        str(unknown_name("scenario", "x", []))
        == "unknown scenario 'x': expected none, there are no scenarios"
    )
