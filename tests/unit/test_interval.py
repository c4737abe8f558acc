# SPDX-License-Identifier: GPL-2.0
"""The ratio of two samples and its interval: Welch's, on the logarithms."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from lab.result.interval import ratio_interval


def test_it_is_welchs_interval_of_the_logarithms() -> None:
    ours, base = [210.0, 190.0, 205.0, 220.0], [100.0, 103.0, 99.0]
    found = ratio_interval(ours, base)
    assert found
    logs = [[math.log(rate) for rate in rates] for rates in (ours, base)]
    low, high = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((low, high))


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


@pytest.mark.parametrize(("ours", "base"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], []), ([0.0, 1.0], [1.0, 1.0])])
def test_too_few_rates_or_none_at_all_give_no_interval(ours: list[float], base: list[float]) -> None:
    assert ratio_interval(ours, base) is None
