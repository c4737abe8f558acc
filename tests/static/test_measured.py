# SPDX-License-Identifier: GPL-2.0
"""What is kept in measurements/, and what pages show of it."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lab.docs import derived, measurements, over_cpus, pages, pictures
from lab.docs.measurements import MEASUREMENTS, MOST_BYTES
from lab.experiment import scenario
from lab.proof import mutants
from lab.result import verdict
from lab.result.interval import Apart
from lab.result.provenance import META, TABLE
from lab.result.results import Cell
from lab.util.paths import REPO

PAGES = pages.pages()


@pytest.mark.parametrize("name", measurements.names())
def test_table_is_made_of_the_figures_beside_it(name: str) -> None:
    made = measurements.table(name)
    if made is not None:
        assert (MEASUREMENTS / name / TABLE).read_text(encoding="utf-8") == made


def test_every_measurement_says_what_it_was_made_with() -> None:
    folders = sorted(path.name for path in MEASUREMENTS.iterdir())
    assert measurements.names() == folders


@pytest.mark.parametrize("name", measurements.names())
def test_measurement_names_its_change_or_a_commit(name: str) -> None:
    about = json.loads((MEASUREMENTS / name / META).read_text(encoding="utf-8"))
    assert about["change"] or about["recorded_in"]


def test_the_headline_is_of_its_scenario_as_it_stands() -> None:
    measured = scenario.Scenario.model_validate(measurements.meta("headline").scenario)
    assert measured == scenario.load("headline")


def test_in_real_runs_too_stock_gains_nothing_over_itself() -> None:
    """One context runs stock's code: were it any other setting, no result may say that it gains or loses.

    It is judged by the smallest margin that there is, and as if boots did not lie apart.
    """
    found: Counter[verdict.Kind] = Counter()
    for name in measurements.names():
        groups: dict[verdict.Group, list[Cell]] = {}
        for cell in measurements.cells(name) if measurements.meta(name).view == "cells" else []:
            groups.setdefault(verdict.Group.of(cell), []).append(cell)
        for cells in groups.values():
            stock = [cell for cell in cells if cell.variant == "stock"]
            one = [cell.model_copy(update={"contexts": 2}) for cell in cells if verdict.is_null(cell)]
            judged = verdict.verdict([*stock, *one], apart=Apart.of([1.0])) if stock and one else None
            # Without an interval nothing can be told.
            if judged and judged.interval:
                found[replace(judged, null=0.0).kind] += 1
    assert found.total() >= 30
    assert found["gain"] + found["loss"] <= 0.05 * found.total()
    assert found["same"] >= found.total() / 2


def test_every_published_number_is_compared_in_what_is_kept() -> None:
    claimed = {
        (name, row.id, row.claim, row.fs)
        for name in scenario.names()
        for row in scenario.load(name).published
    }
    kept = {
        (row.scenario, row.id, row.claim, row.fs)
        for row in derived.published_summary("published").comparisons
    }
    assert claimed
    assert claimed == kept


def test_nothing_too_large_is_kept() -> None:
    sizes = {path: path.stat().st_size for path in MEASUREMENTS.rglob("*") if path.is_file()}
    assert [path for path, size in sizes.items() if size > MOST_BYTES] == []


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_picture_is_drawn_of_the_figures_and_shown_on_a_page(name: str) -> None:
    assert (MEASUREMENTS / name).read_bytes() == pictures.drawn(name)
    shown = [page.name for page in PAGES if f"measurements/{name})" in page.read_text(encoding="utf-8")]
    assert shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_shows_what_was_measured_and_of_which_kernel(page: Path) -> None:
    """Where this fails because the kernel has changed, ./pwb keep makes the page say so."""
    assert page.read_text(encoding="utf-8") == pages.renewed(page)


@pytest.mark.parametrize(
    ("page", "name", "cpus"),
    [
        *itertools.product(
            ["README.md", "docs/contexts.md", "docs/scaling.md"], ["scaling-overwrite"], [16, 32]
        ),
        ("README.md", "headline-full", 32),
    ],
)
def test_gain_with_many_cpus_is_that_of_the_figures(page: str, name: str, cpus: int) -> None:
    words = " ".join((REPO / page).read_text(encoding="utf-8").split())
    assert over_cpus.gains(name, 128)[cpus].removesuffix(" times") in words


def readme() -> str:
    return " ".join((REPO / "README.md").read_text(encoding="utf-8").split())


def test_readme_says_how_close_contexts_come_to_separate_bdis() -> None:
    eight = [
        cell for cell in measurements.cells("headline") if (cell.variant, cell.contexts) == ("parallel", 8)
    ]
    least = min(cell.ratio_to_bdis or 0 for cell in eight)
    found = re.search(r"come to (0\.\d\d) of separate BDIs or more", readme())
    assert found
    assert least - 0.05 < float(found[1]) <= least


def test_readme_says_what_write_streams_bring_jobs_that_append() -> None:
    [best] = [cell for cell in measurements.cells("t5") if cell.placement == "stream"]
    assert f"come to {best.ratio_to_stock:.0f} times as much" in readme()


def test_readme_says_what_writers_gain_beside_readers() -> None:
    gains = [
        cell.ratio_to_stock or 0
        for cell in measurements.cells("auto-reads")
        if (cell.device, cell.variant, cell.contexts) == ("nvme", "parallel", None)
    ]
    said = f"writes come to {min(gains):.1f} to {max(gains):.1f} times stock beside 4 jobs that read"
    assert said in readme()


def test_proofs_say_how_many_mutants_were_caught() -> None:
    found = json.loads((MEASUREMENTS / "mutants" / "summary.json").read_text(encoding="utf-8"))
    assert all(one["verdict"] == "caught" for one in found)
    words = (REPO / "docs" / "proofs.md").read_text(encoding="utf-8")
    assert f"**Of {len(found)} mutants each was caught**" in words
    assert f"| {len(found)} | each caught |" in words
    not_run = sorted(set(mutants.names()) - {one["name"] for one in found})
    if not_run:
        # Of all that there are the page says nothing, so this is no fault of it.
        warnings.warn(f"mutants without an outcome in measurements: {', '.join(not_run)}", stacklevel=1)
