# SPDX-License-Identifier: GPL-2.0
"""Which guests a scenario boots, in which order."""

from __future__ import annotations

from lab.experiment import scenario, schedule
from lab.result import published_table
from tests import samples


def test_rounds_interleave_stock_and_parallel_and_rotate() -> None:
    boots = schedule.boots(samples.small_scenario())
    order = [(boot.round, boot.fs, boot.setting.variant, boot.setting.contexts) for boot in boots]
    assert order[:4] == [
        (1, "xfs", "stock", 1),
        (1, "xfs", "parallel", 1),
        (1, "xfs", "parallel", 2),
        (1, "xfs", "two_bdi", None),
    ]
    assert [one[2:] for one in order[8:12]] == [
        ("parallel", 1),
        ("parallel", 2),
        ("two_bdi", None),
        ("stock", 1),
    ]
    assert len(order) == len(set(order)) == 2 * 2 * 4
    assert [boot.setting.variant for boot in boots if boot.direct] == ["stock"] * 4


def test_a_job_with_its_own_files_gets_a_fresh_filesystem_per_limit() -> None:
    boots = schedule.boots(samples.small_scenario(files=None, repetitions=1))
    assert all(len(boot.limits) == 1 for boot in boots)
    assert len(boots) == 2 * 2 * 4
    assert len([boot for boot in boots if boot.direct]) == 2
    assert len({boot.folder for boot in boots}) == len(boots)


def test_one_context_has_no_affinity_to_choose_and_layouts_are_neighbours() -> None:
    files = {"names": ["a"], "size_mib": 4, "layouts": ["even", "skewed"], "modulus": 8}
    chosen = samples.small_scenario(
        filesystems=["xfs"], contexts=[1, 2], affinities=["ino", "fs"], bounds=[], repetitions=1, files=files
    )
    assert [boot.setting.label for boot in schedule.boots(chosen)] == [
        f"{name}, {layout}"
        for name in ("stock", "1 context", "2 contexts, ino", "2 contexts, fs")
        for layout in ("even", "skewed")
    ]
    assert len({boot.folder for boot in schedule.boots(chosen)}) == 8


def test_every_number_of_workers_is_tried_with_every_number_of_contexts() -> None:
    chosen = samples.small_scenario(
        filesystems=["xfs"], contexts=[1, 2], workers=[1, 4], bounds=[], repetitions=1
    )
    boots = schedule.boots(chosen)
    assert [boot.setting.label for boot in boots] == [
        "stock",
        "1 context, 1 worker",
        "1 context, 4 workers",
        "2 contexts, 1 worker",
        "2 contexts, 4 workers",
    ]
    assert len({boot.folder for boot in boots}) == 5


def test_empty_files_get_a_fresh_filesystem_per_limit() -> None:
    files = {"names": ["a"], "size_mib": 4, "empty": True}
    assert all(len(boot.limits) == 1 for boot in schedule.boots(samples.small_scenario(files=files)))


def test_the_published_claims_fit_their_budget() -> None:
    boots = [boot for name in published_table.known([]) for boot in schedule.boots(scenario.load(name))]
    assert sum(boot.estimate_s for boot in boots) <= 50 * 60


def test_headline_fits_its_budget() -> None:
    seconds = sum(boot.estimate_s for boot in schedule.boots(scenario.load("headline")))
    assert seconds <= 12 * 60
