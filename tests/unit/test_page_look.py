# SPDX-License-Identifier: GPL-2.0
"""The page of a result in a browser: it fits the window, its text can be read, its pictures are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from lab.experiment.measure import Spread
from lab.profile import flamegraph
from lab.result import page, plots, results
from tests import browser, samples

# Of text on its background, as the guidelines for accessible pages ask.
CONTRAST = 4.5
# A picture of fewer pixels, of the 1200 that it is drawn with, has letters that nobody can read.
READABLE_WIDTH = 700
# Share of a dark page that text, lines and bars may take; each of its pictures takes more.
LIGHT_SHARE = 0.1
FRAMES = [([("fio", "user"), ("write", "kernel")], 3.0), ([("fio", "user"), ("lock", "spinning")], 1.0)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a result with all that a page can have."""
    folder = tmp_path_factory.mktemp("result")
    runs = [
        one
        for fs in ("xfs", "ext4", "f2fs")
        for one in (
            *samples.measured("stock", 1, 128, [100, 101, 99], fs=fs),
            *samples.measured("parallel", 1, 128, [99, 100, 101], fs=fs),
            *samples.measured("parallel", 8, 128, [290, 310, 300], fs=fs),
            *samples.measured("bdis", None, 128, [320, 310, 315], fs=fs),
        )
    ]
    cells = results.cells("s", runs)
    meta = {
        "date": "2026-01-01",
        "kernels": {"parallel": {"version": "7.3.4", "identity": "5ca1ab1e" * 8}},
        "notes": ["a note of the run"],
        "scenario": samples.small_scenario(title="4k overwrites by a job on each CPU").model_dump(
            mode="json"
        ),
    }
    cells = [
        cell.model_copy(update={"extents": Spread(median=9, min=7, max=12)}) if cell.contexts == 8 else cell
        for cell in cells
    ]
    results.write(folder, cells, meta)
    samples.write_raw(folder)
    for variant, writers in (("stock", 8.0), ("parallel", 0.5)):
        run = folder / "raw" / variant / "limit-128"
        run.mkdir()
        (run / "profile.svg").write_text(flamegraph.draw(flamegraph.tree(FRAMES), "On a CPU", "ms"))
        (run / "profile.json").write_text(samples.profile([0, writers, writers / 2]).model_dump_json())
    plots.draw(folder, cells)
    # The result has one number of CPUs.
    kinds = {path.name.partition("-")[0] for path in folder.glob("*.png")}
    assert kinds == {*page.PLOTS} - {"scaling"}
    return page.write(folder)


def luminance(colour: str) -> float:
    """Return the relative luminance of ``rgb(...)``, from 0 to 1, as WCAG 2 defines it."""
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_page_fits_and_can_be_read(written: Path, tmp_path: Path, width: int, scheme: str) -> None:
    screenshot = tmp_path / f"{width}-{scheme}.png"
    seen = browser.look(written, screenshot, width, scheme)
    assert seen.width == width
    assert seen.wide == []
    assert seen.scroll_width <= width
    assert seen.broken == 0
    dark, light = sorted([luminance(seen.text), luminance(seen.back)])
    assert (light + 0.05) / (dark + 0.05) > CONTRAST
    assert (luminance(seen.text) > luminance(seen.back)) == (scheme == "dark")
    assert min(seen.pictures) >= READABLE_WIDTH
    with Image.open(screenshot) as image:
        shades = image.convert("L").histogram()
    assert (sum(shades[200:]) < LIGHT_SHARE * sum(shades)) == (scheme == "dark")


@pytest.mark.parametrize(("width", "are_beside"), [(1280, False), (2560, True)])
def test_stock_and_the_best_are_side_by_side_where_there_is_room(
    written: Path, tmp_path: Path, width: int, are_beside: bool
) -> None:
    seen = browser.look(written, tmp_path / "page.png", width, "light")
    assert seen.wide == []
    assert seen.scroll_width <= width
    # Three filesystems, a pair each.
    assert len(seen.flames) == 6
    assert [ours == stock for stock, ours in zip(seen.flames[::2], seen.flames[1::2], strict=True)] == (
        [are_beside] * 3
    )
