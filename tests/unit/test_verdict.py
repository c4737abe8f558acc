# SPDX-License-Identifier: GPL-2.0
"""What a result says of contexts: gains, losses, and what the null of the same result explains."""

from __future__ import annotations

import random

import pytest

from lab.result import results, verdict
from lab.result.results import Cell
from tests import samples

ROUNDS = 3


def cells(**rates: list[float]) -> list[Cell]:
    """Return the cells of stock and of numbers of contexts (``c4``), with a rate for each round."""
    stock = samples.measured("stock", 1, 128, rates.pop("stock", [100.0] * ROUNDS))
    ours = [samples.measured("parallel", int(name[1:]), 128, of) for name, of in rates.items()]
    return results.cells("s", [*stock, *(one for group in ours for one in group)])


def judged(**rates: list[float]) -> verdict.Verdict:
    found = verdict.verdict(cells(**rates))
    assert found
    return found


def test_a_gain_beyond_the_null_is_one() -> None:
    found = judged(c1=[99, 100, 101], c4=[109, 110, 111])
    assert found.gains
    assert found.text == "best at 4 contexts, 1.10x stock [1.09, 1.11], null ±1.0%"


def test_what_the_null_explains_is_neither_gain_nor_loss() -> None:
    for rate in (112.0, 90.0):
        found = judged(c1=[88, 100, 113], c4=[rate] * ROUNDS)
        assert not found.gains
        assert not found.loses
        assert "as stock within the null" in found.text


def test_a_loss_is_said() -> None:
    found = judged(c1=[100] * ROUNDS, c4=[60] * ROUNDS)
    assert found.loses
    assert found.text == "no gain: at best 0.60x stock [0.60, 0.60], with 4 contexts, null ±0.0%"


def test_one_part_that_is_no_better_than_stock_is_no_gain() -> None:
    assert not judged(c1=[100] * ROUNDS, c4=[130, 120, 99]).gains


def test_one_context_is_never_recommended() -> None:
    assert verdict.verdict(cells(c1=[200] * ROUNDS)) is None
    assert judged(c1=[200] * ROUNDS, c2=[150] * ROUNDS).cell.contexts == 2


def test_fewest_contexts_that_are_as_good() -> None:
    assert judged(c1=[98, 100, 102], c4=[197] * ROUNDS, c8=[200] * ROUNDS).cell.contexts == 4
    assert judged(c1=[99, 100, 101], c4=[190] * ROUNDS, c8=[200] * ROUNDS).cell.contexts == 8


def test_without_a_null_one_is_assumed() -> None:
    assert judged(c4=[104] * ROUNDS).text.endswith("null ±5.0% assumed")
    assert not judged(c4=[104] * ROUNDS).gains
    assert judged(c4=[106] * ROUNDS).gains


def test_each_group_has_its_own_verdict() -> None:
    other = samples.measured("parallel", 4, 128, [50.0], fs="ext4")
    found = verdict.verdicts([*cells(c1=[100], c4=[200], stock=[100]), *results.cells("s", other)])
    assert [(group.fs, one.gains) for group, one in found.items()] == [("xfs", True), ("ext4", False)]
    assert [one.text for one in found.values()][1] == "best at 4 contexts"


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.15])
def test_stock_against_stock_gains_nothing(spread: float) -> None:
    chance = random.Random(7)

    def rates() -> list[float]:
        return [chance.gauss(100, 100 * spread) for _ in range(ROUNDS)]

    found = [judged(stock=rates(), c1=rates(), c4=rates()) for _ in range(400)]
    assert sum(one.gains or one.loses for one in found) <= 0.05 * len(found)


def test_a_known_tenth_is_found() -> None:
    chance = random.Random(7)
    found = [
        judged(
            stock=[chance.gauss(100, 1) for _ in range(ROUNDS)],
            c1=[chance.gauss(100, 1) for _ in range(ROUNDS)],
            c4=[chance.gauss(110, 1) for _ in range(ROUNDS)],
        )
        for _ in range(100)
    ]
    assert sum(one.gains for one in found) >= 95
