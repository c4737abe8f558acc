# SPDX-License-Identifier: GPL-2.0
"""What a writer of the power cuts does with its files; the cuts themselves are guest tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guest import cuts

# Not every filesystem of a host can do these.
HAVE_NEEDS = {"zero", "punch", "allocate", "write_directly"}


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cuts.Writer:
    power = tmp_path / "power"
    power.write_text("1\n")
    monkeypatch.setattr(cuts, "POWER", power)
    monkeypatch.setattr(cuts, "MOUNT", tmp_path)
    writer = cuts.Writer("ext4", number=0, seed=1, lie=False)
    monkeypatch.setattr(writer, "_ways", [way for way in writer._ways if way.__name__ not in HAVE_NEEDS])
    writer.begin()
    return writer


def test_every_change_can_follow_a_cut_that_removed_the_file(writer: cuts.Writer) -> None:
    for way in writer._ways:
        writer.remove("file0")
        # The cut came between the removal and the file that was to take its place.
        (writer.folder / "file0").unlink()
        found = writer.check()
        assert (found.lost, (writer.folder / "file0").exists()) == ([], False)
        way("file0")


def test_what_nobody_lost_is_there(writer: cuts.Writer) -> None:
    for way in writer._ways:
        way("file1")
    found = writer.check()
    assert found.lost == []
    assert found.promised > 0
