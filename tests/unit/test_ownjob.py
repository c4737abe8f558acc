# SPDX-License-Identifier: GPL-2.0
"""What a fio job of a user's own must be."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.experiment import fiojob, ownjob
from lab.util.errors import LabError

WRITER = "[load]\nrw=randwrite\nsize=1m\n"


def check(text: str, stopped_after_s: float | None = 0.7) -> None:
    ownjob.check("mine.fio", text, stopped_after_s=stopped_after_s)


@pytest.mark.parametrize("rw", ["write", "randwrite", "rw", "randrw", "readwrite"])
def test_jobs_that_write_are_taken(rw: str) -> None:
    check(f"[load]\nrw={rw}\nsize=1m\n[beside]\nsize=1m\n")


@pytest.mark.parametrize("text", ["[load]\nsize=1m\n", "[load]\nrw=randread\nsize=1m\n"])
def test_a_job_that_only_reads_is_refused(text: str) -> None:
    with pytest.raises(LabError, match=r"job mine.fio: no section writes .*: expected rw=write"):
        check(text)


@pytest.mark.parametrize("engine", ["null", "net", "exec"])
def test_an_engine_that_writes_no_files_is_refused(engine: str) -> None:
    with pytest.raises(LabError, match=rf"section \[load\] has ioengine={engine}, .*: expected one of "):
        check(f"{WRITER}ioengine={engine}\n")
    check(f"{WRITER}ioengine=libaio\n[burn]\nioengine=cpuio\ncpuload=50\n")


def test_reports_without_latencies_of_writes_are_refused() -> None:
    with pytest.raises(LabError, match="unified_rw_reporting"):
        check(f"{WRITER}unified_rw_reporting=1\n")
    # fio then tells none of any section.
    with pytest.raises(LabError, match="unified_rw_reporting"):
        check(f"{WRITER}[reader]\nrw=read\nunified_rw_reporting=mixed\n")


def test_what_waits_for_nothing_is_taken() -> None:
    check("[global]\nstonewall\n[load]\nrw=write\nsize=1m\n")


def test_a_ramp_is_refused_where_the_job_is_stopped() -> None:
    with pytest.raises(LabError, match="has ramp_time, in which fio keeps no latencies"):
        check(f"{WRITER}ramp_time=2\n")


@pytest.mark.parametrize("line", ["stonewall", "wait_for_previous", "startdelay=3", "wait_for=load"])
def test_a_phase_that_comes_later_is_refused_where_the_job_is_stopped(line: str) -> None:
    text = f"{WRITER}[later]\n{line}\nrw=write\nsize=1m\n"
    with pytest.raises(LabError, match=r"section \[later\] has .* stopped 0.7 s .* --machine uml"):
        check(text)
    check(text, stopped_after_s=None)


def test_variables_become_their_values() -> None:
    text = "size=${SIZE}\nfilename_format=data.$jobnum\n"
    assert ownjob.expanded("j", text, {"SIZE": "1g"}, 8) == "size=1g\nfilename_format=data.$jobnum\n"
    comment = "; ${SIZE}, or # ${MORE}\nsize=1m ; not ${SIZE}, nor $ncpus*2\n"
    assert ownjob.expanded("j", comment, {}, 8) == comment
    with pytest.raises(LabError, match=r"job j: \${SIZE} is not set: export SIZE"):
        ownjob.expanded("j", text, {}, 8)


def test_cpus_are_those_of_the_guest() -> None:
    assert ownjob.expanded("j", "numjobs=$ncpus # all\n", {}, 8) == "numjobs=8 # all\n"
    with pytest.raises(LabError, match=r"job j: numjobs=\$ncpus\*2 calculates .* write what comes out .* 8"):
        ownjob.expanded("j", "numjobs=$ncpus*2\n", {}, 8)


def test_the_name_of_a_section_is_none_of_its_values() -> None:
    text = "[rand-write-$ncpus-${SIZE}] ; all\n"
    assert ownjob.expanded("j", text, {}, 8) == text


def laid_out(text: str, folder: Path) -> bool:
    """Say whether fio makes the files of a job; sparse ones."""
    job = folder.with_suffix(".fio")
    job.write_text(fiojob.layout_only(f"[global]\nfallocate=none\n{text}"))
    return subprocess.run(["fio", str(job)], cwd=folder, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "lines",
    [
        "size=0x100000",
        "size=1MiB",
        "filesize=64k",
        "filesize=4k-64k",
        "filesize=64k\nsize=50%",
        "fill_fs=1",
        "size=1m\nio_size=50%",
        "size=1m\n[burn]\nioengine=cpuio\ncpuload=50",
    ],
)
def test_files_of_a_size_are_taken(tmp_path: Path, lines: str) -> None:
    text = f"[load]\nrw=write\n{lines}\n"
    ownjob.check_sizes("mine", text)
    assert laid_out(text, tmp_path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("io_size=1m", "no size="),
        ("fill_device=0", "no size="),
        ("size=0", "size=0"),
        ("size=50%", "size=50%"),
        ("size=7.5m", "size=7.5m"),
        ("filesize=1.5m", "filesize=1.5m"),
        ("size=7.5m\nfilesize=1m", "size=7.5m and filesize=1m"),
        # The reader's file would have to be there before any is made.
        ("size=1m\nfilename=f\n[load]\nrw=read\nfilename=f", "no size="),
    ],
)
def test_files_of_no_size_are_refused(tmp_path: Path, lines: str, said: str) -> None:
    text = f"[load]\nrw=write\n{lines}\n"
    with pytest.raises(LabError, match=rf"mine: section \[load\] has {said}, .*: expected a whole number"):
        ownjob.check_sizes("mine", text)
    assert not laid_out(text, tmp_path)


def test_files_have_to_fit_on_the_device() -> None:
    text = f"{WRITER}offset=99m\n"
    ownjob.check_room("mine", text, int(100 / ownjob.ROOM) + 1)
    with pytest.raises(LabError, match=r"take 100 MiB, .*: expected at most 90 MiB; lower size= or"):
        ownjob.check_room("mine", text, 100)
