# SPDX-License-Identifier: GPL-2.0
"""The plots of what went on in one round show what they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from lab.profile.summary import Profile
from lab.result import one_round, results
from lab.result.look import has_writeback
from lab.result.one_round import Ran
from lab.result.results import Cell
from tests import samples

CELLS = results.cells("s", samples.result())
BEST = [cell for cell in CELLS if cell.contexts == 2]
#: What lines are of, from the lowest to the one that is drawn over all others.
LEVELS = ["other settings", "stock", "1 context (null)", "best setting"]


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    yield
    plt.close("all")


def _ran(tmp_path: Path) -> Ran:
    samples.write_raw(tmp_path)
    found = Ran.of(CELLS[0], tmp_path)
    assert found
    return found


def _drawn(folder: Path) -> list[str]:
    return [path.name for path in one_round.draw(folder, ("nolat", "nolat"), CELLS, BEST)]


def test_pauses_are_drawn_of_profiled_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = one_round.pauses
    samples.write_raw(tmp_path)
    run = tmp_path / "raw" / "stock" / "limit-128"
    run.mkdir()
    (run / "profile.json").write_text(samples.profile([]).model_dump_json())
    assert "pauses-nolat.png" not in _drawn(tmp_path)
    (run / "profile.json").write_text(samples.profile([0, 0]).model_dump_json())
    assert "pauses-nolat.png" not in _drawn(tmp_path)
    paused = samples.profile([0, 8])
    (run / "profile.json").write_text(paused.model_dump_json())
    assert "pauses-nolat.png" in _drawn(tmp_path)
    # A bound is not throttled by the limit that the others have.
    bound = tmp_path / "raw" / "direct" / "limit-128"
    bound.mkdir(parents=True)
    (bound / "profile.json").write_text(paused.model_dump_json())
    drawn: list[str] = []

    def noted(device: str, profiles: list[tuple[Cell, Profile]], best: Sequence[Cell]) -> Figure:
        drawn.extend(cell.variant for cell, _ in profiles)
        return pauses(device, profiles, best)

    monkeypatch.setattr(one_round, "pauses", noted)
    assert "pauses-nolat.png" in _drawn(tmp_path)
    assert drawn == ["stock"]
    stock = next(cell for cell in CELLS if cell.variant == "stock")
    [axes] = pauses("nolat", [(stock, paused)], BEST).axes
    [line] = axes.get_lines()
    assert np.asarray(line.get_xdata()).tolist() == [1, 3]
    assert np.asarray(line.get_ydata()).tolist() == [0, 8]


def test_what_a_verdict_is_about_is_drawn_over_the_rest(tmp_path: Path) -> None:
    measured = [*samples.result(), *samples.measured("parallel", 4, 128, [201, 221])]
    cells = [cell for cell in results.cells("s", measured) if has_writeback(cell)]
    ran = _ran(tmp_path)
    figure = one_round.dirty("nolat", [(cell, ran) for cell in cells], BEST)
    [axes] = figure.axes
    assert axes.get_title().endswith("\nbest: 2 contexts")
    drawn = {line.get_label(): line for line in axes.get_lines() if line.get_label() in LEVELS}
    assert sorted(drawn, key=lambda name: drawn[name].get_zorder()) == LEVELS
    assert len({line.get_color() for line in drawn.values()}) == len(LEVELS)
    others, stock, null, _ = (drawn[name].get_linewidth() for name in LEVELS)
    assert others < null < stock
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {*LEVELS}


def test_dirty_series_ends_with_fio(tmp_path: Path) -> None:
    times, mib = one_round.dirty_series(_ran(tmp_path))
    assert times[-1] == 8.0
    assert (mib[0], mib[-1]) == (0, 110)


def test_flushers_are_shown_over_time(tmp_path: Path) -> None:
    # One that starts after a second and is on a CPU for half of the time, in pieces of a sample each.
    times, cpus = one_round.flusher_series(_ran(tmp_path))
    assert times[0] == samples.STEP_S
    assert times[-1] == 8.0
    assert cpus == pytest.approx([0, 0, *[0.5] * 14])


def test_latencies_are_the_share_that_takes_so_long_or_longer(tmp_path: Path) -> None:
    us, shares = one_round.latency_series(_ran(tmp_path))
    # Of 1,145,066 writes one is the slowest.
    assert (us[0], shares[0]) == (0.45, 1.0)
    assert (us[-1], shares[-1]) == (1417.216, 1 / 1145066)
    assert shares == sorted(shares, reverse=True)
