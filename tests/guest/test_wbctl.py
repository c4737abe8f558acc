# SPDX-License-Identifier: GPL-2.0
"""tools/wbctl on a running kernel with contexts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest.output import output_of

pytestmark = pytest.mark.guest


UAPI = REPO / "kernel" / "include" / "uapi"


def make(folder: Path) -> Path:
    """Compile wbctl in a folder of its own and return it."""
    shutil.copytree(REPO / "tools" / "wbctl", folder / "wbctl")
    subprocess.run(["make", "--silent", "-C", str(folder / "wbctl"), f"UAPI={UAPI}"], check=True)
    return folder / "wbctl" / "wbctl"


def test_contexts_are_shown_and_set(debug_kernel: Kernel, tmp_path: Path) -> None:
    wbctl = make(tmp_path)
    script = f"""
        wbctl={wbctl}
        for i in $(seq 12); do echo data > $PWB_MNT/$i; done
        $wbctl set $PWB_DEV contexts=9999 && exit 1
        $wbctl set $PWB_MNT contexts=1 || exit 1
        $wbctl set $PWB_MNT affinity=random && exit 1
        $wbctl set $PWB_MNT affinity=least-loaded || exit 1
        $wbctl set $PWB_MNT workers=9 && exit 1
        $wbctl set $PWB_MNT workers=8 || exit 1
        cat $PWB_BDI/wb_affinity $PWB_BDI/wb_workers
        $wbctl contexts --json $PWB_DEV
        echo "$PWB_DEV contexts=2 workers=3" > /etc/wbctl.conf
        $wbctl apply $PWB_DEV || exit 1
        cat $PWB_BDI/nwritebacks $PWB_BDI/wb_workers
    """
    settings = {"nwritebacks": "3", "wb_affinity": "rotor"}
    output = output_of(debug_kernel, script, fs="ext4", settings=settings)
    refused, no_policy, too_many, policies, workers, shown, *applied = output.splitlines()
    assert no_policy == (
        "wbctl: 'affinity=random' is out of range: "
        "expected fs, ino or another that wb_affinity shows, as in affinity=fs"
    )
    assert too_many == "wbctl: 'workers=9' is out of range: expected 1 to 8, as in workers=4"
    assert workers == "8"
    assert policies == "fs ino rotor [least-loaded]"
    assert refused == (
        "wbctl: 'contexts=9999' is out of range: "
        "expected auto, or 1 to 4 times the possible CPUs, as in contexts=2"
    )
    [device] = json.loads(shown)
    assert device["nwritebacks"] == 1
    assert [context["index"] for context in device["contexts"]] == [0, 1, 2]
    assert applied == [
        "/etc/wbctl.conf line 1: contexts=2",
        "/etc/wbctl.conf line 1: workers=3",
        *("2", "3"),
    ]


def test_streams_are_shown_and_set(debug_kernel: Kernel, tmp_path: Path) -> None:
    script = f"""
        wbctl={make(tmp_path)}
        mkdir -p tree/below
        touch tree/one tree/below/two alone
        # A stream lasts as long as the inode: it is not evicted while the file is open.
        exec 7< tree/one 8< tree/below/two 9< alone
        $wbctl stream max alone
        $wbctl stream set -r tree 3
        $wbctl stream set alone 16
        $wbctl stream get -r .
        $wbctl stream get --json alone
        $wbctl stream set alone 17; echo $?
        $wbctl stream get /; echo $?
        $wbctl stream get /etc/hostname; echo $?
    """
    most, *tree, alone, over, status, no_file, no_file_status, elsewhere, no_streams = output_of(
        debug_kernel, script, fs="xfs"
    ).splitlines()
    assert most == "16"
    assert sorted(tree) == ["  3 ./tree/below/two", "  3 ./tree/one", " 16 ./alone"]
    assert json.loads(alone) == [{"path": "alone", "stream": 16}]
    assert over == "wbctl: '17' is out of range for 'alone': expected 0 (none) to 16"
    assert status == "1"
    assert no_file == "wbctl: '/' is not a regular file: give a regular file, or a directory with -r"
    assert no_file_status == "1"
    assert elsewhere.startswith("wbctl: there are no write streams for '/etc/hostname'")
    assert no_streams == "2"
