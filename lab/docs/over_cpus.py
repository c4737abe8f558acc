# SPDX-License-Identifier: GPL-2.0
"""Tables of measurements with several numbers of CPUs: how far it scales, and what limits it."""

from __future__ import annotations

from collections.abc import Iterable

from lab.docs import measurements
from lab.docs.derived import BOUNDS, PROFILE_HEADS, TITLES, profile_said
from lab.result.results import Cell
from lab.util import markdown

STOCK = "stock, MiB/s"
EVERY_CPU = "a context for each CPU"
#: What is asked of any number of contexts, as a multiple of stock's throughput.
ASKED = 0.98


def scaling(name: str) -> str:
    """Return the table of stock and as many contexts as CPUs, over CPUs."""
    rates = _over_cpus(name)
    counts = sorted({cpus for _, _, cpus in rates})
    rows = []
    for fs, limit in dict.fromkeys((fs, limit) for fs, limit, _ in rates):
        shown = [rates[fs, limit, cpus] for cpus in counts]
        told = [f"{stock:.0f} / {ours:.0f} ({ours / stock:.2f} x)" for stock, ours in shown]
        rows.append([TITLES[fs], f"{limit} MiB", *told])
    return markdown.table(["fs", "dirty limit", *_heads(counts)], rows, left=2 + len(counts))


def gains(name: str, limit_mib: int) -> dict[int, str]:
    """Return from what to what as many contexts as CPUs gain, as multiples of stock, by CPUs.

    Args:
        name: of a measurement with several numbers of CPUs.
        limit_mib: dirty limit.
    """
    ratios: dict[int, list[float]] = {}
    for (_, limit, cpus), (stock, ours) in _over_cpus(name).items():
        if limit == limit_mib:
            ratios.setdefault(cpus, []).append(ours / stock)
    return {cpus: f"{min(of):.1f} to {max(of):.1f} times" for cpus, of in ratios.items()}


def multiples_over_cpus(name: str) -> str:
    """Return the table of contexts and bounds as multiples of stock, over CPUs."""
    cells = measurements.cells(name)
    counts = sorted({cell.cpus for cell in cells})
    rows = []
    for fs in dict.fromkeys(cell.fs for cell in cells):
        stock = {cell.cpus: cell.mib_s.median for cell in cells if (cell.fs, cell.variant) == (fs, "stock")}
        rows.append([TITLES[fs], STOCK, *(f"{stock[cpus]:.0f}" for cpus in counts)])
        of_stock: dict[str, dict[int, float]] = {}
        for cell in cells:
            if cell.fs == fs and cell.variant != "stock":
                of_stock.setdefault(_said(cell), {})[cell.cpus] = cell.mib_s.median / stock[cell.cpus]
        for said in sorted(of_stock, key=_order):
            ratios = [of_stock[said].get(cpus) for cpus in counts]
            told = ["-" if ratio is None else f"{ratio:.2f} x" for ratio in ratios]
            rows.append(["", said, *told])
    return markdown.table(["fs", "", *_heads(counts)], rows, left=2)


def losses(*names: str) -> str:
    """Return the table of how many cells of each measurement keep what is asked of stock's throughput.

    Args:
        names: of measurements of the map, ``scaling-WORKLOAD``.
    """
    rows = []
    for name in names:
        cells = measurements.cells(name)
        stock = {(cell.fs, cell.cpus): cell.mib_s.median for cell in cells if cell.variant == "stock"}
        ours = {
            f"{TITLES[cell.fs]} {cell.cpus} CPUs, {cell.label}": cell.mib_s.median / stock[cell.fs, cell.cpus]
            for cell in cells
            if cell.variant == "parallel"
        }
        # A digit more than what is asked: what is missed by little must not look kept.
        missed = [f"{where} {ratio:.3f}" for where, ratio in ours.items() if ratio < ASKED]
        kept = f"{len(ours) - len(missed)} of {len(ours)}"
        rows.append([f"`{name.removeprefix('scaling-')}`", kept, "; ".join(missed) or "-"])
    return markdown.table(("workload", f"at least {ASKED} of stock", "less"), rows, left=3)


def of_separate_bdis(*names: str) -> str:
    """Return the table of what as many contexts as CPUs come to, as shares of separate BDIs, over CPUs.

    Args:
        names: of measurements with several numbers of CPUs and that bound, whose first device is shown.
    """
    shares: dict[tuple[str, int | None, str], dict[int, float]] = {}
    for name in names:
        cells = _on_first_device(measurements.cells(name))
        bound = {_place(cell): cell.mib_s.median for cell in cells if cell.variant == "bdis"}
        for cell in cells:
            if cell.contexts == cell.cpus and _place(cell) in bound:
                by_cpus = shares.setdefault((name, cell.dirty_limit_mib, TITLES[cell.fs]), {})
                by_cpus[cell.cpus] = cell.mib_s.median / bound[_place(cell)]
    counts = sorted({cpus for by_cpus in shares.values() for cpus in by_cpus})
    rows = [
        [
            *(f"`{name}`", f"{limit_mib} MiB", fs),
            *(f"{by_cpus[cpus]:.2f}" if cpus in by_cpus else "-" for cpus in counts),
        ]
        for (name, limit_mib, fs), by_cpus in shares.items()
    ]
    return markdown.table(["", "dirty limit", "fs", *_heads(counts)], rows, left=3)


def limits(name: str, *cpus: str) -> str:
    """Return the table of what limits stock and as many contexts as CPUs.

    Args:
        name: of a measurement with several numbers of CPUs and with profiles.
        cpus: the numbers of CPUs to show.
    """
    rows = []
    order = list(TITLES)
    for cell in sorted(_both(measurements.cells(name)), key=lambda cell: (order.index(cell.fs), cell.cpus)):
        if str(cell.cpus) in cpus and cell.bottleneck:
            rows.append([TITLES[cell.fs], str(cell.cpus), cell.label, *profile_said(cell.bottleneck)])
    return markdown.table(("fs", "CPUs", "", *PROFILE_HEADS), rows, left=3)


def _heads(counts: list[int]) -> list[str]:
    return [f"{cpus} CPUs" if cpus == counts[0] else str(cpus) for cpus in counts]


def _on_first_device(cells: list[Cell]) -> list[Cell]:
    return [cell for cell in cells if cell.device == cells[0].device]


def _both(cells: list[Cell]) -> Iterable[Cell]:
    """Return stock's cells and those of as many contexts as CPUs, on the first device."""
    for cell in _on_first_device(cells):
        if cell.variant == "stock" or cell.contexts == cell.cpus:
            yield cell


def _place(cell: Cell) -> tuple[str, int | None, int]:
    return cell.fs, cell.dirty_limit_mib, cell.cpus


def _over_cpus(name: str) -> dict[tuple[str, int | None, int], tuple[float, float]]:
    """Return stock's rate and ours by filesystem, dirty limit and CPUs, on the first device, in MiB/s."""
    stock: dict[tuple[str, int | None, int], float] = {}
    ours: dict[tuple[str, int | None, int], float] = {}
    for cell in _both(measurements.cells(name)):
        found = stock if cell.variant == "stock" else ours
        found[_place(cell)] = cell.mib_s.median
    return {place: (rate, ours[place]) for place, rate in stock.items() if place in ours}


def _said(cell: Cell) -> str:
    """Name a setting that is not stock by what it has in common with that of other numbers of CPUs."""
    if cell.variant in BOUNDS:
        return BOUNDS[cell.variant]
    return EVERY_CPU if cell.contexts == cell.cpus else cell.label


def _order(said: str) -> tuple[int, str]:
    """Order settings: numbers of contexts, a context for each CPU, bounds."""
    last = [EVERY_CPU, *BOUNDS.values()]
    return (last.index(said) + 1 if said in last else 0, said)
