# SPDX-License-Identifier: GPL-2.0
"""Pictures: PNG with a palette, and nothing left open."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image

from lab.util import picture


def test_is_a_png_with_a_palette_and_the_figure_is_closed(tmp_path: Path) -> None:
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([0, 1], [0, 1], color="#d94801")
    assert picture.save(tmp_path / "line.png", figure) == tmp_path / "line.png"
    assert not plt.get_fignums()
    with Image.open(tmp_path / "line.png") as image:
        assert (image.format, image.mode, image.size) == ("PNG", "P", (4 * picture.DPI, 3 * picture.DPI))
        # The line has its colour still.
        colours = {colour for _, colour in image.convert("RGB").getcolors(4096) or []}
    assert (0xD9, 0x48, 0x01) in colours
    assert (tmp_path / "line.png").stat().st_size < 6000
