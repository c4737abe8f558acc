# SPDX-License-Identifier: GPL-2.0
"""tools/wbctl on a running kernel with contexts."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import guest
from lab.build import Kernel
from lab.paths import REPO

pytestmark = pytest.mark.guest


def test_contexts_are_shown_and_set(debug_kernel: Kernel, tmp_path: Path) -> None:
    shutil.copytree(REPO / "tools" / "wbctl", tmp_path / "wbctl")
    subprocess.run(["make", "--silent", "-C", str(tmp_path / "wbctl")], check=True)
    script = f"""
        wbctl={tmp_path}/wbctl/wbctl
        for i in $(seq 12); do echo data > $PWB_MNT/$i; done
        $wbctl set $PWB_DEV contexts=9 && exit 1
        $wbctl set $PWB_MNT contexts=1 || exit 1
        $wbctl set $PWB_MNT affinity=random && exit 1
        $wbctl set $PWB_MNT affinity=least-loaded || exit 1
        $wbctl set $PWB_MNT workers=9 && exit 1
        $wbctl set $PWB_MNT workers=8 || exit 1
        cat $PWB_BDI/wb_affinity $PWB_BDI/wb_workers
        $wbctl contexts --json $PWB_DEV
    """
    output = io.StringIO()
    result = guest.run(
        debug_kernel.path,
        ["sh", "-c", script],
        fs="ext4",
        settings={"nwritebacks": "3", "wb_affinity": "rotor"},
        timeout_s=120,
        stream=output,
    )
    assert result.status == 0, output.getvalue()
    refused, no_policy, too_many, policies, workers, shown = output.getvalue().splitlines()
    assert no_policy == (
        "wbctl: 'affinity=random' is out of range: expected fs, ino, rotor or least-loaded, as in affinity=fs"
    )
    assert too_many == "wbctl: 'workers=9' is out of range: expected 1 to 8, as in workers=4"
    assert workers == "8"
    assert policies == "fs ino rotor [least-loaded]"
    assert refused == (
        "wbctl: 'contexts=9' is out of range: expected 1 to 4 times the possible CPUs, as in contexts=2"
    )
    [device] = json.loads(shown)
    assert device["nwritebacks"] == 1
    assert [context["index"] for context in device["contexts"]] == [0, 1, 2]
