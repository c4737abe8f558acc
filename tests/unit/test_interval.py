# SPDX-License-Identifier: GPL-2.0
"""The ratio of two samples, or of pairs, and its interval."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from scipy import stats

from lab.result.interval import Apart, Interval, mean_bounds, paired_interval, ratio_interval


def test_it_is_welchs_interval_of_rates_as_shares_of_their_mean() -> None:
    ours, base = [210.0, 190.0, 205.0, 220.0], [100.0, 103.0, 99.0]
    found = ratio_interval(ours, base)
    assert found
    assert found.ratio == pytest.approx(206.25 / 100.66667)
    shares = [[rate / statistics.fmean(rates) for rate in rates] for rates in (ours, base)]
    low, high = stats.ttest_ind(*shares, equal_var=False).confidence_interval(0.95)
    middle = math.log(found.ratio)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((middle + low, middle + high))


def test_a_part_in_which_nothing_was_written_counts() -> None:
    found = ratio_interval([0.0, 200, 220, 180], [100.0, 101, 99, 100])
    assert found
    assert found.ratio == pytest.approx(1.5)
    assert found.low < 1 < found.high


def test_bounds_of_a_mean_are_students() -> None:
    rates = [100.0, 103.0, 99.0, 110.0]
    found = stats.ttest_1samp(rates, 0).confidence_interval(0.95)
    assert mean_bounds(rates) == pytest.approx((found.low, found.high))
    assert mean_bounds(rates[:1]) is None


def test_pairs_are_compared_by_students_t_on_their_logarithms() -> None:
    pairs = [(210.0, 100.0), (95.0, 50.0), (404.0, 200.0)]
    found = paired_interval(pairs)
    assert found
    logs = [math.log(ours / base) for ours, base in pairs]
    low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((low, high))
    assert paired_interval(pairs[:1]) is None
    assert paired_interval([*pairs, (0.0, 100.0)]) is None


def test_it_covers_the_truth_as_often_as_it_says() -> None:
    chance = random.Random(3)
    covered = 0
    for _ in range(2000):
        ours = [chance.lognormvariate(math.log(2), 0.1) for _ in range(4)]
        base = [chance.lognormvariate(0, 0.02) for _ in range(6)]
        found = ratio_interval(ours, base)
        assert found
        covered += found.low <= 2 <= found.high
    assert 0.94 < covered / 2000 < 0.96


def test_a_ratio_without_scatter_is_exact() -> None:
    found = ratio_interval([50.0, 50.0], [100.0, 100.0])
    assert found == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize(("ours", "base"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], []), ([0.0, 0.0], [1.0, 1.0])])
def test_too_few_rates_or_none_at_all_give_no_interval(ours: list[float], base: list[float]) -> None:
    assert ratio_interval(ours, base) is None


def test_how_far_runs_lie_apart_is_assumed_where_nothing_shows_it() -> None:
    found = Interval(2.0, 2.0, 2.0).widened(Apart.of([]), rounds=1)
    half = 1.96 * math.log(1.05)
    assert found == pytest.approx((2.0, 2.0 * math.exp(-half), 2.0 * math.exp(half)), rel=1e-4)


def test_runs_that_lie_apart_widen_an_interval_within_runs() -> None:
    found = Interval(2.0, 2.0 / 1.01, 2.0 * 1.01).widened(Apart.of([1.02, 1 / 1.02]), rounds=2)
    between = float(stats.t.ppf(0.975, 2)) * math.log(1.02) / math.sqrt(2)
    half = math.hypot(math.log(1.01), between)
    assert found == pytest.approx((2.0, 2.0 * math.exp(-half), 2.0 * math.exp(half)))
