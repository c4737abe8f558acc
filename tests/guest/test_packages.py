# SPDX-License-Identifier: GPL-2.0
"""The packages of ``pwb deb`` on a Debian server: both kernels, wbctl, and the archive of ``pwb field``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.package import kernel, lintian, wbctl
from lab.proof import installed
from lab.result import field, results
from lab.tree.source import Source

# Where nothing has been compiled yet, both kernels are.
pytestmark = [pytest.mark.guest, pytest.mark.long, pytest.mark.timeout(5 * 3600)]


def test_packages_are_used_and_leave_nothing(kernel_source: Source, tmp_path: Path) -> None:
    made = tmp_path / "packages"
    made.mkdir()
    packages = [wbctl.make(made), *(kernel.make(name, kernel_source, made) for name in kernel.FRAGMENTS)]
    lintian.check(packages[0])
    for package in packages[1:]:
        lintian.check(package, kernel.ACCEPTED)
    installed.prove(packages, tmp_path, lambda line: None)
    [folder] = field.result_folders(tmp_path / installed.FIELD_RESULT, tmp_path / "results")
    cells, _ = results.read(folder)
    assert {cell.label for cell in cells} == {"stock", "1 context", "4 contexts", "auto contexts"}
    assert all(cell.fs == "xfs" and cell.mib_s.median > 0 for cell in cells)
