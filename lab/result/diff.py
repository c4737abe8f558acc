# SPDX-License-Identifier: GPL-2.0
"""Two results side by side: which settings differ, by the interval of their ratio, and in what else.

Rounds of two results were not measured together, so they are two samples, not pairs. From
:data:`rounds.PAIRS` rounds of both on a round counts once. With fewer the interval is that of the parts of
their windows, widened by how far apart the boots of one kernel lie on that device, as both results show it.

A dirty limit is the one that was set: the bytes, or the share of the memory, whatever that came to.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lab.experiment.measure import COSTS, Spread
from lab.result import verdict
from lab.result.interval import ASSUMED_NULL, Apart, Interval, ratio_interval
from lab.result.report import in_order
from lab.result.results import Cell, Key
from lab.result.rounds import PAIRS
from lab.result.verdict import Group, Kind, Verdict
from lab.util.grouping import grouped
from lab.util.markdown import table

MIB = 1 << 20
COLUMNS = ("device", "CPUs", "fs", "dirty limit", "setting", "A, MiB/s", "B, MiB/s", "B / A", "B is")
LEFT_COLUMNS = 5
KINDS: dict[Kind, str] = {"gain": "more", "loss": "less", "same": "the same", "open": "not told apart"}

#: The cells of a result, and what they were measured with.
Result = tuple[Sequence[Cell], Mapping[str, Any]]
#: What tells a cell from the others, and its dirty limit in words.
_Setting = tuple[Key, str]


def text(before: Sequence[Result], after: Sequence[Result]) -> str:
    """Return tables and notes of results A and B, which may have several jobs each.

    Of several only those of one job are compared; a single A and a single B always are.
    """
    if len(before) == len(after) == 1:
        return _pair(before[0], after[0])
    parts, left = [], [*after]
    alone = []
    for a in before:
        b = next((one for one in left if _name_of(one) == _name_of(a)), None)
        if b is None:
            alone.append(a)
            continue
        left.remove(b)
        parts.append(f"{_name_of(a)}:\n\n{_pair(a, b)}")
    for name, listed in (("A", alone), ("B", left)):
        if listed:
            parts.append(f"only in {name}: {', '.join(map(_name_of, listed))}\n")
    return "\n".join(parts)


def _pair(a: Result, b: Result) -> str:
    said = "".join(f"\n{note}\n" for note in notes(a[1], b[1]))
    return markdown(a[0], b[0], (a[1], b[1])) + said


def _name_of(result: Result) -> str:
    return str(result[1].get("scenario", {}).get("name", "a result without a name"))


def markdown(
    before: Sequence[Cell],
    after: Sequence[Cell],
    metas: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> str:
    """Return the table of the settings that both results have, and what only one of them has.

    B is more or less where the interval of its rate, as a multiple of A's, says so, as in a verdict against
    stock. What else it has more or less of is listed below the table.

    Args:
        before: the cells of A.
        after: the cells of B.
        metas: what each was measured with, of which dirty limits are taken; what has none has whole MiB.
    """
    of_a, of_b = (
        {_setting(cell, meta): cell for cell in in_order(cells)}
        for cells, meta in zip((before, after), metas, strict=True)
    )
    nulls = [_nulls(cells) for cells in (before, after)]
    groups = grouped(Group.of, before), grouped(Group.of, after)
    pairs = {
        setting: _held(
            cell,
            of_b[setting],
            [
                null[of]
                for null, one in zip(nulls, (cell, of_b[setting]), strict=True)
                if (of := Group.of(one)) in null
            ],
            verdict.apart_in(Group.of(cell), *groups),
        )
        for setting, cell in of_a.items()
        if setting in of_b
    }
    rows = [_row(a, one, limit) for (_, limit), (a, one) in pairs.items()]
    lines = table(COLUMNS, rows, LEFT_COLUMNS).splitlines()
    if not pairs:
        lines = ["no setting is in both results"]
    if limits := dict.fromkeys(
        _came_to(a, one.cell, limit) for (_, limit), (a, one) in pairs.items() if limit
    ):
        lines += ["", f"dirty limits compared, the same in both: {', '.join(limits)}"]
    costs = [
        f"- {_name(a, limit)}: {said}"
        for (_, limit), (a, one) in pairs.items()
        if (said := ", ".join(_costs(a, one.cell)))
    ]
    if costs:
        lines += ["", "What else B has more or less of:", "", *costs]
    for name, own, others in (("A", of_a, of_b), ("B", of_b, of_a)):
        if alone := [_name(cell, limit) for (key, limit), cell in own.items() if (key, limit) not in others]:
            lines += ["", f"only in {name}: {'; '.join(alone)}"]
    return "\n".join(lines) + "\n"


def _setting(cell: Cell, meta: Mapping[str, Any]) -> _Setting:
    """Return what tells a cell from the others of its result and is the same in another one."""
    key = Key(**{name: getattr(cell, name) for name in Key.model_fields} | {"dirty_limit_mib": None})
    return key, _limit(cell, meta)


def _limit(cell: Cell, meta: Mapping[str, Any]) -> str:
    """Say to which dirty limit a cell was measured, exactly; empty for direct I/O."""
    if cell.dirty_limit_mib is None:
        return ""
    settings = meta.get("dirty_settings", {}).get(f"limit-{cell.dirty_limit_mib}", {})
    # The kernel goes by the share where no bytes are set.
    if not settings.get("dirty_bytes") and settings.get("dirty_ratio"):
        return f"{settings['dirty_ratio']}% of memory"
    size = settings.get("dirty_bytes") or cell.dirty_limit_mib * MIB
    return f"{size} bytes" if size % MIB else f"{size // MIB} MiB"


def _came_to(a: Cell, b: Cell, limit: str) -> str:
    """Say a dirty limit, and what a share of the memory came to."""
    if not limit.endswith("memory"):
        return limit
    return f"{limit} ({a.dirty_limit_mib} MiB in A, {b.dirty_limit_mib} MiB in B)"


def _nulls(cells: Sequence[Cell]) -> dict[Group, float]:
    """Return by how much one context was off from stock, as a ratio, where a result has both."""
    found = {group: verdict.measured_null(of) for group, of in grouped(verdict.Group.of, cells).items()}
    return {group: null for group, null in found.items() if null is not None}


def _held(a: Cell, b: Cell, nulls: Sequence[float], apart: Apart) -> tuple[Cell, Verdict]:
    """Hold B against A as a verdict holds a setting against stock; A comes back beside it.

    Args:
        a: one of them.
        b: the other one.
        nulls: by how much one context was off from stock in their groups.
        apart: how far boots of the same code lie apart there.
    """
    return a, Verdict(
        cell=b,
        stock=a,
        interval=_interval(a, b, apart),
        null=max(nulls, default=ASSUMED_NULL),
        is_null_measured=bool(nulls),
        why="",
    )


def _interval(a: Cell, b: Cell, apart: Apart) -> Interval | None:
    """Return the rate of B as a multiple of A's; None where the rates are too few or not comparable."""
    if a.steady != b.steady:
        return None
    ours, base = ([of for of in cell.rates if of] for cell in (b, a))
    rounds = min(len(ours), len(base))
    if rounds >= PAIRS:
        return ratio_interval([*map(statistics.fmean, ours)], [*map(statistics.fmean, base)])
    found = ratio_interval(sum(ours, ()), sum(base, ()))
    return found.widened(apart, rounds) if found else None


def _costs(a: Cell, b: Cell) -> list[str]:
    """Say what a verdict is held against of B, as compared with A; with its interval from several rounds."""
    said = []
    for field, name in COSTS.items():
        ours: Spread | None = getattr(b, field)
        base: Spread | None = getattr(a, field)
        if not ours or not base or base.median <= 0:
            continue
        text = f"{name} {ours.median / base.median - 1:+.0%}"
        of_b, of_a = (
            [value for value in cell.costs_by_round.get(field, ()) if value is not None] for cell in (b, a)
        )
        if min(len(of_b), len(of_a)) >= PAIRS and (found := ratio_interval(of_b, of_a)):
            text = f"{name} {found.ratio - 1:+.0%} [{found.low - 1:+.0%}, {found.high - 1:+.0%}]"
        said.append(text)
    return said


def _row(a: Cell, one: Verdict, limit: str) -> tuple[str, ...]:
    b = one.cell
    ratio = f"{b.mib_s.median / a.mib_s.median:.2f}" if a.mib_s.median else "-"
    said = "cannot tell: too few rates"
    if a.steady != b.steady:
        said = "cannot tell: one has no steady window"
    if found := one.interval:
        ratio, said = f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]", KINDS[one.kind]
    return a.device, str(a.cpus), a.fs, limit or "-", a.label, _rate(a), _rate(b), ratio, said


def notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what else two results differ in, by what they were measured with, a sentence each."""
    found = []
    for name in ("job", "limits", "direct", "prepare", "guest", "files", "mkfs", "parts"):
        if _of(before, name) != _of(after, name):
            found.append(f"A and B differ in {name} of their scenarios: see meta.json of each")
    if before.get("fio") != after.get("fio"):
        found.append(f"fio is {before.get('fio')} in A and {after.get('fio')} in B")
    return found


def _of(meta: Mapping[str, Any], name: str) -> object:
    return meta.get("scenario", {}).get(name)


def _rate(cell: Cell) -> str:
    return f"{cell.mib_s.median:.0f} ({cell.mib_s.min:.0f}..{cell.mib_s.max:.0f})"


def _name(cell: Cell, limit: str) -> str:
    at = f" at {limit}" if limit else ""
    return f"{cell.fs} on {cell.device}, {cell.cpus} CPUs, {cell.label}{at}"
