# SPDX-License-Identifier: GPL-2.0
"""Our kernel selftests, in running kernels."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.machine import guest
from lab.tree.build import Kernel
from lab.tree.source import Source
from lab.tree.weave import weave
from lab.util.paths import REPO

pytestmark = pytest.mark.guest

SELFTESTS = Path("tools", "testing", "selftests")
KSFT_SKIP = 4


@pytest.fixture
def selftests(kernel_source: Source, tmp_path: Path) -> Path:
    """Return a folder laid out like the kernel's selftests, with ours and what they source."""
    helpers = tmp_path / "kselftest" / "ktap_helpers.sh"
    helpers.parent.mkdir()
    shutil.copy(kernel_source.path / SELFTESTS / "kselftest" / helpers.name, helpers)
    # As the whole series leaves them.
    shutil.copytree(weave(kernel_source).path / SELFTESTS / "writeback", tmp_path / "writeback")
    return tmp_path


def run(kernel: Kernel, script: str) -> tuple[int, list[str]]:
    """Run a shell script in a guest and return its exit status and the lines that it printed."""
    output = io.StringIO()
    result = guest.run(
        kernel.path,
        ["sh", "-c", script],
        machine=kernel.machine,
        clock="host" if kernel.machine == "uml" else "virtual",
        fs="none",
        timeout_s=240,
        stream=output,
    )
    return result.status, output.getvalue().splitlines()


def test_nwritebacks(debug_kernel: Kernel, selftests: Path) -> None:
    status, lines = run(debug_kernel, f"{selftests}/writeback/nwritebacks.sh")
    report = "\n".join(lines)
    assert status == 0, report
    header, plan, *results, totals = lines
    assert header == "TAP version 13"
    assert plan == f"1..{len(results)}"
    assert results
    assert all(re.match(rf"ok {number} ", line) for number, line in enumerate(results, 1)), report
    assert "SKIP" not in report
    assert re.match(rf"# Totals: pass:{len(results)} fail:0 xfail:0 xpass:0 skip:0 error:0$", totals), report


def test_nwritebacks_is_skipped(debug_kernel: Kernel, selftests: Path) -> None:
    reasons = {
        "setpriv --reuid=65534": "needs root",
        "env PATH=/usr/bin:/bin": "needs mkfs.ext4",
        "umount /sys/kernel/config &&": "needs null_blk with configfs",
    }
    # Below /tmp, pytest's folders are root's alone.
    script = f"cp -r {selftests} /srv/selftests && chmod 755 /srv/selftests"
    for prefix in reasons:
        script += f"\n{prefix} /srv/selftests/writeback/nwritebacks.sh; echo $?"
    _, lines = run(debug_kernel, script)
    skipped = [["TAP version 13", f"1..0 # SKIP {reason}", str(KSFT_SKIP)] for reason in reasons.values()]
    assert lines == [line for one in skipped for line in one]


def test_nwritebacks_leaves_nothing_behind(debug_kernel: Kernel, selftests: Path) -> None:
    script = f"""
        export TMPDIR=/run/selftests; mkdir $TMPDIR
        traces() {{ ls /sys/kernel/config/nullb $TMPDIR; cat /proc/mounts; }}
        before=$(traces)
        {selftests}/writeback/nwritebacks.sh & test=$!
        until grep -q ^/dev/wbctx /proc/mounts; do sleep 0.1; done
        kill -TERM $test; wait $test
        after=$(traces)
        test "$before" = "$after" || {{ echo "$before" "$after"; exit 1; }}
    """
    status, lines = run(debug_kernel, script)
    assert status == 0, "\n".join(lines)


def test_nwritebacks_is_skipped_on_a_stock_kernel(smp_stock_kernel: Kernel, selftests: Path) -> None:
    script = f"""
        {selftests}/writeback/nwritebacks.sh; status=$?
        ls /sys/kernel/config/nullb | grep wbctx
        exit $status
    """
    status, lines = run(smp_stock_kernel, script)
    assert lines[0] == "TAP version 13"
    assert re.match(r"1\.\.0 # SKIP needs nwritebacks in ", lines[1])
    assert lines[2:] == []
    assert status == KSFT_SKIP


@pytest.mark.parametrize("name", ["write_stream_test", "write_stream_life_test"])
def test_write_stream(debug_kernel: Kernel, kernel_source: Source, tmp_path: Path, name: str) -> None:
    for header in ("kselftest.h", "kselftest_harness.h"):
        shutil.copy(kernel_source.path / SELFTESTS / header, tmp_path / header)
    folder = tmp_path / "filesystems" / "write_stream"
    shutil.copytree(REPO / "kernel" / SELFTESTS / "filesystems" / "write_stream", folder)
    program = folder / name
    uapi = REPO / "kernel" / "include" / "uapi"
    subprocess.run(
        ["gcc", "-Wall", "-Werror", "-O2", f"-I{uapi}", "-o", str(program), f"{program}.c"], check=True
    )
    status, lines = run(debug_kernel, str(program))
    report = "\n".join(lines)
    assert status == 0, report
    assert "SKIP" not in report
    assert re.match(r"# Totals: pass:\d+ fail:0 xfail:0 xpass:0 skip:0 error:0$", lines[-1]), report
