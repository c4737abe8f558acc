# SPDX-License-Identifier: GPL-2.0
"""The table of what limits each cell, of a result whose runs were profiled."""

from __future__ import annotations

from collections.abc import Iterable

from lab.profile.bottleneck import Bottleneck
from lab.result.results import Cell
from lab.util.markdown import table

COLUMNS = (
    "fs",
    "CPUs",
    "dirty limit",
    "setting",
    "MiB/s",
    "x stock",
    "user",
    "kernel",
    "spins",
    "idle",
    "busy CPUs run",
    "tasks wait for a lock in",
)
LEFT_COLUMNS = 4
# Fewer tasks that wait for a lock, on average, are not what limits a run.
LEAST_TASKS = 0.05


def markdown(cells: Iterable[Cell]) -> list[str]:
    """Return the lines of the table, of the cells that have a profile; none if none has one."""
    rows = [_row(cell, cell.bottleneck) for cell in cells if cell.bottleneck]
    if not rows:
        return []
    return table(COLUMNS, rows, LEFT_COLUMNS).splitlines()


def _row(cell: Cell, limit: Bottleneck) -> list[str]:
    return [
        cell.fs,
        str(cell.cpus),
        f"{cell.dirty_limit_mib} MiB" if cell.dirty_limit_mib else "-",
        cell.label,
        f"{cell.mib_s.median:.0f}",
        "-" if cell.ratio_to_stock is None else f"{cell.ratio_to_stock:.2f}",
        *(f"{limit.shares.get(kind, 0):.0%}" for kind in ("user", "kernel", "spinning", "idle")),
        ", ".join(f"{name} {share:.0%}" for name, share in limit.functions.items()),
        lock(limit),
    ]


def lock(limit: Bottleneck) -> str:
    """Say where most tasks wait for a lock, and how many on average; a dash where hardly any does."""
    return f"{limit.lock} ({limit.lock_tasks:.1f})" if limit.lock_tasks >= LEAST_TASKS else "-"
