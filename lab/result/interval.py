# SPDX-License-Identifier: GPL-2.0
"""Confidence intervals: of a mean, and of the ratio of rates of two samples, or of pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from scipy import stats

CONFIDENCE = 0.95
#: How far apart two measurements of one kernel are taken to lie where that was not measured.
ASSUMED_NULL = 0.05


class Apart(NamedTuple):
    """How far boots of the same code lie apart.

    Attributes:
        spread: the root of the mean square of the logarithms of their ratios, whose mean is known: 0.
        freedom: degrees of freedom of that, as many as there are ratios; infinite where it is assumed.
    """

    spread: float = math.log(1 + ASSUMED_NULL)
    freedom: float = math.inf

    @classmethod
    def of(cls, nulls: Sequence[float]) -> Apart:
        """Return that of ratios of two boots of the same code; what is assumed without any."""
        if not nulls:
            return cls()
        return cls(math.sqrt(statistics.fmean([math.log(null) ** 2 for null in nulls])), len(nulls))


class Interval(NamedTuple):
    """A ratio, and between what it lies."""

    ratio: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """Say it in words."""
        return f"{self.ratio:.2f}x stock [{self.low:.2f}, {self.high:.2f}]"

    def widened(self, apart: Apart, rounds: int) -> Interval:
        """Add by how much whole runs of one kernel lie apart, of which an interval within runs knows nothing.

        Student's t. Both errors are independent, so their squares add up.

        Args:
            apart: how far they lie apart.
            rounds: of how many pairs of runs this is the interval.
        """
        factor = float(stats.t.ppf((1 + CONFIDENCE) / 2, apart.freedom))
        between = factor * apart.spread / math.sqrt(rounds)
        half = math.hypot(math.log(self.high / self.ratio), between)
        return Interval(self.ratio, self.ratio * math.exp(-half), self.ratio * math.exp(half))


def mean_bounds(rates: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return between what the mean of rates lies, by Student's t; None with less than two."""
    if len(rates) < 2:
        return None
    middle = statistics.fmean(rates)
    half = float(stats.t.ppf((1 + confidence) / 2, len(rates) - 1)) * statistics.stdev(rates)
    return middle - half / len(rates) ** 0.5, middle + half / len(rates) ** 0.5


def ratio_interval(
    ours: Sequence[float], base: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Compare two samples of rates in parts of equal length, of which one may be 0.

    Welch's t on the logarithms of the means, whose errors are those of the means by the delta method: what
    parts write adds up, and means vary by factors, one kernel's more than the other's.

    Args:
        ours: rates.
        base: rates of what they are compared with.
        confidence: how often such an interval covers the truth.

    Returns:
        The ratio of the means and its interval; None where a sample has less than two rates, or nothing but
        rates of 0.
    """
    if min(len(ours), len(base)) < 2 or not min(max(ours), max(base)) > 0:
        return None
    samples = (ours, base)
    means = [statistics.fmean(rates) for rates in samples]
    errors = [
        statistics.variance(rates) / len(rates) / mean**2 for rates, mean in zip(samples, means, strict=True)
    ]
    middle = math.log(means[0] / means[1])
    half = 0.0
    if sum(errors) > 0:
        # Welch and Satterthwaite's degrees of freedom.
        freedom = sum(errors) ** 2 / sum(e**2 / (len(of) - 1) for e, of in zip(errors, samples, strict=True))
        half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(sum(errors))
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def paired_interval(pairs: Sequence[tuple[float, float]], confidence: float = CONFIDENCE) -> Interval | None:
    """Compare rates that were measured together, pair by pair.

    Student's t on the logarithms of the ratios: what both rates of a pair have in common is not in it.

    Args:
        pairs: a rate of ours and that of what it is compared with.
        confidence: how often such an interval covers the truth.

    Returns:
        The geometric mean of the ratios and its interval; None with less than two pairs, or a rate of 0.
    """
    if len(pairs) < 2 or min(map(min, pairs)) <= 0:
        return None
    logs = [math.log(ours / base) for ours, base in pairs]
    middle = statistics.fmean(logs)
    half = float(stats.t.ppf((1 + confidence) / 2, len(logs) - 1)) * statistics.stdev(logs) / len(logs) ** 0.5
    return Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
