# SPDX-License-Identifier: GPL-2.0
"""What is measured next of a user's job: what is open, then what else may be set."""

from __future__ import annotations

import pytest

from lab.experiment import schedule
from lab.experiment.schedule import Boot
from lab.experiment.search import MOST_ROUNDS, Search, first_answer_first
from lab.result import results, verdict
from tests import samples


def boots() -> list[Boot]:
    chosen = samples.small_scenario(
        filesystems=["xfs", "ext4"],
        contexts=[1, 2, 4],
        files=None,
        repetitions=1,
        bounds=["bdis", "direct"],
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    return first_answer_first(schedule.boots(chosen))


def search() -> Search:
    return Search(boots())


def verdicts(fs: str, four: list[float]) -> dict[verdict.Group, verdict.Verdict]:
    """Judge rounds in which 4 contexts write so fast, and stock 100 MiB/s."""
    runs = [
        *samples.measured("stock", 1, 128, [99.0, 100, 101], fs=fs),
        *samples.measured("parallel", 1, 128, [99.0, 100, 101], fs=fs),
        *samples.measured("parallel", 2, 128, [50.0], fs=fs),
        *samples.measured("parallel", 4, 128, four, fs=fs),
    ]
    return verdict.verdicts(results.cells("s", runs))


def names(found: list[Boot]) -> list[str]:
    return [f"{boot.fs} {boot.setting.label}" for boot in found]


GAIN = [199.0, 200, 201]
OPEN = [150.0, 60, 160]


def test_both_ends_come_first_and_the_bounds_last() -> None:
    assert names(boots()) == [
        "xfs stock",
        "xfs 4 contexts",
        "ext4 stock",
        "ext4 4 contexts",
        "xfs 1 context",
        "xfs 2 contexts",
        "ext4 1 context",
        "ext4 2 contexts",
        "xfs separate BDIs",
        "ext4 separate BDIs",
    ]


def test_what_is_open_gets_another_round_of_itself_stock_and_the_null() -> None:
    found = search().further(verdicts("ext4", OPEN))
    assert names(found) == ["ext4 stock", "ext4 4 contexts", "ext4 1 context"]
    assert {boot.round for boot in found} == {2}
    assert [boot.direct for boot in found] == [None] * 3


def test_what_is_decided_gets_what_else_may_be_set_and_that_once() -> None:
    plan = search()
    found = plan.further(verdicts("xfs", GAIN))
    assert names(found) == [
        "xfs stock",
        "xfs 4 contexts",
        "xfs 1 context",
        "xfs auto contexts",
        "xfs 4 contexts, ino",
        "xfs 4 contexts, rotor",
        "xfs 4 contexts, least-loaded",
        "xfs 4 contexts, 2 workers",
        "xfs 4 contexts, 8 workers",
    ]
    assert plan.further(verdicts("xfs", GAIN)) == []


def test_it_ends() -> None:
    plan = search()
    rounds = 1
    while plan.further(verdicts("xfs", OPEN)):
        rounds += 1
    assert rounds == MOST_ROUNDS


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_each_round_has_boots_of_its_own(fs: str) -> None:
    plan = search()
    first, second = plan.further(verdicts(fs, OPEN)), plan.further(verdicts(fs, OPEN))
    assert {boot.folder for boot in first}.isdisjoint(boot.folder for boot in second)
