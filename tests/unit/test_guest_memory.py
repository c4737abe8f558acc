# SPDX-License-Identifier: GPL-2.0
"""Memory for guests that is there before they start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.machine import guest_memory
from lab.util.errors import LabError


def test_every_page_is_there_and_the_file_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with guest_memory.filled(3) as memory:
        found = os.fstat(memory)
        assert found.st_size == 3 << 20
        assert found.st_blocks * 512 >= 3 << 20
        assert found.st_dev == tmp_path.stat().st_dev
        assert not list(tmp_path.iterdir())
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(memory)


def test_no_room_for_it() -> None:
    with pytest.raises(LabError, match=r"memory: 1048576\.0 GiB for the guest"), guest_memory.filled(1 << 30):
        pass
