# SPDX-License-Identifier: GPL-2.0
"""How far each workload scales with the CPUs, and what limits it: a plot for each, and one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from lab.experiment import scenario as scenarios
from lab.result import bottleneck_table, plots, results
from lab.result.provenance import META, TABLE
from lab.result.report import in_order
from lab.result.results import Cell
from lab.util import picture
from lab.util.errors import unknown_name

PREFIX = "scaling-"
#: What is kept of the meta.json of a workload's result.
FACTS = ("command", "date", "host", "change", "kernels", "commit")
HEADING = """\
# What limits each workload, by CPUs and contexts

Made with `./pwb scaling`: 2 to 64 CPUs in virtual time, a memory-backed device, one run. Shares are of all
CPUs' time, those of functions of the time that was not idle. In brackets: how many tasks wait there on
average, asleep or spinning.
"""
_CELLS = TypeAdapter(list[Cell])


def workloads() -> list[str]:
    """Return the workloads that there is a scenario for."""
    return [name.removeprefix(PREFIX) for name in scenarios.names() if name.startswith(PREFIX)]


def chosen(names: Sequence[str]) -> list[str]:
    """Return the workloads that are asked for, all of them without a name.

    Raises:
        LabError: there is no such workload.
    """
    for name in names:
        if name not in workloads():
            raise unknown_name("workload", name, workloads())
    return [name for name in workloads() if not names or name in names]


def keep(workload: str, result: Path, folder: Path) -> None:
    """Write the cells of a workload and its plot into a folder, and the table of what was measured alike.

    Args:
        workload: its name.
        result: folder of its result.
        folder: where to write, made if missing. What it has of another change is no longer shown.
    """
    cells, about = results.read(result)
    folder.mkdir(parents=True, exist_ok=True)
    listed = results.without_raw(in_order(cells))
    (folder / f"{workload}.json").write_text(results.text(listed), encoding="utf-8")
    picture.save(folder / f"{workload}.png", plots.scaling(listed[0].device, listed))
    measured = {
        name: other
        for name, other in _measured(folder).items()
        if about["change"] is not None and other["change"] == about["change"]
    }
    measured[workload] = {name: about[name] for name in FACTS}
    (folder / META).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(table(folder), encoding="utf-8")


def _measured(folder: Path) -> dict[str, Any]:
    """Return what each workload of a folder was measured with; nothing where that is not known."""
    try:
        found: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return found


def table(folder: Path) -> str:
    """Return the table of all workloads in a folder that were measured with the same change."""
    text = HEADING
    for workload in sorted(_measured(folder)):
        cells = _CELLS.validate_json((folder / f"{workload}.json").read_bytes())
        title = scenarios.load(PREFIX + workload).title
        lines = bottleneck_table.markdown(in_order(cells))
        text += "\n".join([f"\n## {workload}: {title}", "", *lines]) + "\n"
    return text
