# SPDX-License-Identifier: GPL-2.0
"""A device file from what fio measured on a drive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab import cli
from lab.machine import calibrate, devices
from lab.machine.calibrate import Fit, Point
from lab.util.errors import LabError

DRIVE = Fit(channels=48, page_ns={"read": 70_000, "write": 20_000})
COMMON = {"direct": "1", "bs": "4k", "ioengine": "libaio"}


def section(name: str, iops: float, **options: str) -> dict[str, Any]:
    kind = calibrate.KINDS.get(options["rw"], "write")
    # As with a stonewall in each.
    return {"jobname": name, "groupid": name, "job options": options, kind: {"iops": iops}}


def of_the_drive(scatter: float = 1.0) -> list[dict[str, Any]]:
    """Return the sections that a drive like :data:`DRIVE` gives, every other one too fast."""
    found = []
    for rw, kind in calibrate.KINDS.items():
        for number, depth in enumerate((1, 8, 64, 256)):
            rate = DRIVE.pages_s(Point(kind, depth, 1)) * (scatter if number % 2 else 1)
            found.append(section(f"{kind}-{depth}", rate, rw=rw, iodepth=str(depth)))
    return found


def written(tmp_path: Path, jobs: list[dict[str, Any]], common: dict[str, str] | None = None) -> Path:
    path = tmp_path / "drive.json"
    whole = {"fio version": "fio-3.33", "global options": COMMON if common is None else common, "jobs": jobs}
    path.write_text("note: something\n" + json.dumps(whole))
    return path


def test_a_drive_like_the_model_is_found_again(tmp_path: Path) -> None:
    points = calibrate.read(written(tmp_path, of_the_drive()))
    found = calibrate.fit(points)
    assert found.channels == DRIVE.channels
    assert found.page_ns == pytest.approx(DRIVE.page_ns)
    assert max(abs(found.off(point)) for point in points) < 1e-9


def test_how_well_it_fits_is_in_the_file(tmp_path: Path) -> None:
    points = calibrate.read(written(tmp_path, of_the_drive(scatter=1.2)))
    found = calibrate.fit(points)
    off = max(abs(found.off(point)) for point in points)
    assert 0.05 < off < 0.2
    assert f"off by {off:.0%} at most" in calibrate.device_file("mine", found, points)


def test_alone_and_many() -> None:
    assert DRIVE.pages_s(Point("write", 1, 1)) == pytest.approx(50_000)
    assert DRIVE.pages_s(Point("write", 10**9, 1)) == pytest.approx(48 * 50_000)


def test_jobs_of_a_section_add_up(tmp_path: Path) -> None:
    alike = [section("write-8", 100, rw="randwrite", iodepth="4", numjobs="2") for _ in range(2)]
    points = calibrate.read(written(tmp_path, [*of_the_drive(), *alike[:1]]))
    assert len(points) == 8
    others = [job for job in of_the_drive() if job["jobname"] != "write-8"]
    points = calibrate.read(written(tmp_path, [*others, *alike]))
    assert points[-1] == Point("write", 8, 200)


@pytest.mark.parametrize(
    ("jobs", "common", "complaint"),
    [
        (of_the_drive(), {"bs": "4k"}, "section read-1 went through the page cache: expected direct=1"),
        (of_the_drive()[:4], COMMON, r"has writes at the depths none: expected random 4k writes"),
        (of_the_drive()[1:], COMMON, "with iodepth=1 and with some more"),
        (
            [job | {"groupid": 0} for job in of_the_drive()],
            COMMON,
            "sections read-1 and read-256 ran at the same time: expected each alone",
        ),
        (of_the_drive(), {**COMMON, "bssplit": "4k/50:64k/50"}, "section read-1 has bssplit: expected bs=4k"),
        ([job | {"error": 28} for job in of_the_drive()], COMMON, "section read-1 failed, No space left"),
        (of_the_drive(), {**COMMON, "ioengine": "xnvme"}, "has ioengine=xnvme, of which is not known"),
        # Engines that wait for each command have one in flight.
        (of_the_drive(), {**COMMON, "ioengine": "psync"}, "reads at the depths .1.: "),
        ([section("idle", 0, rw="randread", iodepth="1")], COMMON, "section idle did nothing"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    tmp_path: Path, jobs: list[dict[str, Any]], common: dict[str, str], complaint: str
) -> None:
    with pytest.raises(LabError, match=complaint):
        calibrate.read(written(tmp_path, jobs, common))


def test_numbers_are_those_that_fio_reads(tmp_path: Path) -> None:
    jobs = [*of_the_drive(), section("deep", 9, rw="randread", iodepth="0x10", numjobs="1k", bs="0x1000")]
    assert calibrate.read(written(tmp_path, jobs))[-1] == Point("read", 16 << 10, 9)
    jobs[-1]["job options"]["iodepth"] = "3.7"
    with pytest.raises(LabError, match=r"section \[deep\] has iodepth=3.7: expected a whole number"):
        calibrate.read(written(tmp_path, jobs))


@pytest.mark.parametrize(
    "text",
    [
        "no fio",
        '{"jobs": 5}',
        '{"jobs": [{}]}',
        '{"jobs": [{"jobname": "a", "job options": {"rw": "randread", "direct": "1"}}]}',
        '{"jobs": [{"jobname": "a", "job options": {"rw": "randread", "bs": 4096}}]}',
    ],
)
def test_what_fio_did_not_write_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "drive.json"
    path.write_text(text)
    with pytest.raises(LabError, match="is not what fio writes with --output-format=json"):
        calibrate.read(path)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(calibrate.write, "__defaults__", (tmp_path,))
    path = written(tmp_path, of_the_drive())
    assert cli._run(["calibrate", str(path), "--name", "mine"]) == 0
    assert "write x 64" in capsys.readouterr().out
    device = devices.load("mine", tmp_path)
    assert isinstance(device, devices.LabBlk)
    assert (device.channels, device.read_ns, device.write_ns) == (48, 70_000, 20_000)
    assert cli._run(["calibrate", str(path), "--name", "mine"]) == 1
    assert "there is a device mine already" in capsys.readouterr().err
    assert cli._run(["calibrate", str(path), "--name", "../mine"]) == 1
    assert "cannot name a device" in capsys.readouterr().err


def test_what_is_no_device_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"what was made of these figures is no device \(mine\)"):
        calibrate.write("mine", 'driver = "labblk"\nwrite_ns = nan\n', tmp_path)
    assert list(tmp_path.iterdir()) == []
