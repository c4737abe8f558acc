# SPDX-License-Identifier: GPL-2.0
"""Write streams in a running debug kernel: what reaches the device, and where XFS puts blocks."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest.output import output_of
from tests.guest.test_wbctl import make

pytestmark = pytest.mark.guest

PROGRAM = f"env PYTHONPATH={REPO} {sys.executable} -m tests.guest.streams"
PREPARE = "set -eu; streams=/sys/fs/xfs/$(basename $PWB_DEV)/write_streams"
AGS = 8
# Where inode32 matters: files of the guest's memory that are large enough are mostly holes.
LARGE_IMAGE = f"""
    image=$(mktemp); truncate -s 3T $image
    mkfs.xfs -q -i maxpct=50 -d agcount={AGS} -l size=64m $image
    loop=$(losetup -f --show $image)
    m=$(mktemp -d); mount -o inode32 $loop $m; cd $m
"""


def run(kernel: Kernel, script: str, **more: Any) -> list[str]:
    """Run a shell script on a fresh XFS with eight AGs and return the lines that it printed."""
    settings = {"fs": "xfs", "mkfs": ["-d", f"agcount={AGS}"], **more}
    return output_of(kernel, f"{PREPARE}\n{script}", **settings).splitlines()


def used(line: str) -> set[int]:
    """Return the AGs that files have blocks in, of what tests.guest.streams printed."""
    return {int(ag) for file in json.loads(line).values() for ag in file}


def test_every_bio_names_its_stream(debug_kernel: Kernel) -> None:
    script = f"""
        {PROGRAM} bios buffered direct mapped uring named changed beyond cached
        echo 0 > $streams/hardware
        {PROGRAM} bios buffered direct mapped uring named changed beyond cached
    """
    shown, without = (json.loads(line) for line in run(debug_kernel, script, device="flash")[-2:])
    assert shown == {
        "buffered": {"1": 2048},
        "direct": {"2": 2048},
        "mapped": {"3": 2048},
        "uring": {"4": 2048},
        "named": {"5": 2048},
        "changed": {"6": 1024},
        # What the device does not have, or comes by way of the page cache, counts for nothing.
        "beyond": {"7": 2048},
        "cached": {"8": 2048},
    }
    assert without == {way: {} for way in shown}


def test_no_bio_has_pages_of_two_streams(debug_kernel: Kernel) -> None:
    (shown,) = run(debug_kernel, f"{PROGRAM} bios between", device="flash")
    assert json.loads(shown) == {"between": {"1": 8}}, "sectors of the second page only"


def test_no_write_fails_for_the_stream_that_it_names(debug_kernel: Kernel) -> None:
    script = f"""
        for stream in 0 1 8 9 255; do {PROGRAM} uring file $stream; done
        echo 0 > $streams/hardware
        for stream in 0 1; do {PROGRAM} uring file $stream; done
    """
    assert run(debug_kernel, script, device="flash") == ["0"] * 7


def test_a_file_has_the_stream_that_is_in_effect(debug_kernel: Kernel, tmp_path: Path) -> None:
    # A stream lasts as long as the inode: it is not evicted while the file is open.
    script = f"""
        exec 3<> file
        {make(tmp_path)} stream set file 5
        for software in 5 4 0 16; do
            echo $software > $streams/software
            {tmp_path}/wbctl/wbctl stream get --json file
        done
    """
    shown = [json.loads(line)[0]["stream"] for line in run(debug_kernel, script)]
    assert shown == [5, 0, 0, 5]


def test_a_stream_above_a_lowered_maximum_places_nothing(debug_kernel: Kernel, tmp_path: Path) -> None:
    # A file without a stream shows where the directory has its files. With more streams than AGs, the tenth
    # stream would have the second AG.
    wbctl = make(tmp_path)
    script = f"""
        mkdir 1 2 3 4
        exec 3<> 4/with
        {wbctl} stream set 4/with 10
        echo 9 > $streams/software
        for file in 4/with 4/without; do
            dd if=/dev/zero of=$file bs=1M count=1 oflag=direct conv=notrunc status=none
            {PROGRAM} ags $file
        done
    """
    above, without = map(used, run(debug_kernel, script))
    assert len(without) == 1
    assert without != {1}
    assert above == without


def test_other_fields_of_trace_records_are_where_they_were(debug_kernel: Kernel) -> None:
    script = """
        cd /sys/kernel/tracing/events/block; cat block_rq_issue/format block_bio_queue/format
    """
    fields = re.findall(r"field:.*?(\w+)(?:\[\w*\])?;\s+offset:(\d+);", "\n".join(run(debug_kernel, script)))
    starts = [number for number, (name, _) in enumerate(fields) if name == "common_type"]
    records = [fields[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    assert len(records) == 2
    for record in records:
        offsets = {name: int(offset) for name, offset in record}
        assert max(offsets, key=offsets.__getitem__) == "write_stream"


def test_a_stream_has_its_own_ags(debug_kernel: Kernel) -> None:
    # More streams than AGs take turns. The device has no streams.
    script = f"""
        for stream in 1 8 9 16; do {PROGRAM} scatter $stream $stream; done
        {PROGRAM} uring file 1
        echo 4 > $streams/software
        for stream in 1 2 3 4; do {PROGRAM} scatter $stream $stream.0 $stream.1 $stream.2 $stream.3; done
    """
    *turns, named, one, two, three, four = run(debug_kernel, script)
    assert [used(line) for line in turns] == [{0}, {7}, {0}, {7}]
    assert named == "0"
    assert [used(line) for line in (one, two, three, four)] == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]


def test_no_stream_takes_what_inode32_keeps(debug_kernel: Kernel) -> None:
    # Inode numbers of the first four AGs have 32 bits, and half of the device is kept for inodes.
    script = f"""
        {LARGE_IMAGE}
        echo 4 > /sys/fs/xfs/$(basename $loop)/write_streams/software
        for stream in 1 2 3 4; do
            {PROGRAM} scatter $stream $stream.0 $stream.1 $stream.2 $stream.3
        done
        cd /; umount $m
    """
    assert [used(line) for line in run(debug_kernel, script, fs="none", mkfs=[])] == [{4}, {5}, {6}, {7}]


def test_files_without_a_stream_have_a_window(debug_kernel: Kernel) -> None:
    # One process, so that no AG is taken when it is wanted.
    one_by_one = f"""
        for file in 0 1 2 3 4 5 6 7; do {PROGRAM} scatter 0 $1.$file > /dev/null; done
        {PROGRAM} ags $1.*
    """
    script = f"""
        fill() {{ {one_by_one}
        }}
        fill before
        echo 4 > $streams/generic_ags
        fill after
    """
    before, after = run(debug_kernel, script)
    assert len(used(before)) == 1
    assert len(used(after)) == 4
    assert min(used(after)) == min(used(before))


def test_every_part_can_be_switched_off(debug_kernel: Kernel) -> None:
    script = f"""
        echo 0 > $streams/stream_ags
        {PROGRAM} scatter 0 one
        {PROGRAM} scatter 3 two 2>&1 | grep -o 'Invalid argument'
        echo 1 > $streams/stream_ags; echo 0 > $streams/software
        {PROGRAM} scatter 1 three 2>&1 | grep -o 'Invalid argument'
    """
    one, two, three = run(debug_kernel, script)
    assert len(used(one)) == 1
    assert two == three == "Invalid argument"


def test_switches_refuse_what_makes_no_sense(debug_kernel: Kernel) -> None:
    script = """
        cd $streams; grep . *
        for bad in hardware=2 software=256 stream_ags=-1 generic_ags=0 generic_ags=65 software= software=x; do
            printf '%s\\n' "${bad#*=}" | LC_ALL=C tee ${bad%=*} 2>&1 > /dev/null | grep -o 'Invalid argument'
        done
        grep . *
    """
    lines = run(debug_kernel, script)
    defaults = ["generic_ags:1", "hardware:1", "software:16", "stream_ags:1"]
    assert lines == [*defaults, *["Invalid argument"] * 7, *defaults]


def test_a_stream_fills_the_whole_filesystem(debug_kernel: Kernel) -> None:
    script = f"{PROGRAM} fill file 0; rm file; {PROGRAM} fill file 1"
    # Smaller AGs would have no room for the log.
    small = {"device_size_mib": 512, "mkfs": ["-d", "agcount=4"]}
    without, with_stream = map(int, run(debug_kernel, script, **small))
    assert with_stream >= without - 1
    assert with_stream > 300


def test_growing_leaves_streams_where_they_are(debug_kernel: Kernel) -> None:
    script = f"""
        echo 4 > $streams/software
        {PROGRAM} scatter 2 a0 a1 a2 a3
        while test ! -e grown; do {PROGRAM} scatter 2 busy > /dev/null; done &
        xfs_growfs . > /dev/null
        touch grown; wait
        {PROGRAM} scatter 2 b0 b1 b2 b3 b4 b5 b6 b7
        {PROGRAM} scatter 1 c0 c1 c2 c3 c4 c5 c6 c7
    """
    small = {"device_size_mib": 1536, "mem_mib": 4096, "mkfs": ["-d", f"agcount={AGS},size=768m"]}
    before, after, other = (used(line) for line in run(debug_kernel, script, **small))
    assert before == {2, 3}
    assert after >= before
    assert {ag for ag in after if ag >= AGS} <= set(range(AGS + 1, 2 * AGS, 4))
    assert not after & other


def test_realtime_files_have_the_streams_of_their_device(debug_kernel: Kernel, tmp_path: Path) -> None:
    wbctl = make(tmp_path)

    def streams(device: str) -> list[str]:
        script = f"""
            mkfs.xfs -q -f -d rtinherit=1 -r rtdev=$PWB_DEV2 $PWB_DEV
            m=$(mktemp -d); mount -o rtdev=$PWB_DEV2 $PWB_DEV $m; cd $m
            touch file; {wbctl} stream max file
            {PROGRAM} bios buffered direct 2>&1 | tail -n 1
            cd /; umount $m
        """
        return run(debug_kernel, script, fs="none", mkfs=[], device=device, device_count=2, mem_mib=4096)

    with_streams = streams("flash")
    assert with_streams[0] == "8"
    assert json.loads(with_streams[1]) == {"buffered": {"1": 2048}, "direct": {"2": 2048}}
    without = streams("nolat")
    assert without[0] == "0"
    assert "Invalid argument" in without[1]


def test_filestreams_win(debug_kernel: Kernel) -> None:
    script = f"""
        mkfs.xfs -q $PWB_DEV; m=$(mktemp -d); mount -o filestreams $PWB_DEV $m; cd $m
        {PROGRAM} scatter 1 file 2>&1 | grep -o 'Invalid argument'
        cd /; umount $m
    """
    assert run(debug_kernel, script, fs="none", mkfs=[]) == ["Invalid argument"]
