# SPDX-License-Identifier: GPL-2.0
"""The folder of packages: one of each, whole, with a manifest that is believed only where it fits."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from lab.package import folder
from lab.util.errors import LabError

STOCK = "linux-image-7.3.4-pwb-stock_7.3.4-{}_amd64.deb"
WBCTL = "wbctl_1.0_amd64.deb"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    (tmp_path / "packages").mkdir()
    return tmp_path / "packages"


def put(packages: Path, name: str, text: str = "new", change: str | None = None) -> Path:
    made = packages.parent / name
    made.write_text(text)
    return folder.put(made, packages, change=change, commit="c0ffee")


def names(packages: Path) -> list[str]:
    return sorted(name for name in os.listdir(packages) if name.endswith(".deb"))


def test_an_older_one_of_the_same_package_goes(packages: Path) -> None:
    put(packages, STOCK.format(1))
    put(packages, WBCTL)
    (packages / "fio_3.33_amd64.deb").write_text("of somebody else")
    put(packages, STOCK.format(2))
    assert names(packages) == ["fio_3.33_amd64.deb", STOCK.format(2), WBCTL]
    assert [one["file"] for one in json.loads((packages / folder.MANIFEST).read_text())] == [
        STOCK.format(2),
        WBCTL,
    ]


def test_a_copy_that_is_interrupted_changes_nothing(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = put(packages, STOCK.format(1), "first")
    before = sorted(os.listdir(packages))

    def interrupted(source: Path, target: Path) -> None:
        target.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(packages, STOCK.format(2))
    with pytest.raises(KeyboardInterrupt):
        put(packages, STOCK.format(1))
    assert sorted(os.listdir(packages)) == before
    assert first.read_text() == "first"
    assert len(folder.ours([first])) == 1


def test_what_a_package_was_made_of_is_told(packages: Path) -> None:
    stock = put(packages, STOCK.format(1), change="cafe")
    fio = packages / "fio_3.33_amd64.deb"
    fio.write_text("of somebody else")
    [known] = folder.ours([fio, stock])
    assert (known.file, known.change, known.commit) == (STOCK.format(1), "cafe", "c0ffee")


@pytest.mark.parametrize("manifest", [None, "[]", "no JSON", '[{"file": 1}]'])
@pytest.mark.parametrize("name", [STOCK.format(1), STOCK.format(1).replace("stock", "parallel"), WBCTL])
def test_a_package_that_no_manifest_names(packages: Path, name: str, manifest: str | None) -> None:
    package = put(packages, name)
    (packages / folder.MANIFEST).unlink()
    if manifest is not None:
        (packages / folder.MANIFEST).write_text(manifest)
    with pytest.raises(LabError, match=rf"what .*/{name} was made of is not known: .* with: ./pwb deb$"):
        folder.ours([package])
    # Made again it is known again.
    assert len(folder.ours([put(packages, name)])) == 1


def test_a_package_of_another_content(packages: Path) -> None:
    package = put(packages, WBCTL)
    package.write_text("another")
    with pytest.raises(LabError, match="is not known"):
        folder.ours([package])
