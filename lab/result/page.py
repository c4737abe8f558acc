# SPDX-License-Identifier: GPL-2.0
"""A result as one page of HTML that needs nothing else: the verdict, plots, tables, how it was measured."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from lab.result import plots, profile, report, results, verdict
from lab.result.results import Cell
from lab.result.verdict import Group, Verdict

TEMPLATE = Path(__file__).with_suffix(".html.j2")
NAME = "index.html"
#: Kinds of plots in their order: what answers first, first.
PLOTS = ("scaling", "throughput", "latency", "latencies", "extents", "flushers", "dirty", "pauses")


def render(folders: Sequence[Path]) -> str:
    """Return the page of some results, of interrupted ones too.

    Args:
        folders: where they are; their plots are taken from there.

    Raises:
        OSError, ValueError: a folder holds no result.
    """
    parts = [_part(folder) for folder in folders]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(
        title=", ".join(dict.fromkeys(part["title"] for part in parts)),
        parts=parts,
        columns=report.COLUMNS,
        left_columns=report.LEFT_COLUMNS,
    )


def write(folder: Path) -> Path:
    """Write the page of a result into its folder and return its path."""
    path = folder / NAME
    path.write_text(render([folder]) + "\n", encoding="utf-8")
    return path


def remake(folder: Path) -> None:
    """Make table, plots and page of a result again from its summary.

    Raises:
        OSError, ValueError: the folder holds no result.
    """
    cells, meta = results.read(folder)
    (folder / "table.md").write_text(report.markdown(cells, meta.get("notes", [])), encoding="utf-8")
    plots.draw(folder, cells)
    write(folder)


def _part(folder: Path) -> dict[str, Any]:
    cells, meta = results.read(folder)
    scenario = meta.get("scenario", {})
    judged = verdict.verdicts(report.in_order(cells))
    state = "interrupted, so not complete; " if folder.name.endswith(".incomplete") else ""
    return {
        "title": scenario.get("title") or folder.name,
        "summary": f"{state}{len(cells)} settings, {meta.get('date', 'at an unknown time')}",
        "verdicts": [_said(group, one) for group, one in judged.items()],
        "plots": [
            {"alt": path.stem.replace("-", " "), "data": _data(path)}
            for kind in PLOTS
            for path in sorted(folder.glob(f"{kind}-*.png"))
        ],
        "flames": [flames for one in judged.values() if (flames := _flames(folder, one))],
        "tables": [_table(rig, shown, judged) for rig, shown in report.rigs(cells).items()],
        "notes": [*report.clock_said(cells), *report.marks_said(cells), *meta.get("notes", [])],
        "facts": _facts(meta),
        "job": scenario.get("job", {}).get("text", "not recorded").strip(),
    }


def _said(group: Group, one: Verdict) -> dict[str, Any]:
    cpus = report.Rig(group.device, group.machine, group.cpus).cpus_said
    return {
        "kind": one.kind,
        "where": f"{group.fs} on {group.device}{cpus}, dirty limit {group.dirty_limit_mib} MiB",
        "text": one.text[0].upper() + one.text[1:],
        "line": one.line,
        "costs": one.costs,
    }


def _flames(folder: Path, one: Verdict) -> dict[str, Any] | None:
    """Return the flame graphs of stock and of the best setting; None where runs were not profiled."""
    graphs = [
        # A part of the page and not an image, which would show no tooltips.
        {"title": f"{cell.label}, {what}", "svg": path.read_text(encoding="utf-8")}
        for name, what in ((profile.SVG, "on a CPU"), (profile.SLEEP_SVG, "waiting"))
        for cell in (one.stock, one.cell)
        if cell and (path := _profile(folder, cell, name))
    ]
    if not graphs:
        return None
    return {"title": f"{one.cell.fs}, dirty limit {one.cell.dirty_limit_mib} MiB", "graphs": graphs}


def _profile(folder: Path, cell: Cell, name: str) -> Path | None:
    """Return the flame graph of that name of the first run of a cell that has it."""
    return next((path for run in results.run_folders(cell, folder) if (path := run / name).exists()), None)


def _table(rig: report.Rig, shown: list[Cell], judged: dict[Group, Verdict]) -> dict[str, Any]:
    chosen = [one.cell for one in judged.values() if one.kind == "gain"]
    rows = [{"texts": report.row(cell), "chosen": cell in chosen} for cell in shown]
    return {"title": f"Device {rig.label}, MiB/s at the device", "rows": rows}


def _facts(meta: dict[str, Any]) -> list[tuple[str, str]]:
    kernels = meta.get("kernels", {})
    guest = meta.get("scenario", {}).get("guest", {})
    host = meta.get("host", {})
    facts = [(f"{name} kernel", f"{one['version']}, {one['identity']}") for name, one in kernels.items()]
    if guest:
        facts.append(("guest", f"{guest['machine']}, {guest['cpus']} CPUs, {guest['mem_mib']} MiB"))
    if meta.get("server"):
        facts.append(("server", meta["server"]))
    if host:
        facts.append(("host", f"{host['cpus']} CPUs, {host['machine']}, Linux {host['kernel']}"))
    facts += [(name, str(meta[key])) for name, key in (("fio", "fio"), ("commit", "commit")) if meta.get(key)]
    if meta.get("seconds"):
        facts.append(("measured for", f"{meta['seconds']:.0f} s, {meta.get('side_by_side', 1)} at a time"))
    return facts


def _data(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
