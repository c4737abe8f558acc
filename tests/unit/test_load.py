# SPDX-License-Identifier: GPL-2.0
"""The runs of a plan, and that they are refused outside a guest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guest import load
from guest.plan import LoadError, Run
from guest.sampler import Sampler
from lab.util.paths import REPO


def _run(**changes: float) -> Run:
    run: Run = {
        "name": "limit-128",
        "job": "job.fio",
        "settings": {},
        "dirty_limit_mib": 128,
        "stop_mib": None,
        "stop_s": None,
        "env": {},
    }
    return {**run, **changes}  # type: ignore[typeddict-item]


def test_a_run_is_over_with_its_amount_or_its_time(tmp_path: Path) -> None:
    for name in ("vmstat", "stat"):
        (tmp_path / name).touch()
    sampler = Sampler([], tmp_path)
    for t, sectors in ((0.0, 0), (0.5, 2048), (0.6, 3000), (0.7, 4096)):
        sampler.samples.append({"t": t, "sectors": [sectors]})
    assert not load.is_enough(_run(), sampler)
    assert load.is_enough(_run(stop_mib=1), sampler)
    assert not load.is_enough(_run(stop_mib=2), sampler)
    # It counts from the last sample before the jobs wrote; a filesystem writes a little by itself.
    assert load.is_enough(_run(stop_s=0.19), sampler)
    assert not load.is_enough(_run(stop_s=0.21), sampler)


def test_prepare_runs_in_the_filesystem_and_leaves_its_group(tmp_path: Path) -> None:
    script = "touch begun; (while :; do sleep 0.01; done) & echo $! > child"
    group = load.prepare(script, tmp_path, tmp_path / "said")
    child = int((tmp_path / "child").read_text())
    assert (tmp_path / "begun").exists()
    assert os.getpgid(child) == group
    os.killpg(group, signal.SIGTERM)


def test_prepare_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="prepare ended with status 1: cat: missing"):
        load.prepare("cat missing; touch after", tmp_path, tmp_path / "said")
    assert not (tmp_path / "after").exists()


@pytest.mark.parametrize("given", [{}, {"PWB_RESULTS": "/nowhere", "PWB_MNT": "/nowhere"}])
def test_refuses_to_run_outside_a_guest(given: dict[str, str]) -> None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PWB_")} | given
    env |= {"PYTHONPATH": str(REPO)}
    command = [sys.executable, "-P", "-s", "-S", "-m", "guest.load", "plan"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it changes sysctls" in done.stderr


def test_ag_counters_are_saved_where_there_are_any(tmp_path: Path) -> None:
    output = tmp_path / "limit-128.writeback.txt"
    load.save_ag_counters(output, tmp_path)
    assert not output.exists()
    (tmp_path / "xfs" / "nullb0").mkdir(parents=True)
    (tmp_path / "xfs" / "nullb0" / "writeback").write_text("overwrite: predicted 1\n")
    load.save_ag_counters(output, tmp_path)
    assert output.read_text() == "overwrite: predicted 1\n"
