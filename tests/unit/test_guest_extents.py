# SPDX-License-Identifier: GPL-2.0
"""Extents as the guest counts them."""

from __future__ import annotations

from pathlib import Path

from guest import extents


def test_filefrag_counts_and_odd_names() -> None:
    text = "/mnt/test/a: 1 extent found\n/mnt/test/b c: d: 61533 extents found\n/mnt/test/x: unsupported\n"
    assert extents.parse_filefrag(text) == {"/mnt/test/a": 1, "/mnt/test/b c: d": 61533}


def test_regular_files_see_through_links(tmp_path: Path) -> None:
    (tmp_path / "mnt" / "dir").mkdir(parents=True)
    (tmp_path / "other").write_text("12345")
    (tmp_path / "mnt" / "dir" / "b").symlink_to(tmp_path / "other")
    (tmp_path / "mnt" / "a").write_text("1")
    assert extents.regular_files(tmp_path / "mnt") == [tmp_path / "mnt" / "a", tmp_path / "mnt" / "dir" / "b"]
