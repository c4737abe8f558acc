# SPDX-License-Identifier: GPL-2.0
"""Show published numbers beside measured ones: terminal tables, table.md, summary.json and plots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.table import Table

from lab.experiment import scenario as scenarios
from lab.result import plots, provenance, results
from lab.result.comparison import Cleared, Comparison, Curve, Gain, clear, compare_cells
from lab.result.report import terminal
from lab.util import markdown as tables
from lab.util import picture
from lab.util.errors import LabError, unknown_name

OUTPUT = results.RESULTS / "published"


class MeasuredWith(BaseModel):
    """Where the cells of one scenario came from."""

    scenario: str
    date: str | None
    commit: str | None
    kernels: dict[str, str]
    repetitions: int
    cpus: int | None


class Summary(BaseModel):
    """What summary.json holds: docs/published.md explains it."""

    measured_with: list[MeasuredWith]
    comparisons: list[Comparison]
    bars: list[Cleared]


@dataclass(frozen=True)
class _Grid:
    """A table for any medium. The first ``left`` columns are words."""

    title: str
    columns: Sequence[str]
    left: int
    rows: list[list[str]]


def known(names: list[str]) -> list[str]:
    """Return the scenarios to compare: those named, or all that have something to compare with.

    Raises:
        LabError: there is no such scenario, or it has neither published numbers nor bars.
    """
    claiming = [name for name in scenarios.names() if _claims(scenarios.load(name))]
    for name in names:
        if name not in scenarios.names():
            raise unknown_name("scenario", name, claiming)
        if name not in claiming:
            raise LabError(
                f"scenario {name!r} has neither published numbers nor bars: "
                f"expected one of {', '.join(claiming)}"
            )
    return names or claiming


def compare(folders: list[Path], output: Path, console: Console | None = None) -> Summary:
    """Compare finished results with what their scenarios' files say now; show it and write it down.

    Args:
        folders: results folders of different scenarios.
        output: folder for ``table.md``, ``summary.json`` and plots; what it holds of them is replaced.
        console: where tables go; None: standard output.

    Raises:
        LabError: a folder holds no complete result, one of an unknown scenario, or one with nothing to
            compare with.
    """
    summary = _summary(folders)
    output.mkdir(parents=True, exist_ok=True)
    (output / provenance.SUMMARY).write_text(summary.model_dump_json(indent=1) + "\n", encoding="utf-8")
    (output / provenance.TABLE).write_text(markdown(summary), encoding="utf-8")
    about = provenance.collect("published", []) | {"change": _one_change(folders)}
    (output / provenance.META).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    drawn = _draw(summary.comparisons, output)
    out = console or terminal()
    for grid in _grids(summary):
        out.print(_terminal_table(grid))
    out.print(f"written to {output}: {', '.join(['table.md', 'summary.json', *drawn])}", markup=False)
    return summary


def markdown(summary: Summary) -> str:
    """Return all tables of a comparison as Markdown."""
    return "\n".join(_markdown(grid) for grid in _grids(summary))


def _grids(summary: Summary) -> list[_Grid]:
    """Return the tables of a comparison that have a row."""
    grids = [_claims_grid(summary.comparisons), *_shape_grids(summary.comparisons), _bars_grid(summary.bars)]
    return [grid for grid in grids if grid.rows]


def _claims(chosen: scenarios.Scenario) -> bool:
    return bool(chosen.published or chosen.bars)


def _summary(folders: list[Path]) -> Summary:
    summary = Summary(measured_with=[], comparisons=[], bars=[])
    for folder in folders:
        try:
            cells, meta = results.read(folder)
        except (OSError, ValueError) as error:
            raise LabError(f"{folder} holds no result of ./pwb bench: {error}") from None
        [name] = known([str(meta["scenario"]["name"])])
        chosen = scenarios.load(name)
        summary.measured_with.append(_measured_with(meta))
        summary.comparisons += compare_cells(chosen, cells)
        summary.bars += clear(chosen, cells)
    return summary


def _one_change(folders: list[Path]) -> str | None:
    """Return the identity of the change that all results were measured with; None if they differ."""
    changes = {results.read(folder)[1].get("change") for folder in folders}
    return changes.pop() if len(changes) == 1 else None


def _measured_with(meta: dict[str, Any]) -> MeasuredWith:
    return MeasuredWith(
        scenario=meta["scenario"]["name"],
        date=meta.get("date"),
        commit=meta.get("commit"),
        kernels={name: kernel["identity"] for name, kernel in meta.get("kernels", {}).items()},
        repetitions=meta["scenario"]["repetitions"],
        cpus=meta["scenario"]["guest"]["cpus"],
    )


def _claims_grid(comparisons: list[Comparison]) -> _Grid:
    columns = ("id", "claim", "fs", "device", "published", "x", "measured", "x", "with", "verdict")
    rows = [
        [
            one.id,
            one.claim,
            one.fs,
            one.device,
            _change(one.published, one.unit),
            f"{one.published.ratio:.2f}",
            _change(one.measured, one.measured_unit),
            f"{one.measured.ratio:.2f}{_within(one.measured, 2)}" if one.measured else "-",
            one.measured.setting if one.measured and one.measured.setting else "-",
            one.verdict,
        ]
        for one in comparisons
    ]
    return _Grid("Published and measured", columns, 4, rows)


def _shape_grids(comparisons: list[Comparison]) -> list[_Grid]:
    """Return the curves over contexts, all with the same columns."""
    counts = sorted({point.contexts for one in comparisons for curve in one.curves for point in curve.points})
    rows = []
    for one in comparisons:
        for curve in one.curves:
            start = [one.id, one.claim, one.fs, one.device]
            for kind, ratios in (("published", _published(curve)), ("measured", _measured(curve))):
                if ratios:
                    found = dict(ratios)
                    told = [f"{found[count]:.2f}" if count in found else "-" for count in counts]
                    rows.append([*start, f"{kind}{_of(curve)}", *told])
    columns = ("id", "claim", "fs", "device", "ratio at contexts", *(str(count) for count in counts))
    return [_Grid("Shape over contexts, as multiples of the base", columns, 5, rows)] if rows else []


def _bars_grid(bars: list[Cleared]) -> _Grid:
    columns = ("bar", "fs", "device", "kind", "settings", "expected", "measured", "met")
    rows = [
        [
            bar.claim,
            bar.fs,
            bar.device,
            bar.kind,
            bar.settings,
            f"at least {bar.at_least:.2f}" if bar.at_least is not None else f"at most {bar.at_most:.2f}",
            # A digit more than what is expected: what is missed by little must not look met.
            f"{bar.measured:.3f}{_within(bar, 3)}" if bar.measured is not None else "-",
            {True: "yes", False: "NO", None: "not measured"}[bar.met],
        ]
        for bar in bars
    ]
    return _Grid("Bars", columns, 5, rows)


def _within(found: Gain | Cleared, digits: int) -> str:
    """Say between what a ratio lies, where that is known."""
    return "" if found.low is None else f" [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def _change(gain: Gain | None, unit: str) -> str:
    return f"{gain.base:g} -> {gain.new:g} {unit}" if gain else "-"


def _published(curve: Curve) -> list[tuple[int, float]]:
    return [(point.contexts, point.published) for point in curve.points if point.published is not None]


def _measured(curve: Curve) -> list[tuple[int, float]]:
    return [(point.contexts, point.measured) for point in curve.points if point.measured is not None]


def _of(curve: Curve) -> str:
    parts = [curve.affinity, curve.layout if curve.layout == "skewed" else None]
    return "".join(f", {part}" for part in parts if part)


def _draw(comparisons: list[Comparison], output: Path) -> list[str]:
    """Draw the shapes of which more than one point was published, and return the files' names."""
    names = []
    for one in comparisons:
        if not any(len(_published(curve)) > 1 for curve in one.curves):
            continue
        lines = {f"published{_of(curve)}": _published(curve) for curve in one.curves}
        lines |= {f"measured{_of(curve)}": _measured(curve) for curve in one.curves}
        figure = plots.shape(
            f"{one.id}: {one.fs}, {one.claim}", {label: points for label, points in lines.items() if points}
        )
        name = f"shape-{one.scenario}-{one.fs}-{one.device}.png"
        picture.save(output / name, figure)
        names.append(name)
    return names


def _terminal_table(grid: _Grid) -> Table:
    made = Table(title=grid.title, box=box.SIMPLE_HEAD, title_justify="left")
    for number, name in enumerate(grid.columns):
        made.add_column(name, justify="left" if number < grid.left else "right")
    for row in grid.rows:
        made.add_row(*row)
    return made


def _markdown(grid: _Grid) -> str:
    return f"{grid.title}:\n\n" + tables.table(grid.columns, grid.rows, grid.left)
