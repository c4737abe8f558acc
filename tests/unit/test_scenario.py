# SPDX-License-Identifier: GPL-2.0
"""Scenario files and job files: what is read, and what is refused with which words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

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


def test_files_can_have_directories_of_their_own() -> None:
    assert scenario.Files(total_mib=8, own_directories=True).names_for(2) == ["d.0/data", "d.1/data"]
    with pytest.raises(ValidationError, match="own_directories goes with total_mib"):
        scenario.Files(names=["a"], size_mib=1, own_directories=True)


@pytest.mark.parametrize("files", ["", "names = ['a']", "names = ['a']\nsize_mib = 1\ntotal_mib = 2"])
def test_files_are_named_or_there_is_one_for_each_cpu(files: str) -> None:
    with pytest.raises(LabError, match="expected names and size_mib, or total_mib without either"):
        scenario.parse("s", f"{SMALL}\n[files]\n{files}\n")


def test_expanded_changes_only_what_full_names() -> None:
    found = scenario.parse("s", SMALL)
    assert found.expanded().contexts == [1, 2]
    assert found.expanded().repetitions == found.repetitions


def test_cpus_that_the_guest_has_anyway_are_no_further_ones() -> None:
    found = scenario.parse("s", SMALL + "scaling = [2, 8]\n")
    assert found.on("smp", 8).expanded().scaling == [2]
    assert found.on("smp", 2).expanded().scaling == [8]
    listed = scenario.parse("s", SMALL.replace("[full]", "[full]\nscaling = [4, 4]"))
    with pytest.raises(LabError, match=r"scenario 's': the whole: .*scaling: each value once"):
        listed.on("smp", 8).expanded()
    named = scenario.parse("s", SMALL.replace("repetitions = 1", "repetitions = 1\nscaling = [4, 8]"))
    assert named.on("smp", 8).scaling == [4]


def test_user_mode_linux_has_no_further_cpus() -> None:
    found = scenario.parse("s", SMALL + "scaling = [16]\n")
    assert found.on("smp", 8).expanded().scaling == [16]
    assert found.on("uml", 2).expanded().scaling == []


def test_a_bar_may_be_of_the_number_that_the_kernel_finds() -> None:
    bar = '[[bars]]\nclaim = "b"\nkind = "p99"\ncell = { contexts = "auto" }\nof = {}\nat_most = 2\n'
    [found] = scenario.parse("s", SMALL + bar).bars
    assert (found.kind, found.cell.contexts) == ("p99", "auto")


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
