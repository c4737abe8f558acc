# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from lab.machine import devices
from lab.util.errors import LabError


def table(folder: Path, text: str) -> Path:
    (folder / "mine.toml").write_text(text)
    return folder


NULL_BLK = 'driver = "null_blk"\ndescription = "mine"\nsize_mib = 64\nirqmode = 0\n'
LABBLK = 'driver = "labblk"\ndescription = "mine"\nsize_mib = 64\n'


@pytest.mark.parametrize("name", devices.names())
def test_every_device_of_the_table_loads(name: str) -> None:
    device = devices.load(name)
    plans = device.plan(2, 300)
    assert len({plan.name for plan in plans}) == 2
    assert {plan.driver for plan in plans} == {device.driver}


def test_the_table_has_the_devices_of_the_headline() -> None:
    assert {"nolat", "100us", "brd", "waiting"} <= set(devices.names())


def test_null_blk_plan_sets_what_the_file_says() -> None:
    (plan,) = devices.load("100us").plan(1, 300)
    assert plan.name == "nullb0"
    assert plan.attributes == {
        "memory_backed": "1",
        "size": "300",
        "blocksize": "4096",
        "irqmode": "2",
        "completion_nsec": "100000",
        "submit_queues": "2",
        "hw_queue_depth": "8",
    }


def test_null_blk_needs_no_kernel_arguments() -> None:
    assert devices.load("nolat").kernel_arguments(1, 300) == []


def test_brd_is_sized_by_kernel_arguments() -> None:
    assert devices.load("brd").kernel_arguments(2, 300) == ["brd.rd_nr=2", "brd.rd_size=307200"]


def test_labblk_plan_sets_what_the_file_says() -> None:
    (plan,) = devices.load("waiting").plan(1, 300)
    assert (plan.driver, plan.name) == ("labblk", "labblk0")
    assert plan.attributes == {
        "size_mib": "300",
        "queues": "8",
        "queue_depth": "32",
        "channels": "8",
        "stripe_kib": "4",
        "read_ns": "20000",
        "write_ns": "20000",
        "submit_ns": "100000",
        "cache": "0",
        "cache_ns": "0",
        "flush_ns": "0",
        "seed": "0",
        "max_write_streams": "0",
        "write_hints": "0",
        "unit_kib": "0",
        "op_percent": "7",
        "rpm": "0",
        "track_kib": "1024",
        "seek_min_ns": "0",
        "seek_max_ns": "0",
    }
    assert devices.load("waiting").kernel_arguments(1, 300) == []


def test_labblk_may_have_a_cache(tmp_path: Path) -> None:
    text = LABBLK + "cache = true\nflush_ns = 1000\n"
    (plan,) = devices.load("mine", table(tmp_path, text)).plan(1, 300)
    assert (plan.attributes["cache"], plan.attributes["flush_ns"]) == ("1", "1000")


def test_unknown_device_names_the_nearest() -> None:
    with pytest.raises(LabError, match="unknown device 'nolatt': expected nolat"):
        devices.load("nolatt")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (NULL_BLK + "depth = 8\n", "depth: Extra inputs are not permitted"),
        (NULL_BLK.replace("size_mib = 64\n", ""), "size_mib: Field required"),
        (NULL_BLK.replace("64", '"64"'), "size_mib: Input should be a valid integer"),
        (NULL_BLK.replace("null_blk", "nvme"), "'nvme'"),
        (NULL_BLK + "completion_nsec = 1000\n", "completion_nsec goes with irqmode = 2"),
        (NULL_BLK.replace("irqmode = 0", "irqmode = 2"), "completion_nsec goes with irqmode = 2"),
        (LABBLK + "stripe_kib = 6\n", "stripe_kib: Input should be a multiple of 4"),
        (LABBLK + "submit_ns = 1000000001\n", "submit_ns: Input should be less than or equal to 1000000000"),
        (LABBLK + "channels = 0\n", "channels: Input should be greater than or equal to 1"),
        (LABBLK + "flush_ns = 1000\n", "flush_ns goes with cache = true"),
        (LABBLK + "rpm = 7200\nwrite_ns = 1\n", "read_ns and write_ns are of channels"),
        (LABBLK + "rpm = 7200\nseek_min_ns = 2\nseek_max_ns = 1\n", "seek_max_ns is at least seek_min_ns"),
        ("driver = ", "is not TOML"),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(LabError) as caught:
        devices.load("mine", table(tmp_path, text))
    assert complaint in str(caught.value)
    assert "mine.toml" in str(caught.value)
    assert "\n" not in str(caught.value)
