# SPDX-License-Identifier: GPL-2.0
"""The plots exist, and those of settings side by side show what they should."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lab.experiment.measure import Spread
from lab.result import one_round, plots, results
from lab.result.interval import mean_bounds
from lab.result.look import STOCK_COLOUR
from lab.result.one_round import Ran
from lab.result.results import Cell
from tests import samples

CELLS = results.cells("s", samples.result())
BEST = [cell for cell in CELLS if cell.contexts == 2]


def _folder(tmp_path: Path) -> Path:
    samples.write_raw(tmp_path)
    return tmp_path


def test_one_png_of_each_kind(tmp_path: Path) -> None:
    made = plots.draw(_folder(tmp_path), CELLS)
    assert [path.name for path in made] == [
        "throughput-nolat.png",
        "latency-nolat.png",
        "dirty-nolat.png",
        "flushers-nolat.png",
        "latencies-nolat.png",
    ]
    for path in made:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_what_needs_raw_data_that_is_gone_is_left_out(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "raw" / "parallel" / "raw.json").unlink()
    (folder / "raw" / "stock" / "limit-128.fio.json").unlink()
    names = [path.name.split("-")[0] for path in plots.draw(folder, CELLS)]
    assert names == ["throughput", "latency", "dirty", "flushers"]
    shutil.rmtree(folder / "raw")
    assert [path.name.split("-")[0] for path in plots.draw(folder, CELLS)] == names[:2]


def test_extents_are_drawn_where_settings_differ_in_them(tmp_path: Path) -> None:
    scattered = [
        cell.model_copy(update={"extents": Spread(median=9, min=7, max=12)}) if cell.contexts == 2 else cell
        for cell in CELLS
    ]
    assert not plots.differ_in_extents(CELLS)
    assert "extents-nolat.png" in [path.name for path in plots.draw(tmp_path, scattered)]
    [axes] = plots.extents("nolat", scattered, BEST).axes
    assert [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)] == [1, 1, 9]


def test_throughput_has_a_bar_per_setting_and_the_bounds_as_lines() -> None:
    figure = plots.throughput("nolat", CELLS, BEST)
    [axes] = figure.axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_height() for bar in bars] == [110, 95, 210]
    assert to_hex(bars[0].get_facecolor()) == STOCK_COLOUR
    [legend] = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    bounds = {"separate BDIs (bound)", "direct I/O (bound)"}
    assert {*labels} == {"stock", "1 context (null)", "best setting", *bounds}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["stock", "1 context", "2 contexts"]


def test_best_setting_that_is_drawn_is_the_one_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Sequence[Cell]] = []

    def dirty(device: str, ran: Sequence[tuple[Cell, Ran]], best: Sequence[Cell]) -> Figure:
        drawn.append(best)
        return plt.figure()

    monkeypatch.setattr(one_round, "dirty", dirty)
    plots.draw(_folder(tmp_path), CELLS)
    assert drawn == [BEST]


def _whiskers(figure: Figure) -> list[list[float]]:
    """Return from what to what the whiskers of the bars reach."""
    [axes] = figure.axes
    bars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    segments = [one.lines[2][0].get_segments() for one in bars]
    return [[float(end[1]) for end in segment] for [segment] in segments]


def test_whiskers_of_throughput_are_the_interval_of_its_mean() -> None:
    def bounds(rates: tuple[tuple[float, ...], ...]) -> list[list[float]]:
        cell = CELLS[0].model_copy(update={"rates": rates, "mib_s": Spread(median=110, min=1, max=999)})
        return _whiskers(plots.throughput("nolat", [cell], []))

    of_parts = mean_bounds([100.0, 110, 120])
    assert of_parts
    assert bounds(((100.0, 110, 120),)) == [pytest.approx(of_parts)]
    # From three rounds on those count, whatever their parts do.
    of_rounds = mean_bounds([100.0, 110, 120])
    assert of_rounds
    assert bounds(((50.0, 150), (60, 160), (70, 170))) == [pytest.approx(of_rounds)]
    assert bounds(()) == []


def test_names_of_many_settings_are_all_on_the_picture_and_do_not_overlap() -> None:
    many = [
        one
        for contexts in range(1, 14)
        for one in samples.measured("parallel", contexts, 128, [100.0 * contexts], affinity="least-loaded")
    ]
    figure = plots.throughput("nolat", results.cells("s", many), [])
    figure.draw_without_rendering()
    names = [label for label in figure.axes[0].get_xticklabels() if label.get_text()]
    assert len(names) == 13
    boxes = [label.get_window_extent() for label in names]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    assert min(box.y0 for box in boxes) >= 0


def test_shape_has_a_line_per_curve_and_dashes_what_was_published() -> None:
    figure = plots.shape("T2", {"published": [(1, 1.0), (4, 2.9)], "measured, fs": [(1, 1.0), (4, 3.5)]})
    [axes] = figure.axes
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    points = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
    assert points == [[[1, 1.0], [4, 2.9]], [[1, 1.0], [4, 3.5]]]
