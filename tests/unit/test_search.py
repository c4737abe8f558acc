# SPDX-License-Identifier: GPL-2.0
"""What is measured next of a user's job: what is open, then what else may be set."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from lab.bench.search import JUDGED_ROUNDS, MOST_ROUNDS, Search, first_answer_first, searches
from lab.experiment import schedule
from lab.experiment.schedule import Boot
from lab.experiment.setting import Setting
from lab.result import results, verdict
from lab.result.results import Key, Measured
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


def test_only_the_limit_that_is_open_is_measured_again() -> None:
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1, 2, 4],
        files=None,
        repetitions=1,
        bounds=[],
        limits=[{"mib": mib, "ramp_s": 2, "window_s": 4} for mib in (128, 256)],
    )
    found = Search(first_answer_first(schedule.boots(chosen))).further(verdicts("xfs", OPEN))
    assert names(found) == ["xfs stock", "xfs 4 contexts", "xfs 1 context"]
    assert {limit.mib for boot in found for limit in boot.limits} == {128}


def test_stock_and_the_best_are_profiled_once_where_there_is_virtual_time() -> None:
    def judged(four: list[float]) -> dict[verdict.Group, verdict.Verdict]:
        return {group._replace(machine="smp"): one for group, one in verdicts("xfs", four).items()}

    plan = Search([replace(boot, machine="smp", cpus=2) for boot in boots()])
    first, second = plan.further(judged(OPEN)), plan.further(judged(GAIN))
    assert names([boot for boot in first if boot.is_profiled]) == ["xfs stock", "xfs 4 contexts"]
    assert second
    assert [boot for boot in second if boot.is_profiled] == []
    assert [boot for boot in search().further(verdicts("xfs", GAIN)) if boot.is_profiled] == []


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
    assert names(plan.further(verdicts("xfs", GAIN))) == ["xfs stock", "xfs 4 contexts", "xfs 1 context"]


@pytest.mark.parametrize(("rates", "most"), [(GAIN, JUDGED_ROUNDS), (OPEN, MOST_ROUNDS)])
def test_it_ends_and_a_gain_when_its_costs_have_an_interval(rates: list[float], most: int) -> None:
    plan = search()
    rounds = 1
    while plan.further(verdicts("xfs", rates)):
        rounds += 1
    assert rounds == most


def test_each_group_has_its_rounds() -> None:
    plan = search()
    for _ in range(MOST_ROUNDS):
        plan.further(verdicts("ext4", OPEN))
    assert plan.further(verdicts("ext4", OPEN)) == []
    assert names(plan.further(verdicts("xfs", OPEN)))[0] == "xfs stock"


def test_one_filesystem_is_done_before_the_next_begins() -> None:
    plan = search()
    both = verdicts("xfs", GAIN) | verdicts("ext4", GAIN)
    found = []
    while more := plan.further(both):
        found.append({boot.fs for boot in more})
    assert found == [{"xfs"}] * (JUDGED_ROUNDS - 1) + [{"ext4"}] * (JUDGED_ROUNDS - 1)


def test_the_next_filesystem_takes_places_that_would_be_idle() -> None:
    both = verdicts("xfs", OPEN) | verdicts("ext4", OPEN)
    for places, filesystems in ((3, {"xfs"}), (4, {"xfs", "ext4"})):
        plan = Search(boots(), places=places)
        assert {boot.fs for boot in plan.further(both)} == filesystems


def test_what_a_search_takes_is_known_ahead() -> None:
    found = search().further(verdicts("xfs", GAIN))
    of_xfs, of_ext4 = searches(boots())
    assert of_xfs == found
    assert [boot.fs for boot in of_ext4] == ["ext4"] * len(found)


def test_what_cannot_gain_is_measured_once() -> None:
    plan = Search(boots(), "one file")
    assert plan.further(verdicts("xfs", OPEN)) == []
    assert plan.untried(verdicts("xfs", OPEN))[0].endswith(" were not tried, for one file")


def test_what_was_not_tried_is_said_with_the_reason() -> None:
    plan = search()
    assert plan.untried(verdicts("xfs", GAIN)) == [
        "on xfs at 128 MiB: the kernel's own number, other affinities and more workers were not tried, "
        "for the time was up (--budget gives more)"
    ]
    assert plan.untried(verdicts("ext4", OPEN))[0].endswith("for its verdict is still open")
    plan.further(verdicts("xfs", GAIN))
    assert plan.untried(verdicts("xfs", GAIN)) == []


@pytest.mark.parametrize("fs", ["xfs", "ext4"])
def test_each_round_has_boots_of_its_own(fs: str) -> None:
    plan = search()
    first, second = plan.further(verdicts(fs, OPEN)), plan.further(verdicts(fs, OPEN))
    assert {boot.folder for boot in first}.isdisjoint(boot.folder for boot in second)


def searched(chance: random.Random, part: float, boot: float, gains: dict[Setting, float]) -> verdict.Verdict:
    """Search by rates of chance to the end, and return the last verdict.

    Args:
        chance: where rates come from.
        part: how far the parts of a window lie apart, and ``boot`` how far boots do, as logarithms.
        boot: see there.
        gains: by how much a setting is better than stock, where it is.
    """
    chosen = samples.small_scenario(
        filesystems=["xfs"],
        contexts=[1, 2, 4, 8],
        repetitions=1,
        bounds=[],
        limits=[{"mib": 128, "ramp_s": 2, "window_s": 4}],
    )
    plan = Search(first_answer_first(schedule.boots(chosen)))
    runs: list[Measured] = []
    more = [*plan.boots]
    while more:
        for one in more:
            # Settings that share a boot share its chance.
            middle = chance.gauss(math.log(100), boot)
            for setting in one.settings:
                rates = [chance.lognormvariate(middle, part) * (1 + gains.get(setting, 0)) for _ in range(6)]
                figures = samples.figures(sum(rates) / len(rates)).model_copy(update={"parts_mib_s": rates})
                key = Key(**dict(setting), device=one.device, fs=one.fs, dirty_limit_mib=128)
                runs.append(Measured(key=key, round=one.round, raw="", figures=figures))
        judged = verdict.verdicts(results.cells("s", runs))
        more = plan.further(judged)
    return next(iter(judged.values()))


# Boots in virtual time are nearly alike, those of another machine lie some per cent apart.
CHANCE = [(0.01, 0), (0.05, 0), (0.15, 0), (0.01, 0.02), (0.05, 0.05)]


@pytest.mark.parametrize(("part", "boot"), [*CHANCE, (0.5, 0)])
def test_looking_again_and_again_finds_no_gain_of_stock_over_itself(part: float, boot: float) -> None:
    chance = random.Random(7)
    found = [searched(chance, part, boot, {}) for _ in range(200)]
    assert sum(one.kind in ("gain", "loss") for one in found) <= 0.05 * len(found)
    assert not any(one.line for one in found if verdict.is_null(one.cell))


@pytest.mark.parametrize(("part", "boot"), CHANCE[:2] + CHANCE[3:4])
def test_looking_again_finds_a_known_tenth(part: float, boot: float) -> None:
    chance = random.Random(7)
    many = {Setting(variant="parallel", contexts=contexts): 0.1 for contexts in (4, 8)}
    found = [searched(chance, part, boot, many) for _ in range(100)]
    assert sum(one.kind == "gain" for one in found) >= 95
