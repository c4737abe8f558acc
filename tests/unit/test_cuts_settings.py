# SPDX-License-Identifier: GPL-2.0
"""How the power cuts choose settings, on folders that stand for those of sysfs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.guest import cut_settings
from tests.guest.cut_settings import MODES, STREAMS, WAYS, Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(cut_settings, "FLUSHING", ({},))
    settings = Settings(tmp_path / "bdi", "cuts", random.Random(1))
    monkeypatch.setattr(settings, "_modes", tmp_path / "writeback")
    monkeypatch.setattr(settings, "_streams", tmp_path / "write_streams")
    return settings


def test_a_kernel_without_settings_is_left_alone(settings: Settings, tmp_path: Path) -> None:
    assert settings.choose() == {}
    assert {settings.change() for _ in range(20)} == {"nothing"}
    assert not settings.has_streams
    assert list(tmp_path.iterdir()) == []


HELD: Mapping[str, Mapping[str, Sequence[str]]] = {
    "bdi": WAYS,
    "write_streams": STREAMS,
    "writeback": {"overwrite": MODES, "delalloc": MODES},
}


def have_settings(folder: Path) -> None:
    """Have files of all settings below a folder."""
    for below, names in HELD.items():
        (folder / below).mkdir()
        for name in names:
            (folder / below / name).write_text("")


def test_what_changes_amid_the_load_gets_another_value(settings: Settings, tmp_path: Path) -> None:
    have_settings(tmp_path)
    changed = set()
    for _ in range(200):
        way = settings.choose()
        name = settings.change()
        if name != "nothing":
            path = tmp_path / ("writeback/delalloc" if name == "mode" else f"bdi/{name}")
            assert path.read_text() != way[name]
        changed.add(name)
    assert changed == {*WAYS, "mode", "nothing"}


def test_each_setting_is_chosen_and_may_change_amid_the_load(settings: Settings, tmp_path: Path) -> None:
    have_settings(tmp_path)
    way = settings.choose()
    assert set(way) == {*WAYS, *STREAMS, "mode"}
    assert (tmp_path / "write_streams" / "generic_ags").read_text() == way["generic_ags"]
    changed = [settings.change() for _ in range(400)]
    assert set(changed) == {*WAYS, "mode", "nothing"}
    assert 150 < changed.count("nothing") < 250
    for folder, names in HELD.items():
        for name, values in names.items():
            assert (tmp_path / folder / name).read_text() in values
