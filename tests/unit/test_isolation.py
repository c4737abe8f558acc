# SPDX-License-Identifier: GPL-2.0
"""Where blocks of files lie: numbers and a picture, of made-up extents, and of a real file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pandas as pd
import pytest

from guest.fiemap import extents
from lab.probes.isolation import probe as isolation
from lab.probes.probe import Row

MIB = 1 << 20
PROBE = isolation.Isolation()
AG = isolation.DEVICE_MIB * MIB // isolation.AGS


def recorded(*files: list[tuple[int, int]]) -> isolation.Recorded:
    return isolation.Recorded(device_bytes=isolation.DEVICE_MIB * MIB, files=list(files))


TOGETHER = recorded([(0, MIB), (2 * MIB, MIB)], [(MIB, MIB), (3 * MIB, MIB)])
APART = recorded([(0, 2 * MIB)], [(AG, 2 * MIB)])


def figures(of: isolation.Recorded) -> Row:
    [row] = PROBE.rows(PROBE.boots()[0], of)
    return row


def test_numbers() -> None:
    assert figures(TOGETHER) == {"extents": 4, "ags_of_a_file": 1, "files_of_an_ag": 2}
    assert figures(APART) == {"extents": 2, "ags_of_a_file": 1, "files_of_an_ag": 1}
    assert figures(recorded([(AG - MIB, 2 * MIB)]))["ags_of_a_file"] == 2


def test_cells() -> None:
    lines = isolation.cells(APART)
    wide = 2 * isolation.CELLS_PER_LINE * MIB // AG
    assert [len(line) for line in lines] == [isolation.CELLS_PER_LINE] * isolation.LINES
    assert [line[: wide + 1] for line in lines[:3]] == [
        [1] * wide + [0],
        [2] * wide + [0],
        [0] * (wide + 1),
    ]
    assert (
        isolation.cells(recorded([(0, isolation.DEVICE_MIB * MIB)]))
        == [[1] * isolation.CELLS_PER_LINE] * isolation.LINES
    )


def test_picture(tmp_path: Path) -> None:
    PROBE.draw(pd.DataFrame(), {"none": TOGETHER, "streams": APART}, tmp_path)
    assert (tmp_path / "isolation.png").stat().st_size > 1000


def test_extents_of_a_real_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(MIB))
    try:
        found = list(extents(path))
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip("the temporary folder's filesystem has no FIEMAP")
    assert sum(length for _, length in found) >= MIB
