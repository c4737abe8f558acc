# SPDX-License-Identifier: GPL-2.0
"""The device that waits, in a running debug kernel. What it holds and when commands end is KUnit's part."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

HERE = Path(__file__).parent
FILESYSTEMS = ["xfs", "ext4", "f2fs"]
PREPARE = "set -eu; export LC_ALL=C; labs=/sys/kernel/config/labblk; mkdir $labs/mine; cd $labs/mine"

LIMITS = {
    "size_mib": (1, 1 << 24),
    "queues": (1, 1024),
    "queue_depth": (1, 10240),
    "channels": (1, 1024),
    "stripe_kib": (4, 1 << 20),
    "read_ns": (0, 10**9),
    "write_ns": (0, 10**9),
    "flush_ns": (0, 10**9),
    "submit_ns": (0, 10**9),
    "cache": (0, 1),
    "cache_ns": (0, 10**9),
    "seed": (0, 2**64 - 1),
    "thin": (0, 1),
    "max_write_streams": (0, 255),
    "write_hints": (0, 1),
    "unit_kib": (0, 1 << 20),
    "op_percent": (1, 100),
    "rpm": (0, 100_000),
    "track_kib": (4, 1 << 20),
    "seek_min_ns": (0, 10**9),
    "seek_max_ns": (0, 10**9),
    "power": (0, 1),
}
FIXED = {"size_mib", "queues", "queue_depth", "channels", "stripe_kib", "cache", "cache_ns"}
FIXED |= {"max_write_streams", "write_hints", "unit_kib", "op_percent"}
FIXED |= {"rpm", "track_kib", "seek_min_ns", "seek_max_ns"}


def run(kernel: Kernel, script: str, **more: Any) -> str:
    """Run a shell script in the debug guest and return what it printed; a failing script fails the test."""
    return output_of(kernel, script, **{"fs": "none", "device": "waiting", **more})


def written(kernel: Kernel, wanted: list[tuple[str, object]]) -> list[dict[str, Any]]:
    """Write attributes of a fresh device in this order; return what became of each."""
    text = shlex.quote(json.dumps([(name, str(value)) for name, value in wanted]))
    lines = run(kernel, f"{sys.executable} {HERE / 'attributes.py'} {text}", device_size_mib=16).splitlines()
    assert len(lines) == len(wanted)
    return [json.loads(line) for line in lines]


def test_every_byte_arrives(debug_kernel: Kernel) -> None:
    script = " && ".join(f"{sys.executable} {HERE / 'compare.py'} {fs}" for fs in FILESYSTEMS)
    report = run(debug_kernel, script)
    assert report.count("every byte is as written") == len(FILESYSTEMS), report


def test_power_cut_loses_only_what_was_not_flushed(debug_kernel: Kernel) -> None:
    places = ["raw", *FILESYSTEMS]
    program = f"env PYTHONPATH={REPO} {sys.executable} -m tests.guest.powercut"
    script = " && ".join(f"{program} {place}" for place in places)
    report = run(debug_kernel, script, device_size_mib=16)
    assert report.count("as it should be") == len(places), report


@pytest.mark.parametrize("cache", ["", "echo 1 > cache; echo 1000 > cache_ns;"])
def test_bad_blocks_can_be_neither_read_nor_written(debug_kernel: Kernel, cache: str) -> None:
    script = f"""{PREPARE}
        echo 16 > size_mib; {cache} echo 1 > power
        echo 9 2 > bad_blocks; echo 100 1 > bad_blocks; cat bad_blocks
        one() {{
            dd "$@" bs=512 count=1 2> /tmp/said && echo fine || grep -o 'Input/output error' /tmp/said
        }}
        for sector in 8 9 10 11 99 100 101; do
            read=$(one if=/dev/mine of=/dev/null skip=$sector iflag=direct)
            write=$(one if=/dev/zero of=/dev/mine seek=$sector oflag=direct)
            echo "$sector $read, $write"
        done
    """
    bad = "Input/output error, Input/output error"
    assert run(debug_kernel, script, device_size_mib=16).splitlines() == [
        *("9 2", "100 1"),
        *("8 fine, fine", f"9 {bad}", f"10 {bad}", "11 fine, fine"),
        *("99 fine, fine", f"100 {bad}", "101 fine, fine"),
    ]


def test_device_can_be_removed_under_load(debug_kernel: Kernel) -> None:
    # With and without a cache, whose flushes are on their way too, with and without commands that take time.
    script = f"""{PREPARE}
        load() {{ (while dd if=/dev/zero of=/dev/mine "$@" 2> /dev/null; do :; done) & }}
        for round in 0 1 2 3 4 5; do
            echo $((round / 2 * 50000)) > submit_ns; echo $((round / 2 * 100000)) > write_ns
            echo 16 > size_mib; echo $((round % 2)) > cache; echo 1 > power
            load bs=4k count=4096 oflag=direct conv=nocreat
            load bs=64k count=64 conv=nocreat,notrunc,fsync
            until awk '{{ exit !($7 > 2000) }}' /sys/block/mine/stat; do :; done
            cd /; rmdir $labs/mine; test ! -e /sys/block/mine; wait
            mkdir $labs/mine; cd $labs/mine
        done
        echo removed
    """
    assert "removed" in run(debug_kernel, script, device_size_mib=16)


def test_bad_attribute_values_are_refused_and_change_nothing(debug_kernel: Kernel) -> None:
    bad: list[tuple[str, object]] = [("stripe_kib", 6), ("unit_kib", 6)]
    for name, (least, most) in LIMITS.items():
        bad += [(name, value) for value in (least - 1, most + 1, "two", "1x")]
    bad += [("bad_blocks", value) for value in ("1", "1 0", "1 -1", "one two")]
    taken = [
        one for one in written(debug_kernel, bad) if one["error"] != "EINVAL" or one["after"] != one["before"]
    ]
    assert taken == []


def test_what_the_disk_is_made_of_is_fixed_with_it(debug_kernel: Kernel) -> None:
    names = [name for name in LIMITS if name != "power"]
    least: list[tuple[str, object]] = [(name, LIMITS[name][0]) for name in names]
    wanted = [*least, ("power", 1), *least, ("power", 0), *least, ("power", 1)]
    outcome = written(debug_kernel, wanted)
    before, after = outcome[: len(names)], outcome[len(names) + 1 :]
    assert {one["error"] for one in before} == {None}
    assert {one["name"] for one in after if one["error"] == "EBUSY"} == FIXED
    assert {one["name"] for one in after if one["error"] is None} == {*LIMITS} - FIXED
    assert [one["after"] for one in outcome if one["name"] == "power"] == ["1", "0", "1"]


def test_name_too_long_for_a_disk_is_refused(debug_kernel: Kernel) -> None:
    script = f"{PREPARE}; ! mkdir $labs/a-name-of-more-than-thirty-one-bytes"
    assert "File name too long" in run(debug_kernel, script, device_size_mib=16)


def test_flash_counts_what_is_written(debug_kernel: Kernel) -> None:
    # 16 MiB in order, twice: no page is ever moved. A page of which a part is written counts whole.
    script = f"""{PREPARE}
        echo 16 > size_mib; echo 256 > unit_kib; echo 3 > max_write_streams; cat host_pages media_pages
        echo 1 > power; cat /sys/block/mine/queue/*write_stream*
        for round in 1 2; do dd if=/dev/zero of=/dev/mine bs=64k count=256 oflag=direct 2> /dev/null; done
        cat host_pages media_pages
        dd if=/dev/zero of=/dev/mine bs=512 count=1 seek=7 oflag=direct 2> /dev/null; cat host_pages
        blkdiscard /dev/mine; dd if=/dev/mine of=/dev/null bs=64k iflag=direct 2> /dev/null; cat host_pages
    """
    lines = run(debug_kernel, script, device_size_mib=16).splitlines()
    assert lines == ["0", "0", "3", str(256 << 10), "8192", "8192", "8193", "8193"]


HINTED = """
import fcntl, mmap, os, struct, sys
SET_RW_HINT = 1036
CHUNK = 16 << 10
COLD, HOT = 9, 6
data = mmap.mmap(-1, CHUNK)
files = []
for name, hint in (("cold", 5), ("hot", 2)):
    files.append(os.open(name, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    fcntl.fcntl(files[-1], SET_RW_HINT, struct.pack("Q", hint))
cold, hot = files
def write(fd, first, count):
    for chunk in range(first, first + count):
        os.pwrite(fd, data, chunk * CHUNK)
for turn in range(256):
    write(cold, turn * COLD, COLD)
    write(hot, turn * HOT, HOT)
for turn in range(3):
    write(hot, 0, 256 * HOT)
"""


def test_hints_choose_streams_where_asked_for(debug_kernel: Kernel) -> None:
    # Cold and hot data side by side fill the device; what is overwritten then takes cold data along, or not.
    def moved(hints: int) -> int:
        # Blocks of 4 KiB, as the pages of flash.
        script = f"""{PREPARE}
            echo 64 > size_mib; echo 256 > unit_kib; echo 5 > max_write_streams; echo {hints} > write_hints
            echo 1 > power; mkfs.ext4 -q -b 4096 -O ^has_journal -N 16 -m 0 /dev/mine
            m=$(mktemp -d); mount /dev/mine $m
            (cd $m && {sys.executable} -c {shlex.quote(HINTED)})
            echo $(($(cat media_pages) - $(cat host_pages)))
        """
        return int(run(debug_kernel, script, device_size_mib=16))

    assert moved(0) > 4 * moved(1)


def test_device_that_is_not_flash_counts_nothing(debug_kernel: Kernel) -> None:
    script = f"""{PREPARE}
        echo 16 > size_mib; echo 1 > power
        dd if=/dev/zero of=/dev/mine bs=64k count=256 oflag=direct 2> /dev/null; cat host_pages media_pages
        ! blkdiscard /dev/mine 2> /dev/null
    """
    assert run(debug_kernel, script, device_size_mib=16).splitlines() == ["0", "0"]
