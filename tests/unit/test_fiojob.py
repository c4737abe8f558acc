# SPDX-License-Identifier: GPL-2.0
"""fio job files, as fio reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.experiment import fiojob
from lab.util.errors import LabError


def _check(text: str, folder: Path = Path()) -> None:
    fiojob.check("mine.fio", text, folder)


def test_fio_refuses_with_its_own_words() -> None:
    with pytest.raises(LabError, match=r"job mine.fio: fio refuses it: .*Did you mean size\?"):
        _check("[x]\nrw=randwrite\nszie=1m\n")


def test_a_job_file_without_a_job() -> None:
    with pytest.raises(LabError, match="finds no job in it"):
        _check("[global]\nrw=randwrite\n")


@pytest.mark.parametrize(
    "line", ["directory=/data", "filename=/dev/nvme0n1", "directory=a:/data", "directory=../up"]
)
def test_a_job_that_leaves_the_filesystem_under_test(line: str) -> None:
    with pytest.raises(LabError, match="outside the filesystem under test"):
        _check(f"[x]\nrw=randwrite\nsize=1m\n{line}\n")


@pytest.mark.parametrize("line", ["directory=sub", "filename=a:b", "directory=/mnt/test/sub"])
def test_a_job_that_stays_on_it(line: str) -> None:
    _check(f"[x]\nrw=randwrite\nsize=1m\n{line}\n")


def test_included_files_are_taken_along(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("[global]\nbs=4k\n")
    text = "include common.fio\n[x]\nrw=randwrite\nsize=1m\n"
    _check(text, tmp_path)
    assert "bs=4k" in fiojob.inlined("mine", text, tmp_path)
    with pytest.raises(LabError, match="cannot read the included"):
        _check("include gone.fio\n[x]\nsize=1m\n", tmp_path)


def test_directories_that_fio_expects_to_exist() -> None:
    text = "[a]\ndirectory=d1:/mnt/test/d2/e\n[b]\nfilename=f:d3/f\n"
    assert fiojob.directories(text) == ["d1", "d2/e", "d3"]


def test_direct_replaces_the_jobs_own_choice() -> None:
    derived = fiojob.direct("[global]\ndirect=0\nbuffered = 1\nbs=4k\n[x]\ndirect\nrw=randwrite\n")
    assert derived == "[global]\ndirect=1\n[global]\nbs=4k\n[x]\nrw=randwrite\n"


def test_layout_only_goes_ahead_of_the_job() -> None:
    assert fiojob.layout_only("[x]\n").splitlines() == ["[global]", "create_only=1", "[x]"]


def test_a_job_makes_its_files_as_it_runs_if_each_of_its_sections_does() -> None:
    late = "[global]\nrw=write\nsize=1m\n[x]\ncreate_on_open=1\n"
    assert fiojob.makes_files_as_it_runs(late)
    assert not fiojob.makes_files_as_it_runs(late + "[y]\n")


def test_paths_are_those_that_fio_reads() -> None:
    with pytest.raises(LabError, match=r"directory=/data lies outside"):
        _check("[x]\nrw=randwrite\nsize=1m\ndirectory=/data ; where\n")
    # fio reads no comment.
    text = "[ a ]\nrw=write # all of it\nsize=1m\nfilename = d3/f ; where\ndirectory = sub # /not/here\n"
    _check(text)
    assert fiojob.directories(text) == ["sub", "d3"]
    assert [one["name"] for one in fiojob.sections(text)] == ["a"]


def test_an_include_may_have_a_comment(tmp_path: Path) -> None:
    (tmp_path / "common.fio").write_text("[global]\nbs=4k\n")
    text = "include common.fio ; what all have\n[x]\nrw=randwrite\nsize=1m\n"
    assert "bs=4k" in fiojob.inlined("mine", text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[a]\ndirect=0 ; through the page cache\n",
        "[a]\ndirect=1\nbuffered=1\n",
        "[a]\nbuffered=0\ndirect=0\n",
        "[global]\nbuffered=1\ndirect=1\n[a]\nbuffered=1\n",
        # What only reads needs no page cache, and one that does is none.
        "[reader]\nrw=read\ndirect=1\n[a]\n",
        "[a]\ndirect=1\n[b]\n",
        "[reader]\nrw=read\ndirect=1\n",
    ],
)
def test_a_job_that_writes_through_the_page_cache_is_taken(text: str) -> None:
    text = "[global]\nrw=write\nsize=1m\n" + text
    _check(text)
    fiojob.check_buffered("mine", text, Path())


@pytest.mark.parametrize(
    "text",
    [
        "direct=1 # around it\n[a]\n",
        "[a]\nbuffered=0\n",
        "[a]\natomic=1\n",
        "buffered=0\ndirect=0\n[a]\ndirect=0x1\n",
        "[reader]\nrw=randread\n[a]\ndirect=1\n",
    ],
)
def test_a_job_whose_writers_go_around_it_is_refused(text: str) -> None:
    text = "[global]\nrw=write\nsize=1m\n" + text
    _check(text)
    with pytest.raises(LabError, match="job mine: every section that writes has direct=1"):
        fiojob.check_buffered("mine", text, Path())


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("[global]\nname=x\nfilename=f\nnumjobs=4\n[a]\nrw=write\nsize=1m\n[b]\nrw=read\nsize=10M\n", 10),
        ("[global]\nsize=1m\n[a]\nrw=write\nnumjobs=3\n[b]\nrw=write\nfilesize=512k\n", 3.5),
        ("[a b]\nrw=write\nsize=7m\nnrfiles=2\n[c] ; a note\nrw=write\nsize=1m\n", 8),
        ("[a]\nrw=write\nsize=9m\nfilesize=3m\nnr_files=4\nnumjobs=2\n", 24),
        ("[a]\nrw=write\nfilesize=3m\nfilename=p:q\nnumjobs=2\n[b]\nrw=write\nsize=4m\nfilename=r:s\n", 10),
        ("[a]\nrw=write\nsize=1m\noffset=3m\n", 4),
        ("[a]\nrw=write\nsize=1m\nfileoffset=3m\noffset_increment=2m\nnumjobs=3\n", 18),
        ("[a]\nrw=write\nsize=1m\nfilename=s\noffset_increment=2m\nnumjobs=3\n", 5),
        ("[a]\nrw=write\nsize=4m\nnrfiles=2\noffset=1m\n[b]\nrw=write\nfilesize=2m\noffset=1m\n", 8),
        ("[a]\nrw=write\nsize=1m\nfilename_format=shared\nnumjobs=8\n", 1),
        ("[a]\nrw=write\nsize=4m\nnrfiles=2\nfilename_format=f.$filenum\nnumjobs=3\n", 4),
        ("[a]\nrw=write\nsize=1m\nfilename_format=f.$jobnum\nnumjobs=3\n[f]\nrw=write\nsize=1m\n", 4),
        ("[a]\nrw=write\nsize=1m\ndirectory=d1:d2\nfilename_format=g\nnumjobs=3\n", 2),
        ("[a]\nrw=write\nsize=1m\ndirectory=d1:d2\nfilename=g\nnumjobs=3\n", 1),
        ("[a]\nrw=write\nsize=1m\ndirectory=d1:d2\nnumjobs=3\n", 3),
        ("[a]\nrw=write\nsize=0x600000\nnumjobs=0x3\nnrfiles=0X2\n", 18),
        ("[a]\nrw=write\nsize=1000mib\nfilesize=64KIB\nnr_files=3b\n", 3 * 64_000 / (1 << 20)),
        ("[a]\nrw=write\nfilesize=4k\nnrfiles=1k\n", 4),
        (r"[a]" "\nrw=write\nsize=1m\nfilename=p\\:q\n", 1),
    ],
)
def test_number_and_sizes_of_a_jobs_files_are_those_that_fio_makes(
    tmp_path: Path, text: str, mib: float
) -> None:
    assert sum(fiojob.file_sizes(text).values()) == mib
    for name in fiojob.directories(text):
        (tmp_path / name).mkdir()
    job = tmp_path.with_suffix(".fio")
    job.write_text(fiojob.layout_only("[global]\nfallocate=truncate\n" + text))
    subprocess.run(["fio", str(job)], cwd=tmp_path, check=True, capture_output=True)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in made) == mib * (1 << 20)
    assert fiojob.written_files(text) == len(made)


@pytest.mark.parametrize("line", ["size=5%", "size=1m\noffset=10%", "size=1m\noffset_increment=1%"])
def test_the_size_of_a_file_that_is_not_given_in_bytes_cannot_be_told(line: str) -> None:
    assert fiojob.file_sizes(f"[a]\nrw=write\n{line}\n") == {"a.$jobnum.$filenum": 0}


@pytest.mark.parametrize("line", ["numjobs=3.7", "nrfiles=0x1k"])
def test_a_number_that_cannot_be_read_is_refused(line: str) -> None:
    with pytest.raises(LabError, match=rf"section \[a\] has {line}: expected a whole number, such as 16"):
        fiojob.file_sizes(f"[a]\nrw=write\nsize=1m\n{line}\n")


@pytest.mark.parametrize(("engine", "is_counted"), [("libaio", True), ("io_uring", True), ("psync", False)])
def test_submission_is_a_part_of_latency_where_an_engine_does_not_wait(
    engine: str, is_counted: bool, tmp_path: Path
) -> None:
    text = f"[global]\nsize=1m\n[a]\nrw=write\nioengine={engine}\n"
    made = fiojob.for_the_guest("mine", text, tmp_path)
    assert ("lat_percentiles" in fiojob.sections(made)[0]) == is_counted
    assert made.endswith(text)


@pytest.mark.parametrize("before", ["-- ", "--name=a --rw=read "])
def test_what_looks_like_another_option_is_the_value_that_it_is_in(before: str) -> None:
    text = f"[a]\nsize=1m\ndescription=a {before}b\n[other {before}job]\nrw=write\nfilename=f {before}g\n"
    assert fiojob.sections(text) == [
        {"name": "a", "size": "1m", "description": f'"a {before}b"'},
        {"name": f"other {before}job", "rw": "write", "filename": f"f {before}g"},
    ]


@pytest.mark.parametrize("name", ["global", "globals"])
def test_a_later_global_is_refused(name: str) -> None:
    ahead = f"[global]\nsize=1m\n[{name}]\nrw=write\n[a]\n"
    fiojob.check_globals("j", ahead)
    assert fiojob.sections(ahead) == [{"size": "1m", "rw": "write", "name": "a"}]
    with pytest.raises(LabError, match=r"job j: a \[global\] after other sections"):
        fiojob.check_globals("j", f"[a]\nrw=write\n[{name}]\nsize=1m\n[b]\nrw=write\n")


def test_files_that_are_only_read_are_not_written() -> None:
    text = (
        "[a]\nrw=read\nsize=1m\nnumjobs=8\n[b]\nreadwrite=randwrite\nsize=1m\n[c]\nrw=read\nfilename=b.0.0\n"
    )
    assert fiojob.written_files(text) == 1
