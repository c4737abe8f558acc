# SPDX-License-Identifier: GPL-2.0
"""Things put together that share a key."""

from __future__ import annotations

from lab.util.grouping import grouped


def test_keys_and_items_keep_their_order() -> None:
    assert list(grouped(len, ["bb", "a", "cc", "d"]).items()) == [(2, ["bb", "cc"]), (1, ["a", "d"])]


def test_nothing_has_no_groups() -> None:
    assert grouped(len, iter([])) == {}
