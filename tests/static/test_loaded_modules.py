# SPDX-License-Identifier: GPL-2.0
"""What the kernel's own script leaves of a configuration, given what a server has loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.package import loaded
from lab.tree.source import Source
from lab.util.errors import LabError

LISTED = "Module Size Used by\nxfs 2670592 1\nahci 49152 0\nlibata 438272 1 ahci\nvendorraid 9 0\n"
SETTINGS = ["MODULES=y", "EXT4_FS=y", "XFS_FS=m", "BTRFS_FS=m", "ATA=m", "SATA_AHCI=m", "SATA_NV=m"]


def test_what_is_loaded_stays_and_what_is_not_goes(kernel_source: Source, tmp_path: Path) -> None:
    listed = tmp_path / "lsmod.txt"
    listed.write_text(LISTED)
    settings = "".join(f"CONFIG_{setting}\n" for setting in SETTINGS)
    said: list[str] = []
    kept = loaded.only(settings, kernel_source.path, listed, said.append).splitlines()
    on = {line for line in kept if not line.startswith("#")}
    assert any("vendorraid" in line for line in said)
    assert on == {f"CONFIG_{setting}" for setting in SETTINGS if setting not in {"BTRFS_FS=m", "SATA_NV=m"}}


def test_a_tree_without_the_script_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lsmod.txt").write_text(LISTED)
    with pytest.raises(LabError, match=r"streamline_config\.pl failed with status"):
        loaded.only("", tmp_path, tmp_path / "lsmod.txt", print)
