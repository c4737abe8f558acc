# SPDX-License-Identifier: GPL-2.0
"""The job that measures a drive, on a drive that is known: its device file is found again."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lab.machine import calibrate, devices, guest
from lab.tree.build import Kernel
from lab.util.paths import REPO

pytestmark = pytest.mark.guest


def test_a_known_drive_is_found_again(smp_stock_kernel: Kernel, tmp_path: Path) -> None:
    text = (REPO / calibrate.JOB).read_text(encoding="utf-8")
    # Virtual time needs no averages over seconds.
    job = tmp_path / "short.fio"
    job.write_text(text.replace("runtime=5\n", "runtime=100ms\n").replace("size=1g\n", "size=32m\n"))
    out = io.StringIO()
    script = f"fio --directory=$PWB_MNT --output-format=json --output=/results/drive.json {job}"
    done = guest.run(
        smp_stock_kernel.path,
        ["sh", "-c", script],
        machine="smp",
        cpus=8,
        fs="xfs",
        device="sata",
        results=tmp_path,
        stream=out,
    )
    assert done.status == 0, out.getvalue()
    points = calibrate.read(tmp_path / "drive.json")
    found = calibrate.fit(points)
    sata = devices.load("sata")
    assert isinstance(sata, devices.LabBlk)
    # What submitting and completing cost comes on top of the page's time.
    assert found.channels == pytest.approx(sata.channels, rel=0.3), calibrate.table(found, points)
    assert found.page_ns["write"] == pytest.approx(sata.write_ns, rel=0.3), calibrate.table(found, points)
    assert max(abs(found.off(point)) for point in points) < 0.2, calibrate.table(found, points)
    print(calibrate.table(found, points))
