# SPDX-License-Identifier: GPL-2.0
"""A result as one page of HTML that needs nothing else: the verdict, plots, tables, how it was measured."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from lab.result import plots, profile, report, results, verdict
from lab.result.interval import ASSUMED_NULL
from lab.result.provenance import TABLE
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
        marks=report.MARKS,
        as_stock=f"{verdict.AS_STOCK:.0%}",
        assumed_null=f"{ASSUMED_NULL:.0%}",
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
    (folder / TABLE).write_text(report.markdown(cells, meta.get("notes", [])), encoding="utf-8")
    plots.draw(folder, cells)
    write(folder)


def _part(folder: Path) -> dict[str, Any]:
    cells, meta = results.read(folder)
    scenario = meta.get("scenario", {})
    judged = verdict.verdicts(report.in_order(cells))
    state = "" if results.is_complete(folder) else "interrupted, so not complete; "
    return {
        "title": scenario.get("title") or folder.name,
        "summary": f"{state}{len(cells)} settings, {meta.get('date', 'at an unknown time')}",
        "verdicts": [_said(group, one) for group, one in judged.items()],
        "plots": [
            {"alt": path.stem.replace("-", " "), "data": _data(path)}
            for kind in PLOTS
            for path in sorted(folder.glob(f"{kind}-*.png"))
        ],
        "flames": [flames for one in judged.values() for flames in _flames(folder, one)],
        "tables": [_table(rig, shown, judged) for rig, shown in report.rigs(cells).items()],
        "marks": [_sentence(said) for said in report.marks_said(cells)],
        "notes": [_sentence(said) for said in (*report.clock_said(cells), *meta.get("notes", []))],
        "facts": _facts(meta, cells),
        "job": scenario.get("job", {}).get("text", "not recorded").strip(),
    }


def _said(group: Group, one: Verdict) -> dict[str, Any]:
    cpus = report.Rig(group.device, group.machine, group.cpus).cpus_said
    return {
        "kind": one.kind,
        "where": f"{group.fs} on {group.device}{cpus}, dirty limit {group.dirty_limit_mib} MiB",
        "text": _sentence(one.text),
        "line": one.line,
        "costs": one.costs,
    }


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:].rstrip(".") + "."


def _flames(folder: Path, one: Verdict) -> list[dict[str, Any]]:
    """Return the flame graphs of stock and of the best setting, of each kind; none if runs had no profile."""
    kinds = []
    for name, what in ((profile.SVG, "on a CPU"), (profile.SLEEP_SVG, "waiting")):
        graphs = [
            # A part of the page and not an image, which would show no tooltips.
            {"title": cell.label, "svg": path.read_text(encoding="utf-8")}
            for cell in (one.stock, one.cell)
            if cell and (path := _profile(folder, cell, name))
        ]
        if graphs:
            title = f"{one.cell.fs}, dirty limit {one.cell.dirty_limit_mib} MiB, {what}"
            kinds.append({"title": title, "graphs": graphs})
    return kinds


def _profile(folder: Path, cell: Cell, name: str) -> Path | None:
    """Return the flame graph of that name of the first run of a cell that has it."""
    return next((path for run in results.run_folders(cell, folder) if (path := run / name).exists()), None)


def _table(rig: report.Rig, shown: list[Cell], judged: dict[Group, Verdict]) -> dict[str, Any]:
    chosen = [one.cell for one in judged.values() if one.kind == "gain"]
    rows = [{"texts": report.row(cell), "chosen": cell in chosen} for cell in shown]
    return {"title": f"Device {rig.label}, MiB/s at the device", "rows": rows}


def _facts(meta: dict[str, Any], cells: list[Cell]) -> list[tuple[str, str]]:
    """Return names and values of what a result was measured with; what it does not tell is left out."""
    host = meta.get("host", {})
    facts = [("command", meta["command"])] if meta.get("command") else []
    facts += [
        (f"{name} kernel", f"{one['version']}, {one['identity']}")
        for name, one in meta.get("kernels", {}).items()
    ]
    if meta.get("server"):
        facts.append(("server", meta["server"]))
    facts += _scenario_facts(meta.get("scenario", {}))
    dirty = [_sysctls(settings) for settings in meta.get("dirty_settings", {}).values()]
    if dirty:
        facts.append(("dirty settings", "; ".join(dict.fromkeys(dirty))))
    if cells:
        least, most = min(cell.runs for cell in cells), max(cell.runs for cell in cells)
        facts.append(("rounds of a setting", f"{least}" if least == most else f"{least} to {most}"))
    if host:
        facts.append(("host", f"{host['cpus']} CPUs, {host['machine']}, Linux {host['kernel']}"))
    if meta.get("fio"):
        facts.append(("fio", meta["fio"]))
    if meta.get("commit"):
        changed = f", {meta['changed_files']} files changed since" if meta.get("changed_files") else ""
        facts.append(("commit", meta["commit"] + changed))
    if meta.get("seconds"):
        budget = f", with a budget of {meta['budget_s']:.0f} s" if meta.get("budget_s") else ""
        side = meta.get("side_by_side", 1)
        facts.append(("measured for", f"{meta['seconds']:.0f} s, {side} at a time{budget}"))
    return facts


def _scenario_facts(scenario: dict[str, Any]) -> list[tuple[str, str]]:
    """Return those of a scenario; a job on a server has neither guest nor windows."""
    facts = []
    if guest := scenario.get("guest"):
        facts.append(("guest", f"{guest['machine']}, {guest['cpus']} CPUs, {guest['mem_mib']} MiB"))
        if devices := scenario.get("devices"):
            facts.append(("device", f"{', '.join(devices)}, {guest['device_mib']} MiB"))
    if "mkfs" in scenario:
        words = [f"mkfs.{fs} {' '.join(options)}" for fs, options in scenario["mkfs"].items()]
        told = " ({cpus}: the CPUs that share a device, at least 2)" if "{cpus}" in "".join(words) else ""
        facts.append(("further mkfs options", ("; ".join(words) or "none") + told))
    windows = [f"at {limit['mib']} MiB: {_window(limit)}" for limit in scenario.get("limits", [])]
    if windows:
        if "direct" in scenario.get("bounds", []):
            windows.append(f"direct I/O: {_window(scenario['direct'])}")
        facts.append(("ramp and window", "; ".join(windows)))
        facts.append(("parts of a window", f"{scenario.get('parts', 1)}"))
    return facts


def _window(window: dict[str, Any]) -> str:
    """Say when figures are taken."""
    if amounts := window.get("between_mib"):
        return f"from {amounts[0]} to {amounts[1]} MiB written"
    length = f"window {window['window_s']:g} s" if window["window_s"] else "then until fio ends"
    return f"ramp {window['ramp_s']:g} s, {length}"


def _sysctls(settings: dict[str, int]) -> str:
    """Name the settings in /proc/sys/vm; of bytes and ratio the one that is not in force reads 0."""
    return ", ".join(f"vm.{name} = {value}" for name, value in settings.items() if value)


def _data(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode("ascii")
