# SPDX-License-Identifier: GPL-2.0
"""Which guests a scenario boots, in which order."""

from __future__ import annotations

from typing import Any

import pytest

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
        (1, "xfs", "bdis", None),
    ]
    assert [one[2:] for one in order[8:12]] == [
        ("parallel", 1),
        ("parallel", 2),
        ("bdis", None),
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


@pytest.mark.parametrize(("ramp_s", "later"), [(0.5, True), (schedule.CLIMB_S, False)])
def test_the_kernel_has_time_to_find_its_number(ramp_s: float, later: bool) -> None:
    limit = {"mib": 64, "ramp_s": ramp_s, "window_s": 1}
    chosen = samples.small_scenario(
        filesystems=["xfs"], contexts=["auto", 2], bounds=[], repetitions=1, limits=[limit]
    )
    steps = {str(step.setting.contexts): step for boot in schedule.boots(chosen) for step in boot.steps}
    assert steps["2"].window.ramp_s == ramp_s and not steps["2"].is_later
    assert steps["None"].window.ramp_s >= schedule.CLIMB_S and steps["None"].is_later is later
    assert steps["None"].window.window_s == 1


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
    # In virtual time two run side by side.
    assert sum(boot.estimate_s / (2 if boot.machine == "smp" else 1) for boot in boots) <= 60 * 60


@pytest.mark.parametrize("name", ["waiting", "disk", "network"])
def test_a_device_that_tasks_wait_for_leaves_the_cpus_idle(name: str) -> None:
    waiting, busy, ssd = (schedule.boots(_on_smp(devices=[one]))[0] for one in (name, "brd", "sata"))
    assert waiting.estimate_s < busy.estimate_s == ssd.estimate_s


def _on_smp(**changes: Any) -> scenario.Scenario:
    guest = {"machine": "smp", "cpus": 8, "mem_mib": 8192, "device_mib": 4096}
    return samples.small_scenario(filesystems=["xfs"], contexts=[1, 2, 8], guest=guest, **changes)


def test_in_virtual_time_settings_share_a_boot_where_they_can() -> None:
    stock, ours, bdis = schedule.boots(_on_smp(repetitions=1))
    assert [step.name for step in stock.steps] == ["limit-128", "limit-256", "direct"]
    assert [(step.setting.contexts, step.dirty_limit_mib) for step in ours.steps] == [
        (contexts, mib) for contexts in (1, 2, 8) for mib in (128, 256)
    ]
    assert len({step.name for step in ours.steps}) == 6
    assert [boot.device_count for boot in (stock, ours, bdis)] == [1, 1, 8]
    # Files that may be written to but once cannot be shared.
    assert len(schedule.boots(_on_smp(repetitions=1, files=None))) == 2 * 5


def test_a_scenario_may_want_a_boot_for_each_setting() -> None:
    boots = schedule.boots(_on_smp(repetitions=1, own_boots=True, bounds=[]))
    assert [boot.setting.contexts for boot in boots] == [1, 1, 2, 8]


def test_modes_that_need_a_mount_share_no_boot() -> None:
    chosen = _on_smp(repetitions=1, ag_modes=["off", "rotor"], bounds=[])
    assert [len(boot.settings) for boot in schedule.boots(chosen)] == [1, 3, 3]


def test_further_numbers_of_cpus_have_stock_and_as_many_contexts() -> None:
    further = schedule.boots(_on_smp(repetitions=1, scaling=[2, 16]))[3:]
    assert [(boot.cpus, boot.setting.variant, boot.setting.contexts) for boot in further] == [
        (2, "stock", 1),
        (2, "parallel", 2),
        (16, "stock", 1),
        (16, "parallel", 16),
    ]
    assert not any(boot.direct for boot in further)
    assert len({boot.folder for boot in further}) == 4
    # The same work in the window: four times as long with 2 CPUs as with 8.
    windows = [[(limit.ramp_s, limit.window_s) for limit in boot.limits] for boot in further]
    given = [(2.0, 4.0), (2.0, 4.0)]
    longer = [(8.0, 16.0), (8.0, 16.0)]
    assert windows == [longer, longer, given, given]
    both = schedule.boots(_on_smp(repetitions=1, scaling=[2, 16], devices=["brd", "waiting"]))
    assert {boot.cpus for boot in both if boot.device == "brd"} == {2, 8, 16}
    assert {boot.cpus for boot in both if boot.device == "waiting"} == {8}


def test_further_numbers_of_cpus_may_have_more() -> None:
    chosen = _on_smp(
        repetitions=1,
        scaling=[2, 16],
        scaling_contexts=[1, 4, "cpus"],
        scaling_bounds={"bdis": 16, "direct": 2},
    )
    further = schedule.boots(chosen)[3:]
    assert [(boot.cpus, boot.setting.variant) for boot in further] == [
        (cpus, variant) for cpus in (2, 16) for variant in ("stock", "parallel", "bdis")
    ]
    parallel = [boot for boot in further if boot.setting.variant == "parallel"]
    assert [[setting.contexts for setting in boot.settings] for boot in parallel] == [[1, 2], [1, 4, 16]]
    assert [boot.direct is not None for boot in further] == [True, False, False, False, False, False]


def test_headline_fits_its_budget() -> None:
    # On two cores, each of which runs a guest; two kernels and the set-up take the rest of 25 minutes.
    seconds = sum(boot.estimate_s for boot in schedule.boots(scenario.load("headline"))) / 2
    assert seconds <= 13 * 60
