# SPDX-License-Identifier: GPL-2.0
"""Flame graphs as SVG: one rectangle for each function by its callers, as wide as its time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape

# What a frame may be, and its colour; told apart without colour vision by lightness too.
COLOURS = {
    "group": "#d9d9d9",
    "kernel": "#f2b56b",
    "user": "#8cc0e8",
    "spinning": "#c8373b",
    "waiting": "#9a86c0",
}
_LIGHT_TEXT = {"spinning"}
# Name and kind of each frame, outermost first, and their time.
Drawn = tuple[list[tuple[str, str]], float]
WIDTH, ROW, FONT = 1200.0, 18.0, 11.0
_LETTER = 6.7
_MARGIN = 10.0
_TITLE = 44.0
# Narrower ones are left out: nobody sees them, and they make most of a file.
NARROWEST = 0.4


@dataclass
class Frame:
    """A function in one chain of callers.

    Attributes:
        value: time of it and of all that it calls.
        children: what it calls, by name and kind.
    """

    value: float = 0.0
    children: dict[tuple[str, str], Frame] = field(default_factory=dict)


def tree(stacks: Iterable[Drawn]) -> Frame:
    """Put stacks together.

    Args:
        stacks: the frames; a kind is a key of :data:`COLOURS`.

    Returns:
        The root, which has all time.
    """
    root = Frame()
    for frames, value in stacks:
        at = root
        at.value += value
        for frame in frames:
            at = at.children.setdefault(frame, Frame())
            at.value += value
    return root


def draw(root: Frame, title: str, unit: str) -> str:
    """Return the SVG.

    Args:
        root: from :func:`tree`.
        title: of the picture.
        unit: of the values.
    """
    kinds: set[str] = set()
    boxes: list[str] = []
    rows = 1
    for level, x, width, name, kind, value in _boxes(root):
        rows = max(rows, level + 1)
        kinds.add(kind)
        told = f"{name}: {value:.3g} {unit}, {value / root.value:.1%}"
        boxes.append(_box((x, -level * ROW), width, kind, name, told))
    height = _TITLE + rows * ROW + _MARGIN
    shown = [kind for kind in COLOURS if kind in kinds and kind != "group"]
    legend = "".join(
        f'<rect x="{_MARGIN + number * 90:.0f}" y="26" width="11" height="11" fill="{COLOURS[kind]}"/>'
        f'<text x="{_MARGIN + number * 90 + 15:.0f}" y="35.5">{kind}</text>'
        for number, kind in enumerate(shown)
    )
    full = WIDTH + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0f} {height:.0f}" width="{full:.0f}" '
        f'font-family="monospace" font-size="{FONT:.0f}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{_MARGIN:.0f}" y="18" font-size="14">{escape(title)}</text>\n{legend}\n'
        # Level 0 is the lowest row.
        f'<g transform="translate({_MARGIN:.0f} {_TITLE + (rows - 1) * ROW:.0f})">\n'
        + "\n".join(boxes)
        + "\n</g>\n</svg>\n"
    )


def _boxes(root: Frame) -> Iterator[tuple[int, float, float, str, str, float]]:
    """Yield level, place, width, name, kind and time of each frame that is wide enough."""
    if not root.value:
        return
    scale = WIDTH / root.value
    waiting = [(0, 0.0, "all", "group", root)]
    while waiting:
        level, x, name, kind, frame = waiting.pop()
        yield level, x, frame.value * scale, name, kind, frame.value
        for (child_name, child_kind), child in sorted(frame.children.items()):
            width = child.value * scale
            if width >= NARROWEST:
                waiting.append((level + 1, x, child_name, child_kind, child))
            x += width


def _box(place: tuple[float, float], width: float, kind: str, name: str, told: str) -> str:
    x, y = place
    letters = int((width - 6) / _LETTER)
    shown = name if len(name) <= letters else name[: letters - 1] + "…" if letters >= 4 else ""
    colour = ' fill="white"' if kind in _LIGHT_TEXT else ""
    text = f'<text x="{x + 3:.1f}" y="{y + 13:.1f}"{colour}>{escape(shown)}</text>' if shown else ""
    return (
        f"<g><title>{escape(told)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{ROW:.0f}" fill="{COLOURS[kind]}" '
        f'stroke="white" stroke-width="0.5"/>{text}</g>'
    )
