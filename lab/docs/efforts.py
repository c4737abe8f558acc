# SPDX-License-Identifier: GPL-2.0
"""The table of what proofs took: by which command, with which seeds, and hours of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from pydantic import TypeAdapter

from lab.docs import measurements
from lab.docs.measurements import MEASUREMENTS
from lab.proof import cuts, mutants, schedules, tested
from lab.result.provenance import SUMMARY
from lab.util import markdown
from lab.util.grouping import grouped

_NO_SEEDS = "-"
_Outcome = TypeVar("_Outcome")


def efforts(*names: str) -> str:
    """Return the table of what proofs took, a row for each command.

    Args:
        names: measurements of proofs; those with the same view are put together.
    """
    of_view = grouped(lambda name: measurements.meta(name).view or "", names)
    rows = [row for view, of in of_view.items() for row in _ROWS[view](of)]
    return markdown.table(("command", "cases", "seeds", "host, hours"), rows, left=3)


def _outcomes(kind: type[_Outcome], names: Iterable[str]) -> list[_Outcome]:
    read = TypeAdapter(list[kind])  # type: ignore[valid-type]
    return [one for name in names for one in read.validate_json((MEASUREMENTS / name / SUMMARY).read_bytes())]


def _row(command: str, cases: str, seeds: str, seconds: float) -> list[str]:
    return [f"`./pwb {command}`", cases, seeds, f"{seconds / 3600:.2f}"]


def _tested(names: Sequence[str]) -> list[list[str]]:
    rows = []
    for proof, of in grouped(lambda one: one.proof, _outcomes(tested.Outcome, names)).items():
        seeds = sum(one.tried.get("seeds", 0) for one in of)
        cases = sum(one.cases for one in of)
        told = f"{seeds} in all" if seeds else _NO_SEEDS
        rows.append(_row(f"prove {proof}", str(cases), told, sum(one.seconds for one in of)))
    return rows


def _cuts(names: Sequence[str]) -> list[list[str]]:
    rows = []
    every = _outcomes(cuts.Outcome, names)
    # Ours, parallel, comes before stock; with each the machine that need not be named comes first.
    every.sort(key=lambda one: (one.kernel, one.machine != "uml", one.cpus))
    for (kernel, machine, cpus), of in grouped(
        lambda one: (one.kernel, one.machine, one.cpus), every
    ).items():
        where = "" if machine == "uml" else f" --machine {machine} --cpus {cpus}"
        of_kernel = "" if kernel == "parallel" else f" --kernel {kernel}"
        done = f"{sum(one.cuts for one in of):,} cuts"
        took_s = sum(one.host_s for one in of)
        rows.append(_row(f"cuts{of_kernel}{where}", done, _ranges(one.seed for one in of), took_s))
    return rows


def _mutants(names: Sequence[str]) -> list[list[str]]:
    of = _outcomes(mutants.Outcome, names)
    return [_row("mutants", f"{len(of)} mutants", _NO_SEEDS, sum(one.build_s + one.test_s for one in of))]


def _schedules(names: Sequence[str]) -> list[list[str]]:
    return [
        _row(
            f"schedules --cpus {cpus}",
            f"{len(of)} boots",
            _ranges(one.seed for one in of),
            sum(one.host_s for one in of),
        )
        for cpus, of in grouped(lambda one: one.cpus, _outcomes(schedules.Outcome, names)).items()
    ]


def _ranges(seeds: Iterable[int]) -> str:
    """Name seeds, those that follow each other by the first and the last."""
    found: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if found and seed == found[-1][-1] + 1:
            found[-1].append(seed)
        else:
            found.append([seed])
    return ", ".join(f"{of[0]} to {of[-1]}" if len(of) > 1 else str(of[0]) for of in found)


_ROWS: dict[str, Callable[[Sequence[str]], list[list[str]]]] = {
    tested.NAME: _tested,
    cuts.NAME: _cuts,
    mutants.NAME: _mutants,
    schedules.NAME: _schedules,
}
