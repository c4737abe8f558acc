# SPDX-License-Identifier: GPL-2.0
"""The plots exist, and show what they should."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from lab.result import plots, results
from tests import samples

CELLS = results.cells("s", samples.result())


def _folder(tmp_path: Path) -> Path:
    for variant in ("stock", "parallel"):
        where = tmp_path / "raw" / variant
        where.mkdir(parents=True)
        (where / "raw.json").write_text(samples.raw(samples.run()).model_dump_json())
    return tmp_path


def test_one_png_of_each_kind(tmp_path: Path) -> None:
    made = plots.draw(_folder(tmp_path), CELLS)
    assert [path.name for path in made] == ["throughput-nolat.png", "latency-nolat.png", "dirty-nolat.png"]
    for path in made:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_throughput_has_a_bar_per_setting_and_the_bounds_as_lines() -> None:
    figure = plots.throughput("nolat", CELLS)
    [axes] = figure.axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_height() for bar in bars] == [110, 95, 210]
    assert to_hex(bars[0].get_facecolor()) == plots.STOCK_COLOUR
    [legend] = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert set(labels) == {"stock", "1 context", "2 contexts", "separate BDIs (bound)", "direct I/O (bound)"}


def test_shape_has_a_line_per_curve_and_dashes_what_was_published() -> None:
    figure = plots.shape("T2", {"published": [(1, 1.0), (4, 2.9)], "measured, fs": [(1, 1.0), (4, 3.5)]})
    [axes] = figure.axes
    assert [line.get_linestyle() for line in axes.lines] == ["--", "-"]
    points = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
    assert points == [[[1, 1.0], [4, 2.9]], [[1, 1.0], [4, 3.5]]]


def test_dirty_series_ends_with_fio(tmp_path: Path) -> None:
    times, mib = plots.dirty_series(_folder(tmp_path) / "raw" / "stock" / "limit-128.fio.json")
    assert times[-1] == 8.0
    assert (mib[0], mib[-1]) == (0, 110)
