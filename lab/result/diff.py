# SPDX-License-Identifier: GPL-2.0
"""Two results side by side: which settings differ by more than their own spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.result.report import in_order
from lab.result.results import Cell, Key
from lab.util.markdown import table

COLUMNS = ("device", "CPUs", "fs", "dirty limit", "setting", "A, MiB/s", "B, MiB/s", "B / A", "")
LEFT_COLUMNS = 5


def markdown(before: Sequence[Cell], after: Sequence[Cell]) -> str:
    """Return the table of the settings that both results have, and what only one of them has.

    A setting differs where the rates of all parts (or rounds) of one result lie above all of the other's.
    With one rate of each that cannot be told.
    """
    others = {_key(cell): cell for cell in after}
    own = {_key(cell) for cell in before}
    pairs = [(cell, others[_key(cell)]) for cell in in_order(before) if _key(cell) in others]
    lines = table(COLUMNS, [_row(a, b) for a, b in pairs], LEFT_COLUMNS).splitlines()
    if not pairs:
        lines = ["no setting is in both results"]
    for name, alone in (
        ("A", [cell for cell in before if _key(cell) not in others]),
        ("B", [cell for cell in after if _key(cell) not in own]),
    ):
        if alone:
            lines += ["", f"only in {name}: {'; '.join(_name(cell) for cell in in_order(alone))}"]
    return "\n".join(lines) + "\n"


def _key(cell: Cell) -> Key:
    return Key(**{name: getattr(cell, name) for name in Key.model_fields})


def _row(a: Cell, b: Cell) -> tuple[str, ...]:
    apart = "differs" if a.mib_s.max < b.mib_s.min or b.mib_s.max < a.mib_s.min else ""
    if apart and (_has_one_rate(a) or _has_one_rate(b)):
        apart = "one rate: cannot tell"
    ratio = f"{b.mib_s.median / a.mib_s.median:.2f}" if a.mib_s.median else "-"
    limit = f"{a.dirty_limit_mib} MiB" if a.dirty_limit_mib else "-"
    return a.device, str(a.cpus), a.fs, limit, a.label, _rate(a), _rate(b), ratio, apart


def _has_one_rate(cell: Cell) -> bool:
    return cell.mib_s.min == cell.mib_s.max


def notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what else two results differ in, by what they were measured with, a sentence each."""
    found = []
    for name in ("job", "limits", "guest", "files", "mkfs", "parts"):
        if _of(before, name) != _of(after, name):
            found.append(f"A and B differ in {name} of their scenarios: see meta.json of each")
    if before.get("fio") != after.get("fio"):
        found.append(f"fio is {before.get('fio')} in A and {after.get('fio')} in B")
    return found


def _of(meta: Mapping[str, Any], name: str) -> object:
    return meta.get("scenario", {}).get(name)


def _rate(cell: Cell) -> str:
    return f"{cell.mib_s.median:.0f} ({cell.mib_s.min:.0f}..{cell.mib_s.max:.0f})"


def _name(cell: Cell) -> str:
    limit = f" at {cell.dirty_limit_mib} MiB" if cell.dirty_limit_mib else ""
    return f"{cell.fs} on {cell.device}, {cell.cpus} CPUs, {cell.label}{limit}"
