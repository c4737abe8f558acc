# SPDX-License-Identifier: GPL-2.0
"""Tables over CPUs, of made-up cells."""

from __future__ import annotations

import pytest

from lab.docs import measurements, over_cpus
from tests.unit.test_scaling import cells


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "cells", lambda name: cells())


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_every_setting_is_shown_as_a_multiple_of_stock_with_the_same_cpus() -> None:
    assert rows(over_cpus.multiples_over_cpus("made-up"))[2:] == [
        ["XFS", "stock, MiB/s", "100", "110"],
        ["", "1 context", "0.99 x", "0.99 x"],
        ["", "4 contexts", "-", "3.18 x"],
        ["", "a context for each CPU", "1.80 x", "8.18 x"],
        ["", "separate BDIs (bound)", "1.90 x", "8.64 x"],
    ]


def test_separate_bdis_are_a_bound_with_the_same_cpus_on_the_first_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = cells()[0].mib_s.model_copy(update={"median": 1.0})
    others = [cell.model_copy(update={"device": "another", "mib_s": slow}) for cell in cells()]
    monkeypatch.setattr(measurements, "cells", lambda name: [*cells(), *others])
    found = rows(over_cpus.of_separate_bdis("made-up"))[2:]
    assert found == [["`made-up`", "128 MiB", "XFS", "0.95", "0.95"]]


def test_limits_are_those_of_stock_and_of_a_context_for_each_cpu() -> None:
    found = rows(over_cpus.limits("made-up", "16"))[2:]
    assert [row[:3] for row in found] == [["XFS", "16", "stock"], ["XFS", "16", "16 contexts"]]
    for row in found:
        assert row[3:5] == ["40%", "30%"]


def test_cells_with_less_than_asked_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [
        one.model_copy(update={"mib_s": one.mib_s.model_copy(update={"median": 97.95})})
        if (one.cpus, one.contexts, one.variant) == (2, 1, "parallel")
        else one
        for one in cells()
    ]
    assert rows(over_cpus.losses("scaling-made-up"))[2:] == [["`made-up`", "5 of 5", "-"]]
    monkeypatch.setattr(measurements, "cells", lambda name: slow)
    assert rows(over_cpus.losses("scaling-made-up"))[2:] == [
        ["`made-up`", "4 of 5", "XFS 2 CPUs, 1 context 0.980"],
    ]


def test_gains_are_by_cpus() -> None:
    assert over_cpus.gains("made-up", 128) == {2: "1.8 to 1.8 times", 16: "8.2 to 8.2 times"}
