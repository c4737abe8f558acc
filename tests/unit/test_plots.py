# SPDX-License-Identifier: GPL-2.0
"""The plots exist, and show what they should."""

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
from lab.result import plots, results
from lab.result.interval import mean_bounds
from lab.result.results import Cell
from tests import samples

CELLS = results.cells("s", samples.result())
BEST = [cell for cell in CELLS if cell.contexts == 2]
#: What lines are of, from the lowest to the one that is drawn over all others.
LEVELS = ["other settings", "stock", "1 context (null)", "best setting"]


def _folder(tmp_path: Path) -> Path:
    samples.write_raw(tmp_path)
    return tmp_path


def _ran(tmp_path: Path) -> plots.Ran:
    found = plots.Ran.of(CELLS[0], _folder(tmp_path))
    assert found
    return found


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


def test_pauses_are_drawn_of_profiled_runs(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    run = folder / "raw" / "stock" / "limit-128"
    run.mkdir()
    (run / "profile.json").write_text(samples.profile([]).model_dump_json())
    assert "pauses-nolat.png" not in [path.name for path in plots.draw(folder, CELLS)]
    (run / "profile.json").write_text(samples.profile([0, 0]).model_dump_json())
    assert "pauses-nolat.png" not in [path.name for path in plots.draw(folder, CELLS)]
    paused = samples.profile([0, 8])
    (run / "profile.json").write_text(paused.model_dump_json())
    assert "pauses-nolat.png" in [path.name for path in plots.draw(folder, CELLS)]
    stock = next(cell for cell in CELLS if cell.variant == "stock")
    [axes] = plots.pauses("nolat", [(stock, paused)], BEST).axes
    [line] = axes.get_lines()
    assert np.asarray(line.get_xdata()).tolist() == [1, 3]
    assert np.asarray(line.get_ydata()).tolist() == [0, 8]


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
    assert to_hex(bars[0].get_facecolor()) == plots.STOCK_COLOUR
    [legend] = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    bounds = {"separate BDIs (bound)", "direct I/O (bound)"}
    assert {*labels} == {"stock", "1 context (null)", "best setting", *bounds}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["stock", "1 context", "2 contexts"]


def test_what_a_verdict_is_about_is_drawn_over_the_rest(tmp_path: Path) -> None:
    measured = [*samples.result(), *samples.measured("parallel", 4, 128, [201, 221])]
    cells = [cell for cell in results.cells("s", measured) if plots.has_writeback(cell)]
    ran = _ran(tmp_path)
    figure = plots.dirty("nolat", [(cell, ran) for cell in cells], BEST)
    [axes] = figure.axes
    assert axes.get_title().endswith("\nbest: 2 contexts")
    drawn = {line.get_label(): line for line in axes.get_lines() if line.get_label() in LEVELS}
    assert sorted(drawn, key=lambda name: drawn[name].get_zorder()) == LEVELS
    assert len({line.get_color() for line in drawn.values()}) == len(LEVELS)
    others, stock, null, _ = (drawn[name].get_linewidth() for name in LEVELS)
    assert others < null < stock
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {*LEVELS}


def test_best_setting_that_is_drawn_is_the_one_that_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Sequence[Cell]] = []

    def dirty(device: str, ran: Sequence[tuple[Cell, plots.Ran]], best: Sequence[Cell]) -> Figure:
        drawn.append(best)
        return plt.figure()

    monkeypatch.setattr(plots, "dirty", dirty)
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


def test_dirty_series_ends_with_fio(tmp_path: Path) -> None:
    times, mib = plots.dirty_series(_ran(tmp_path))
    assert times[-1] == 8.0
    assert (mib[0], mib[-1]) == (0, 110)


def test_flushers_are_shown_over_time(tmp_path: Path) -> None:
    # One that starts after a second and is on a CPU for half of the time, in pieces of a sample each.
    times, cpus = plots.flusher_series(_ran(tmp_path))
    assert times[0] == samples.STEP_S
    assert times[-1] == 8.0
    assert cpus == pytest.approx([0, 0, *[0.5] * 14])


def test_latencies_are_the_share_that_takes_so_long_or_longer(tmp_path: Path) -> None:
    us, shares = plots.latency_series(_ran(tmp_path))
    # Of 1,145,066 writes one is the slowest.
    assert (us[0], shares[0]) == (0.45, 1.0)
    assert (us[-1], shares[-1]) == (1417.216, 1 / 1145066)
    assert shares == sorted(shares, reverse=True)
