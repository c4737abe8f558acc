# SPDX-License-Identifier: GPL-2.0
"""The parts of the probe of AG-aware writeback's extents that need no guest."""

from __future__ import annotations

import ctypes
import errno
from collections.abc import MutableSequence

import pandas as pd
import pytest

from lab.probes.ag import extents, probe


def test_writeback_has_begun_with_one_page_in_twenty() -> None:
    # The files have 8192 pages.
    samples = [(0, 0), (500, 500), (900, 860), (1500, 1091), (1600, 1000), (3000, 100)]
    assert extents.pages_when_begun(samples) == 1500


def test_writeback_was_not_seen_to_begin() -> None:
    assert extents.pages_when_begun([(0, 0), (8192, 8192)]) == 8192


class Kernel:
    """Answers cachestat(2)."""

    def syscall(self, number: int, file: int, part: object, counts: MutableSequence[int], flags: int) -> int:
        assert (number, flags) == (451, 0)
        if file < 0:
            ctypes.set_errno(errno.EBADF)
            return -1
        # in memory, dirty, being written
        counts[0], counts[1], counts[2] = 10, 5, 2
        return 0


def test_page_is_dirty_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extents, "libc", Kernel())
    assert extents.cache(3) == (10, 7)
    with pytest.raises(OSError, match="cachestat") as caught:
        extents.cache(-1)
    assert caught.value.errno == errno.EBADF


def test_table_has_the_means_of_each_mode() -> None:
    ours = probe.AgExtents("uml", 2, 2)
    files = probe.Files({"off": [(100, 10), (200, 30)], "rotor": [(100, 20), (300, 20)]})
    runs = pd.DataFrame(ours.rows(ours.boots()[0], files))
    first, second = ours.table(runs).splitlines()[2:]
    assert first == "| `off` | 20 | 10 | 150 | 1.00 |"
    assert second.startswith("| `rotor` | 20 | 0 | 200 |")
