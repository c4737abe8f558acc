# SPDX-License-Identifier: GPL-2.0
"""The archive of ``pwb field``, unpacked and run on a kernel with contexts, and its result read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.package import field as archive
from lab.result import field, results
from lab.tree.build import Kernel
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

JOB = """
[global]
rw=randwrite
bs=4k
ioengine=psync
size=24m
overwrite=1
invalidate=0
time_based=1
runtime=2
[writer]
numjobs=2
"""


def test_a_whole_run_on_xfs(debug_kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "small.fio").write_text(JOB)
    made = archive.make(tmp_path / "field.tar.gz", [tmp_path / "small.fio"], [])
    subprocess.run(["tar", "xf", made], cwd=tmp_path, check=True)
    kept = tmp_path / "kept"
    kept.mkdir()
    script = f"""
        set -e
        cd {tmp_path / archive.TOP}
        mkdir $PWB_MNT/dir
        echo data > $PWB_MNT/dir/own
        settings() {{ cat $PWB_BDI/nwritebacks /proc/sys/vm/dirty_ratio /proc/sys/vm/dirty_bytes; }}
        echo 2 > $PWB_BDI/nwritebacks
        before=$(settings)
        options="--rounds 1 --contexts 1,2,auto --dirty-limit-mib 16 --output /results"
        ./field check $PWB_MNT/dir $options
        ./field run $PWB_MNT/dir $options
        test "$(settings)" = "$before"
        test "$(ls $PWB_MNT/dir)" = own

        # Interrupted amid its first run.
        ./field run $PWB_MNT/dir $options --rounds 9 & run=$!
        until test -e $PWB_MNT/dir/pwb-field-run/run; do sleep 0.1; done
        # A shell has what it starts in the background ignore SIGINT.
        kill -TERM $run
        status=0; wait $run || status=$?
        test $status = 143
        test "$(settings)" = "$before"
        test "$(ls $PWB_MNT/dir)" = own

        # Killed, and undone.
        ./field run $PWB_MNT/dir $options --rounds 9 & run=$!
        until test -e $PWB_MNT/dir/pwb-field-run/run; do sleep 0.1; done
        kill -KILL $run
        wait $run || true
        until ./field restore $PWB_MNT/dir; do sleep 0.1; done
        test "$(settings)" = "$before"
        test "$(ls $PWB_MNT/dir)" = own

        ./field pack --output /results
    """
    said = output_of(debug_kernel, script, fs="xfs", results=kept)
    assert "parallel, nwritebacks is 2" in said
    [folder] = field.result_folders(kept / "pwb-field-results.tar.gz", tmp_path / "made")
    cells, _ = results.read(folder)
    assert {cell.label for cell in cells} == {"1 context", "2 contexts", "auto contexts"}
    assert all(cell.fs == "xfs" and cell.mib_s.median > 0 and cell.extents for cell in cells)
    used = {cell.contexts: cell.contexts_used for cell in cells}
    assert used[1] and used[1].median == 1
    assert used[2] and used[2].median == 2
