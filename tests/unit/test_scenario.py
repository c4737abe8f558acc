# SPDX-License-Identifier: GPL-2.0
"""Scenario files and job files: what is read, and what is refused with which words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.experiment import fiojob, scenario
from lab.util.errors import LabError

SMALL = """
title = "t"
devices = ["nolat"]
filesystems = ["xfs"]
contexts = [1]
repetitions = 1
limits = [{ mib = 128, ramp_s = 1, window_s = 2 }]
[job]
text = "[x]"
[full]
contexts = [1, 2]
"""


def test_every_scenario_file_is_valid_and_fio_takes_its_job() -> None:
    assert "headline" in scenario.names()
    for name in scenario.names():
        found = scenario.load(name)
        fiojob.check(name, found.job.text, scenario.SCENARIOS)
        found.expanded()


def test_a_job_that_begins_again_does_not_write_its_file_back() -> None:
    """T3 is left as published; direct I/O has no pages."""
    for name in sorted(set(scenario.names()) - {"t3"}):
        text = scenario.load(name).job.text
        if "time_based=1" in text and "direct=1" not in text:
            assert "invalidate=0" in text, name


def test_headline_writes_as_much_with_any_number_of_cpus() -> None:
    headline = scenario.load("headline").expanded()
    assert headline.files is not None
    assert len(headline.scaling) > 1
    for cpus in (headline.guest.cpus, *headline.scaling):
        names = headline.files.names_for(cpus)
        assert len(set(names)) == cpus
        assert headline.files.size_for(cpus) * len(names) == headline.files.total_mib


def test_a_scenario_may_run_on_another_machine() -> None:
    found = scenario.parse("s", SMALL)
    assert (found.guest.machine, found.virtual) == ("uml", False)
    moved = found.on("smp", 16)
    assert (moved.guest.machine, moved.guest.cpus, moved.virtual) == ("smp", 16, True)
    assert moved.guest.mem_mib == found.guest.mem_mib
    assert found.on(None, None) == found
    with pytest.raises(LabError, match=r"scenario 's': guest.cpus: .*64"):
        found.on("smp", 65)


@pytest.mark.parametrize("files", ["", "names = ['a']", "names = ['a']\nsize_mib = 1\ntotal_mib = 2"])
def test_files_are_named_or_there_is_one_for_each_cpu(files: str) -> None:
    with pytest.raises(LabError, match="expected names and size_mib, or total_mib without either"):
        scenario.parse("s", f"{SMALL}\n[files]\n{files}\n")


def test_expanded_changes_only_what_full_names() -> None:
    found = scenario.parse("s", SMALL)
    assert found.expanded().contexts == [1, 2]
    assert found.expanded().repetitions == found.repetitions


CLAIMING = (
    SMALL.replace("contexts = [1]", 'contexts = [1, 8]\naffinities = ["ino", "fs"]\nworkers = [1, 4]', 1)
    + """
[files]
names = ["d0/a"]
size_mib = 1
layouts = ["even", "skewed"]
modulus = 8
[[published]]
id = "T2"
claim = "c"
fs = "xfs"
kind = "throughput"
unit = "MiB/s"
contexts = [1, 8]
base = 2
new = [2, 5]
affinity = "fs"
workers = 1
layout = "even"
[[bars]]
claim = "b"
kind = "extents"
cell = { contexts = 8, affinity = "ino", workers = 4, layout = "skewed" }
of = { workers = 1, layout = "even" }
at_most = 0.4
"""
)


def test_published_numbers_and_bars() -> None:
    found = scenario.parse("s", CLAIMING)
    assert found.published[0].values == [2, 5]
    assert found.bars[0].cell.layout == "skewed"
    assert found.layouts == ["even", "skewed"]
    assert found.reusable_files


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("new = [2, 5]", "new = 5", "published.0: .*a list with a number for each"),
        ("new = [2, 5]", "new = [2, 0]", "a number that is not above 0"),
        ('id = "T2"', 'id = "T9"', "published.0.id"),
        ('fs = "xfs"', 'fs = "ext4"', "published T2: ext4 is none of the scenario's filesystems"),
        ('affinity = "fs"', 'affinity = "rotor"', "published T2: affinity rotor is none"),
        ('affinity = "fs"', "", "published T2: affinity None is none"),
        ("workers = 1\n", "", "published T2: workers None is none"),
        ('of = { workers = 1, layout = "even" }', "of = { workers = 1 }", "bar 'b': layout as-made is none"),
        ("of = { workers = 1,", "of = { workers = 2,", "bar 'b': workers 2 is none of the scenario's"),
        ("of = { workers = 1,", "of = {", "bar 'b': workers None is none of the scenario's"),
        ("workers = [1, 4]", "workers = [1, 9]", "workers.1: .*less than or equal to 8"),
        ("at_most = 0.4", "", "one of at_least and at_most"),
        ("modulus = 8", "", "modulus goes with the layouts"),
        ("repetitions = 1", 'repetitions = 1\nbounds = ["bdis"]', "bdis has several filesystems"),
        ('"d0/a"', '"../a"', "files.names.0"),
        ('"ino", "fs"', '"ino", "ino"', "affinities: each value once"),
        ("repetitions = 1", 'repetitions = 1\nag_modes = ["on"]', "ag_modes.0"),
        (
            "window_s = 2",
            "window_s = 2, between_mib = [8, 8]",
            "expected the smaller amount first",
        ),
        ("repetitions = 1", 'repetitions = 1\nag_modes = ["off"]', "published T2: ag_mode None is none"),
    ],
)
def test_wrong_claims_name_what_is_wrong(before: str, after: str, words: str) -> None:
    assert before in CLAIMING
    with pytest.raises(LabError, match=words):
        scenario.parse("s", CLAIMING.replace(before, after, 1))


PLACING = (
    SMALL.replace("contexts = [1]", 'contexts = [1]\nplacements = ["base", "stream"]', 1)
    + """
[files]
names = ["a"]
size_mib = 1
empty = true
[[bars]]
claim = "b"
kind = "throughput"
cell = { placement = "stream" }
of = { variant = "stock" }
at_least = 2
"""
)


def test_placements() -> None:
    assert scenario.parse("s", PLACING).bars[0].cell.placement == "stream"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("empty = true", "", "placements go with empty files on xfs"),
        ('filesystems = ["xfs"]', 'filesystems = ["ext4"]', "placements go with empty files on xfs"),
        ('"base", "stream"', '"base", "base"', "placements: each value once"),
        ('"base", "stream"', '"base", "other"', "placements.1"),
        ('cell = { placement = "stream" }', "cell = {}", "bar 'b': placement None is none of the scenario's"),
        ('"base", "stream"', '"base"', "bar 'b': placement stream is none of the scenario's"),
    ],
)
def test_wrong_placements_name_what_is_wrong(before: str, after: str, words: str) -> None:
    assert before in PLACING
    with pytest.raises(LabError, match=words):
        scenario.parse("s", PLACING.replace(before, after, 1))


def test_unknown_scenario_names_the_nearest() -> None:
    with pytest.raises(LabError, match="unknown scenario 'headlin': expected headline"):
        scenario.load("headlin")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title =", "not valid TOML"),
        (SMALL.replace("[job]", "[jobs]"), "jobs: Extra inputs"),
        (SMALL.replace('"xfs"', '"xfz"'), "filesystems.0: .*'xfs'"),
        (SMALL.replace("contexts = [1]", "contexts = [0]"), "contexts.0: .*expected auto, or a number .*"),
        (SMALL.replace('["xfs"]', '["xfs", "xfs"]'), "filesystems: each value once"),
    ],
)
def test_wrong_scenario_names_the_key(text: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        scenario.parse("s", text)


def _job(tmp_path: Path, text: str = "[x]\nrw=randwrite\nsize=1m\n") -> Path:
    path = tmp_path / "my job.fio"
    path.write_text(text)
    return path


def _from_job(
    path: Path, fs: str = "xfs", machine: scenario.Machine = "uml", cpus: int | None = 2
) -> scenario.Scenario:
    return scenario.from_job(
        path,
        fs=[fs],
        device="nolat",
        contexts=[2],
        dirty_limits_mib=[64],
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
