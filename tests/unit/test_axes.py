# SPDX-License-Identifier: GPL-2.0
"""Axes: what each applies to, and that a declaration is all that an axis needs."""

from __future__ import annotations

import pytest

from lab.experiment.axes import AXES, Variant
from lab.experiment.published import Pick, Published
from lab.experiment.scenario import Scenario
from lab.experiment.setting import Setting


def test_every_axis_is_one_of_settings_claims_and_scenarios() -> None:
    for kind in (Setting, Pick, Published):
        assert set(AXES) <= set(kind.model_fields)
    assert all(
        hasattr(Scenario, axis.listed) or axis.listed in Scenario.model_fields for axis in AXES.values()
    )


@pytest.mark.parametrize(
    ("name", "variant", "contexts", "applies"),
    [
        ("layout", "stock", 1, True),
        ("ag_mode", "stock", 1, False),
        ("ag_mode", "parallel", 1, True),
        ("affinity", "parallel", 1, False),
        ("affinity", "parallel", None, True),
        ("affinity", "bdis", None, False),
    ],
)
def test_what_an_axis_applies_to(name: str, variant: Variant, contexts: int | None, applies: bool) -> None:
    assert AXES[name].applies(variant, contexts) == applies


def test_values_are_named_and_what_is_as_usual_is_not() -> None:
    chosen = Setting(
        variant="parallel", contexts=2, affinity="ino", workers=1, ag_mode="rotor", placement="base"
    )
    assert chosen.label == "2 contexts, ino, 1 worker, mode rotor, base placement"
    assert chosen.folder == "parallel2-ino-workers1-mode-rotor-base"
    assert chosen.bdi_files == {"nwritebacks": "2", "wb_affinity": "ino", "wb_workers": "1"}
    assert chosen.before_mount == Setting(
        variant="parallel", contexts=None, ag_mode="rotor", placement="base"
    )


def test_values_are_sorted_as_they_are_declared() -> None:
    assert sorted(["generic", "off", "ag-hint"], key=AXES["ag_mode"].rank) == ["off", "ag-hint", "generic"]
    assert sorted([8, None, 2], key=AXES["workers"].rank) == [None, 2, 8]
