# SPDX-License-Identifier: GPL-2.0
"""The scenario of a user's own fio job file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.experiment import jobfile, scenario
from lab.experiment.axes import Contexts
from lab.util.errors import LabError


def _job(tmp_path: Path, text: str = "[x]\nrw=randwrite\nsize=1m\n") -> Path:
    path = tmp_path / "my job.fio"
    path.write_text(text)
    return path


def _from_job(
    path: Path,
    fs: str = "xfs",
    machine: scenario.Machine = "uml",
    cpus: int | None = 2,
    device: str = "nolat",
    *,
    dirty_limit_mib: int = 64,
) -> scenario.Scenario:
    return jobfile.from_job(
        path,
        fs=[fs],
        device=device,
        contexts=[2],
        dirty_limits_mib=[dirty_limit_mib],
        machine=machine,
        cpus=cpus,
        memory_mib=4096,
    )


@pytest.mark.parametrize(("machine", "cpus"), [("smp", 8), ("uml", 3)])
def test_a_users_job_gets_the_cpus_that_its_machine_has(
    machine: scenario.Machine, cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    assert _from_job(_job(tmp_path), machine=machine, cpus=None).guest.cpus == cpus


def test_a_users_job_keeps_its_text_and_lays_out_its_own_files(tmp_path: Path) -> None:
    path = _job(tmp_path)
    found = _from_job(path)
    assert found.job.text == path.read_text()
    assert found.files is None
    assert found.name == "my-job"
    assert found.limits[0].window_s is None
    assert found.guest.mem_mib == 4096
    # In virtual time a job is not left to run for as long as it likes.
    assert _from_job(path, machine="smp").limits[0].window_s is not None


def test_a_users_job_with_an_unknown_filesystem(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="unknown filesystem 'ext3': expected ext4"):
        _from_job(_job(tmp_path), "ext3")


def test_a_users_job_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"gone.fio: cannot be read"):
        _from_job(tmp_path / "gone.fio")


def test_a_users_job_with_an_unknown_device(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="unknown device 'nolatt': expected nolat"):
        _from_job(_job(tmp_path), device="nolatt")


def test_a_dirty_limit_beyond_the_memory(tmp_path: Path) -> None:
    assert _from_job(_job(tmp_path), dirty_limit_mib=4095)
    with pytest.raises(LabError, match=r"a dirty limit of 4096 MiB .* 4096 MiB .*; lower --dirty-limits-mib"):
        _from_job(_job(tmp_path), dirty_limit_mib=4096)


def test_a_job_is_in_a_regular_file() -> None:
    # A pipe, of which the same is said, would wait for a writer if it were opened.
    with pytest.raises(LabError, match=r"/dev/null: read more than once, .*: expected a regular file"):
        _from_job(Path("/dev/null"))


def said(found: scenario.Scenario) -> str:
    return "; ".join(jobfile.notes(found))


def test_a_head_is_given_its_time(tmp_path: Path) -> None:
    quick, slow = (_from_job(_job(tmp_path), machine="smp", device=name) for name in ("sata", "disk"))
    assert (quick.stopped_after_s, slow.stopped_after_s) == pytest.approx((0.7, 35))
    # Some MiB in each part of the window, and several samples.
    assert slow.limits[0].window_s == pytest.approx(20)
    assert slow.direct.window_s == pytest.approx(10)
    assert slow.sample_s == pytest.approx(1)
    assert "stopped 35.0 s of the guest after its first write" in said(slow)
    # The kernel has found its number long before.
    assert "with auto contexts 2 s later" in said(quick)
    assert "later" not in said(slow)


def _scenario_of(path: Path, device: str, contexts: Sequence[Contexts] = (2,)) -> scenario.Scenario:
    return jobfile.scenario_of(
        path,
        fs=["xfs"],
        device=device,
        contexts=[*contexts],
        dirty_limits_mib=[64],
        machine="smp",
        cpus=8,
        memory_mib=8192,
    )


@pytest.mark.parametrize(
    ("text", "device", "why"),
    [
        ("[a]\nrw=write\nsize=1m\nnumjobs=$ncpus\n", "brd", ""),
        ("[a]\nrw=write\nsize=1m\nnumjobs=8\n[b]\nrw=read\nsize=1m\n", "brd", ""),
        ("[a]\nrw=write\nsize=1m\nnumjobs=7\n[b]\nrw=write\nsize=1m\n", "brd", ""),
        (
            "[a]\nrw=write\nsize=1m\nnumjobs=8\nfilename_format=shared\n",
            "brd",
            "of 8 devices only 1 would have a file that the job writes",
        ),
        (
            "[a]\nrw=write\nsize=1m\n[b]\nrw=read\nsize=1m\nnumjobs=8\n",
            "nolat",
            "of 8 devices only 1 would have a file that the job writes",
        ),
    ],
)
def test_separate_bdis_are_a_bound_where_all_of_them_get_work(
    tmp_path: Path, text: str, device: str, why: str
) -> None:
    found = _scenario_of(_job(tmp_path, text), device)
    assert ("bdis" in found.bounds) == (not why)
    said = "; ".join(jobfile.notes(found))
    assert ("no bound from separate BDIs" in said) == bool(why)
    assert why in said


@pytest.mark.parametrize(("files", "is_said"), [("filename=one\nnumjobs=4\n", True), ("numjobs=2\n", False)])
def test_one_file_is_said_to_have_one_flusher(tmp_path: Path, files: str, is_said: bool) -> None:
    found = _scenario_of(_job(tmp_path, f"[a]\nrw=write\nsize=1m\n{files}"), "brd")
    assert ("a file has one flusher at a time" in jobfile.notes(found)[0]) == is_said
    assert bool(jobfile.hopeless(found)) == is_said


@pytest.mark.parametrize(("device", "is_said"), [("brd", True), ("nolat", False)])
def test_what_decides_and_was_not_chosen_is_said(tmp_path: Path, device: str, is_said: bool) -> None:
    found = _scenario_of(_job(tmp_path, "[a]\nrw=write\nsize=1m\nnumjobs=2\n"), device)
    said = "; ".join(jobfile.notes(found))
    assert (f"device {device} is a RAM disk, where more flushers bring most" in said) == is_said
    assert "a dirty limit of 64 MiB" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "[global]\ndirect=1\nsize=10g\ndirectory=/mount-point-of-ssd\n"
            "[seq-read]\nrw=read\nstonewall\n[seq-write]\nrw=write\nstonewall\n",
            "every section that writes has direct=1",
        ),
        ("[global]\nrw=randread\ndirect=1\n[device]\nfilename=/dev/sda\nsize=1m\n", "no section writes"),
    ],
    ids=["ssd-test", "latency-profile"],
)
def test_a_job_hears_its_real_obstacle_first(tmp_path: Path, text: str, why: str) -> None:
    """As the examples that come with fio: their path, which is easy to mend, is not what keeps them out."""
    with pytest.raises(LabError, match=why):
        _scenario_of(_job(tmp_path, text), "brd")


def test_a_job_whose_files_have_no_size(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"section \[a\] has no size="):
        _scenario_of(_job(tmp_path, "[a]\nrw=write\n"), "brd")


def test_one_context_alone_is_nothing_to_choose_from(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="expected a number above 1 among --contexts, or auto"):
        _scenario_of(_job(tmp_path, "[a]\nrw=write\nsize=1m\n"), "brd", contexts=[1])
