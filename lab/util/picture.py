# SPDX-License-Identifier: GPL-2.0
"""Save a figure as a picture that is small enough for git and a self-contained page."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from PIL import Image

DPI = 120
#: A palette of so many takes a third of the bytes, and lines, bars and maps do not need more.
COLOURS = 256


def save(path: Path, figure: Figure) -> Path:
    """Write a figure as PNG, close it and return the path."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format="png")
    plt.close(figure)
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return path
