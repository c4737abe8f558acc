# SPDX-License-Identifier: GPL-2.0
"""What a server has measured, read by report and diff; the records are made up."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from lab import cli
from lab.field import record
from lab.field.record import Kind, Record, Trial
from lab.result import field, page, results
from lab.util.errors import LabError
from tests import samples

FIO = json.loads((samples.FIXTURES / "fio-group.json").read_text())


def trial(number: int, contexts: int | str, mib_s: float) -> Trial:
    run = samples.run(12, mib_s=mib_s, name="run").model_copy(update={"contexts": 3})
    raw = samples.raw(run).model_dump(mode="json") | {"cpus": 4}
    return Trial(number, contexts, raw, FIO)


def server_record(kind: Kind, rates: dict[int | str, list[float]], **changes: Any) -> Record:
    """Return a record with these rates, a list of rounds for each number of contexts."""
    made = Record(
        kind=kind,
        release=f"7.3.4-pwb-{kind}",
        version="#1 SMP",
        machine={"cpus": 4, "cpu_model": "Some CPU", "memory_mib": 8192},
        drive="Fast Drive 1TB",
        filesystem="xfs",
        job="job",
        text="[x]\nrw=write\nsize=1g\n",
        files_mib=1024,
        fio="fio-3.33",
        dirty_settings={"dirty_ratio": 20},
        dirty_limit_mib=256 if kind == "stock" else 255,
        bdi={"wb_workers": "1"} if kind == "parallel" else {},
        date="2026-01-02T03:04:05+00:00",
        others_mib_s=0.0,
        commit="5ca1ab1e",
        runs=[trial(n, contexts, rate) for contexts, of in rates.items() for n, rate in enumerate(of, 1)],
    )
    return replace(made, **changes)


STOCK = server_record("stock", {1: [100, 102, 101, 100]})
PARALLEL = server_record(
    "parallel", {1: [100, 101, 100, 102], 4: [300, 303, 301, 299], "auto": [280, 281, 280, 282]}
)


def packed(folder: Path, *records: Record) -> Path:
    """Return an archive like that of ./field pack."""
    path = folder / "pwb-field-results.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for one in records:
            data = json.dumps(asdict(one)).encode()
            member = tarfile.TarInfo(one.file_name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "results"
    monkeypatch.setattr(field.result_folders, "__defaults__", (made,))
    return made


def test_both_kernels_become_one_result_as_a_bench_leaves_it(tmp_path: Path, root: Path) -> None:
    [folder] = field.result_folders(packed(tmp_path, PARALLEL, STOCK))
    assert folder == root / "field-job-20260102030405"
    cells, meta = results.read(folder)
    assert [(cell.label, cell.kernel, cell.runs) for cell in cells] == [
        ("stock", "stock", 4),
        ("1 context", "parallel", 4),
        ("4 contexts", "parallel", 4),
        ("auto contexts", "parallel", 4),
    ]
    # A share of the memory is not the same to the MiB after a reboot, and one limit all the same.
    assert {(cell.machine, cell.cpus, cell.device, cell.fs, cell.dirty_limit_mib) for cell in cells} == {
        ("server", 4, "Fast-Drive-1TB", "xfs", 256)
    }
    assert cells[2].ratio_to_stock == pytest.approx(3, rel=0.02)
    assert all(cell.steady and cell.latency_mean_us and cell.sync_s and cell.extents for cell in cells)
    assert meta["server"] == "4 CPUs (Some CPU), 8192 MiB of memory, xfs on Fast Drive 1TB"
    assert meta["kernels"]["parallel"]["release"] == "7.3.4-pwb-parallel"
    assert meta["notes"] == ["parallel: settings that were left as they were: wb_workers 1"]
    assert not list(root.glob(".*"))


def test_report_makes_the_page_and_names_the_best(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli._run(["report", str(packed(tmp_path, STOCK, PARALLEL))]) == 0
    folder = root / "field-job-20260102030405"
    assert capsys.readouterr().out == f"{folder / 'index.html'}\n"
    table = (folder / "table.md").read_text()
    assert "xfs on Fast-Drive-1TB, 4 CPUs: at 256 MiB best at 4 contexts, 2.9" in table
    assert "auto contexts (3) reach 0.93 of the best fixed number" in table
    page = (folder / "index.html").read_text()
    assert "xfs on Fast-Drive-1TB, 4 CPUs, dirty limit 256 MiB" in page
    assert "4 CPUs (Some CPU), 8192 MiB of memory" in page
    assert (folder / "throughput-Fast-Drive-1TB-4cpus.png").exists()


def test_beside_a_bench_and_in_diff(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = tmp_path / "bench"
    bench.mkdir()
    results.write(bench, results.cells("small", samples.measured("stock", 1, 128, [100, 120])), {})
    archive = packed(tmp_path, STOCK, PARALLEL)
    page = tmp_path / "both.html"
    assert cli._run(["report", str(archive), str(bench), "--output", str(page)]) == 0
    assert "Fast-Drive-1TB" in page.read_text() and "nolat" in page.read_text()
    capsys.readouterr()
    assert cli._run(["diff", str(archive), str(bench)]) == 0
    assert "no setting is in both results" in capsys.readouterr().out
    again = tmp_path / "again"
    again.mkdir()
    record.save(replace(STOCK, date="2026-02-02T03:04:05+00:00"), again)
    assert cli._run(["diff", str(archive), str(again)]) == 0
    told = capsys.readouterr().out
    # A server's limit is a share of its memory.
    assert "| Fast-Drive-1TB | 4 | xfs | 20% of memory | stock |" in told
    assert "20% of memory (256 MiB in A, 256 MiB in B)" in told


def test_an_earlier_page_stays_beside_a_bench_and_in_diff(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = tmp_path / "bench"
    bench.mkdir()
    results.write(bench, results.cells("small", samples.measured("stock", 1, 128, [100, 120])), {})
    archive, both = packed(tmp_path, STOCK, PARALLEL), tmp_path / "both.html"
    assert cli._run(["report", str(archive)]) == 0
    folder = Path(capsys.readouterr().out.strip()).parent
    before = sorted(path.name for path in folder.iterdir())
    assert {"index.html", "table.md", "throughput-Fast-Drive-1TB-4cpus.png"} <= {*before}
    assert cli._run(["report", str(archive), str(bench), "--output", str(both)]) == 0
    assert both.read_text().count("data:image/png;base64,") == sum(name.endswith(".png") for name in before)
    assert cli._run(["diff", str(archive), str(bench)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_archive_is_drawn_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr(page, "remake", drawn.append)
    archive = packed(tmp_path, STOCK)
    assert cli._run(["report", str(archive)]) == 0
    folder = Path(capsys.readouterr().out.strip()).parent
    assert cli._run(["report", str(folder)]) == 0
    assert drawn == [root / f".{folder.name}", folder]


def test_jobs_are_compared_by_their_names(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(STOCK, job="other", runs=[trial(n, 1, 50 + n) for n in (1, 2, 3)], fio="fio-3.36")
    for name in "ab":
        (tmp_path / name).mkdir()
    first = packed(tmp_path / "a", STOCK, other)
    second = packed(tmp_path / "b", other, replace(STOCK, job="third"))
    assert cli._run(["diff", str(first), str(second)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("field-other:\n\n| device ")
    assert "| stock | 52 (51..53) | 52 (51..53) | 1.00 [0.96, 1.04] | the same |" in said
    assert said.count("| stock |") == 1 and "fio is" not in said
    assert said.endswith("\nonly in A: field-job\n\nonly in B: field-third\n")


def test_a_later_archive_of_the_same_campaign(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    first = packed(tmp_path / "a", STOCK)
    second = packed(tmp_path / "b", replace(STOCK, runs=[trial(n, 1, 200 + n) for n in (1, 2, 3)]))
    assert cli._run(["diff", str(first), str(second)]) == 0
    assert "| 100 (100..102) | 202 (201..203) | 2.00 [1.98, 2.03] | more |" in capsys.readouterr().out


def test_the_same_records_make_the_same_result_again(tmp_path: Path, root: Path) -> None:
    first = field.result_folders(packed(tmp_path, STOCK))
    assert field.result_folders(packed(tmp_path, STOCK, PARALLEL)) == first
    assert len(results.read(first[0])[0]) == 4


def test_several_jobs_are_several_results(tmp_path: Path, root: Path) -> None:
    archive = packed(tmp_path, STOCK, replace(STOCK, job="other"))
    assert [path.name.split("-")[1] for path in field.result_folders(archive)] == ["job", "other"]


def test_a_result_of_a_bench_is_itself(tmp_path: Path, root: Path) -> None:
    assert field.result_folders(tmp_path) == [tmp_path]


def test_auto_has_time_to_climb(tmp_path: Path, root: Path) -> None:
    [folder] = field.result_folders(packed(tmp_path, PARALLEL))
    raw = folder / "raw"
    assert sorted(path.name for path in raw.glob("*round1")) == [
        "parallel-auto-round1",
        "parallel1-round1",
        "parallel4-round1",
    ]
    assert sorted(path.name for path in (raw / "parallel-auto-round1").iterdir()) == [
        "raw.json",
        "run.fio.json",
    ]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"release": "7.2.1-pwb-parallel"}, "stock and parallel differ in version of Linux too"),
        ({"drive": "Other", "fio": "fio-3.36"}, "stock and parallel differ in drive, fio too"),
        ({"dirty_settings": {"dirty_ratio": 10}}, "stock and parallel differ in dirty settings too"),
        ({"others_mib_s": 12.5}, "parallel: others wrote 12.5 MiB/s to the device"),
        ({"files_mib": 300}, "parallel: dirty limit 255 MiB, more than half of the job's files"),
    ],
)
def test_what_makes_figures_less_comparable_is_said(
    tmp_path: Path, root: Path, changes: dict[str, Any], note: str
) -> None:
    [folder] = field.result_folders(packed(tmp_path, STOCK, replace(PARALLEL, **changes)))
    assert [said for said in results.read(folder)[1]["notes"] if said.startswith(note)]


def test_other_dirty_settings_are_not_compared(tmp_path: Path, root: Path) -> None:
    other = replace(PARALLEL, dirty_settings={"dirty_bytes": 1}, dirty_limit_mib=64)
    [folder] = field.result_folders(packed(tmp_path, STOCK, other))
    cells, _ = results.read(folder)
    assert [(cell.dirty_limit_mib, cell.ratio_to_stock is None) for cell in cells] == [
        (256, False),
        *[(64, True)] * 3,
    ]


def broken(path: Path, data: bytes, name: str = "job-stock.json") -> Path:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(member, io.BytesIO(data))
    return path


def test_what_is_no_archive(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "x.tar.gz"
    path.write_text("text")
    with pytest.raises(
        LabError, match=r"x\.tar\.gz cannot be read .*expected a folder below results/, or an"
    ):
        field.result_folders(path)
    with pytest.raises(LabError, match=r"has no records of \./field"):
        field.result_folders(broken(path, b"", "README"))
    with pytest.raises(LabError, match=r"job-stock\.json is no record of ./field: "):
        field.result_folders(broken(path, b"{}"))
    newer = json.dumps(asdict(replace(STOCK, format=9))).encode()
    with pytest.raises(LabError, match="has format 9: expected 1"):
        field.result_folders(broken(path, newer))
    assert not root.exists()


@pytest.mark.parametrize("name", ["../x", "x/../../../y", "/abs", "..", "", "x\n"])
@pytest.mark.parametrize("field_name", ["job", "filesystem", "fio_json"])
def test_a_name_that_leads_out_of_the_folder(tmp_path: Path, root: Path, field_name: str, name: str) -> None:
    data = asdict(STOCK)
    where = data["runs"][0]["raw"]["runs"][0] if field_name == "fio_json" else data
    where[field_name] = f"{tmp_path}{name}" if name == "/abs" else name
    path = broken(tmp_path / "x.tar.gz", json.dumps(data).encode())
    with pytest.raises(LabError, match=rf"job-stock\.json.*{field_name} is .*: expected .*(name|letters) "):
        field.result_folders(path)
    assert {one.name for one in tmp_path.iterdir()} <= {"x.tar.gz", "results"}
    assert [one.name for one in root.glob("*") if not one.name.startswith(".")] == []


def test_raw_data_is_not_written_over_by_what_fio_has_left(tmp_path: Path, root: Path) -> None:
    data = asdict(STOCK)
    data["runs"][0]["raw"]["runs"][0]["fio_json"] = "raw.json"
    with pytest.raises(
        LabError, match=r"fio_json is 'raw\.json': expected the name of a file, \*\.fio\.json"
    ):
        field.result_folders(broken(tmp_path / "x.tar.gz", json.dumps(data).encode()))


def test_two_records_of_a_job_on_one_kernel(tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    record.save(STOCK, folder).rename(folder / "earlier-job-stock.json")
    record.save(STOCK, folder)
    with pytest.raises(LabError, match="has two records of job job on a stock kernel: expected one of each"):
        field.result_folders(folder)
    assert not root.exists()


@pytest.mark.parametrize("contexts", [0, -1, "all", "../x"])
def test_contexts_that_are_none(tmp_path: Path, root: Path, contexts: int | str) -> None:
    data = asdict(STOCK)
    data["runs"][0]["contexts"] = contexts
    with pytest.raises(LabError, match=r"runs: 0: .*contexts is .*: expected a whole number from 1, or auto"):
        field.result_folders(broken(tmp_path / "x.tar.gz", json.dumps(data).encode()))


def test_of_two_runs_of_a_round_with_as_many_contexts_the_first_counts(tmp_path: Path, root: Path) -> None:
    twice = replace(PARALLEL, runs=[*PARALLEL.runs, trial(2, 4, 900)])
    [folder] = field.result_folders(packed(tmp_path, STOCK, twice))
    cells, meta = results.read(folder)
    [four] = [cell for cell in cells if cell.contexts == 4]
    assert (four.runs, four.mib_s.max) == (4, 303)
    assert "parallel: 1 runs are left out: their round has another with as many contexts" in meta["notes"]


def test_a_run_without_a_written_byte_is_named(tmp_path: Path, root: Path) -> None:
    idle = replace(STOCK, runs=[trial(1, 1, 0)])
    with pytest.raises(LabError, match=r"job-stock\.json, round 1, stock: .*counted no written byte"):
        field.result_folders(packed(tmp_path, idle))
