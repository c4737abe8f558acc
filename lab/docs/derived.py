# SPDX-License-Identifier: GPL-2.0
"""Tables of pages that choose among the figures of measurements, or set some of several side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from statistics import geometric_mean

from lab.docs import measurements
from lab.docs.measurements import MEASUREMENTS
from lab.experiment.measure import FIGURES, Spread
from lab.profile.bottleneck import Bottleneck
from lab.result import bottleneck_table, report, throttle
from lab.result.interval import paired_interval
from lab.result.provenance import SUMMARY
from lab.result.published_table import Summary
from lab.result.results import Cell
from lab.result.rounds import paired_rates
from lab.util import markdown
from lab.util.errors import LabError

TITLES = {"xfs": "XFS", "ext4": "ext4", "f2fs": "F2FS"}
BOUNDS = {"bdis": "separate BDIs (bound)", "direct": "direct I/O (bound)"}
AG_MODES = ("ag-hint", "rotor", "generic")
#: What the jobs on AG-aware writeback do, in the words of their page.
AG_JOBS = {
    "ag-overwrite": "overwrites, 12 files in 12 AGs",
    "ag-large": "overwrites, one file over 7 AGs",
    "t4-12-files": "new blocks, 12 files in 12 AGs, 12 CPUs, 700 us",
    "t4-6-files": "new blocks, 6 files in 6 AGs, 12 CPUs, 700 us",
    "t4-12-files-100us": "new blocks, 12 files in 12 AGs",
    "ag-4": "4 AGs, 3 files in each",
    "ag-32": "32 AGs",
    "ag-preallocated": "blocks are there, unwritten",
    "ag-aged": "free space in pieces of 16 KiB",
    "ag-cost-sequential": "one job writes 1 GiB, 4 CPUs in virtual time",
    "ag-cost-fsync": "4 jobs write 4k and fsync",
    "ag-cost-mmap": "2 jobs store to mapped pages",
    "ag-small": "4 jobs make 500 files of 64 KiB each",
}
#: What tables show of a profile, and how many of its functions.
PROFILE_HEADS = ("idle", "spin", "busy CPUs run", "most tasks wait for a lock in")
FUNCTIONS = 3
#: Of a line of prose.
WIDEST = 110


def one(cells: Iterable[Cell], **asked: object) -> Cell:
    """Return the only cell with these values.

    Raises:
        LabError: there is none, or there are several.
    """
    found = [cell for cell in cells if all(getattr(cell, name) == value for name, value in asked.items())]
    if len(found) != 1:
        told = ", ".join(f"{name} {value}" for name, value in asked.items())
        raise LabError(f"{len(found)} cells with {told}: expected one")
    return found[0]


def profile_said(profile: Bottleneck) -> list[str]:
    """Say what a profile shows, in the columns of ``PROFILE_HEADS``."""
    shares = (f"{profile.shares.get(kind, 0):.0%}" for kind in ("idle", "spinning"))
    functions = list(profile.functions.items())[:FUNCTIONS]
    told = ", ".join(f"`{function}` {share:.0%}" for function, share in functions)
    return [*shares, told, bottleneck_table.lock(profile)]


def published_summary(name: str) -> Summary:
    """Return a kept comparison with published numbers."""
    return Summary.model_validate_json((MEASUREMENTS / name / SUMMARY).read_bytes())


def affinity(name: str) -> str:
    """Return the table of even and skewed files by filesystem: stock, by number, by place."""
    cells = measurements.cells(name)
    rows = []
    for fs in dict.fromkeys(cell.fs for cell in cells):
        stock = one(cells, fs=fs, variant="stock", layout="even").mib_s.median
        rates = [
            one(cells, fs=fs, variant="parallel", affinity=policy, layout=layout).mib_s.median
            for policy in ("ino", "fs")
            for layout in ("even", "skewed")
        ]
        even, by_number, _, by_place = rates
        ratios = [f"{by_number / even:.2f}", f"{by_place / even:.2f}"]
        rows.append([TITLES[fs], *(f"{rate:.0f}" for rate in (stock, *rates)), *ratios])
    heads = (
        "MiB/s", "stock", "`ino`, even", "`ino`, skewed", "`fs`, even", "`fs`, skewed",
        "`ino` skewed / `ino` even", "`fs` skewed / `ino` even",
    )  # fmt: skip
    return markdown.table(heads, rows, left=1)


def blocked(name: str) -> str:
    """Return the table of what is written while one file is blocked, by number of workers."""
    rows = []
    for cell in measurements.cells(name):
        assert cell.slowest_job_mib_s is not None
        rows.append([workers_said(cell), _range(cell.mib_s, 0), _range(cell.slowest_job_mib_s, 1)])
    heads = ("", "MiB/s at the device", "MiB/s of the slowest job")
    return markdown.table(heads, rows, left=1)


def workers(name: str, limit_mib: str) -> str:
    """Return the table of throughput and the flushers' CPU time by number of workers, at one dirty limit."""
    cells = [cell for cell in measurements.cells(name) if cell.dirty_limit_mib == int(limit_mib)]
    heads = list(dict.fromkeys(workers_said(cell) for cell in cells))
    rows = []
    for fs in dict.fromkeys(cell.fs for cell in cells):
        of = [cell for cell in cells if cell.fs == fs]
        rows.append([f"{TITLES[fs]}, MiB/s", *(f"{cell.mib_s.median:.0f}" for cell in of)])
        spent = [cell.flusher_cpu_s_per_gib for cell in of]
        told = [f"{cpu.median:.2f}" if cpu else "-" for cpu in spent]
        rows.append([f"{TITLES[fs]}, CPU s of the flushers per GiB", *told])
    return markdown.table(["", *heads], rows, left=1)


def workers_said(cell: Cell) -> str:
    """Name a number of workers; stock has none to choose."""
    if cell.workers is None:
        return "stock"
    return f"{cell.workers} worker{'s' if cell.workers > 1 else ''}"


def _range(value: Spread, digits: int) -> str:
    low, high = f"{value.min:.{digits}f}", f"{value.max:.{digits}f}"
    return f"{value.median:.{digits}f} ({low} to {high})"


def asked(name: str) -> str:
    """Return the table of what is asked of the throttle, and how many cells keep it."""
    cells = measurements.cells(name)
    ours = [cell for cell in cells if cell.variant == "parallel" and cell.contexts is not None]
    rows = []
    for figure, (least, most) in throttle.BARS.items():
        said = f"at least {least}" if most is None else f"at most {most}"
        told = [f"{FIGURES[figure].name} {said}"]
        for several in (False, True):
            of = [cell for cell in ours if (cell.contexts != 1) == several]
            known = [ratio for cell in of if (ratio := throttle.of_stock(cell, cells, figure)) is not None]
            kept = [
                ratio
                for ratio in known
                if (least is None or round(ratio, 2) >= least) and (most is None or round(ratio, 2) <= most)
            ]
            # A writer that got nowhere makes a ratio of 0.
            mean = geometric_mean(known) if min(known) else 0
            told += [f"{len(kept)} of {len(of)}", f"{mean:.2f}"]
        rows.append([*told, f"{min(known):.2f} to {max(known):.2f}"])
    heads = ("asked, of stock", "1 context", "mean", "more than one", "mean", "lowest to highest")
    return markdown.table(heads, rows, left=1)


def placements(name: str, published: str) -> str:
    """Return the table of placements of blocks: what was published and measured, and what was waited for.

    The job writes blocks of 4 KiB.
    """
    claims = {
        claim.measured.setting: claim.published
        for claim in published_summary(published).comparisons
        if claim.scenario == name and claim.measured is not None
    }
    cells = measurements.cells(name)
    stock = one(cells, variant="stock").mib_s.median
    rows = []
    for cell in cells:
        claim = claims.get(cell.label)
        told = [f"{claim.new:.0f}", f"{claim.ratio:.2f}"] if claim else ["-", "-"]
        if cell.variant == "stock":
            told = [f"{next(iter(claims.values())).base:.0f}", "1.00"]
        rate = f"{cell.mib_s.median * 256 / 1000:.0f}"
        waits = bottleneck_table.lock(cell.bottleneck) if cell.bottleneck else "-"
        rows.append([cell.placement or "stock", *told, rate, f"{cell.mib_s.median / stock:.2f}", waits])
    heads = (
        "placement",
        "published, k IOPS",
        "of stock",
        "measured, k IOPS",
        "of stock",
        "most tasks wait for a lock in",
    )
    return markdown.table(heads, rows, left=1)


def prepared(name: str) -> str:
    """Return the table of what patches cost that are to cost nothing: multiples of stock, with intervals."""
    cells = measurements.cells(name)
    rows = []
    for fs in dict.fromkeys(cell.fs for cell in cells):
        stock = one(cells, fs=fs, variant="stock")
        told = []
        for variant in ("prepared", "parallel"):
            of_stock = paired_interval(paired_rates(one(cells, fs=fs, variant=variant), stock))
            assert of_stock is not None
            told.append(f"{of_stock.ratio:.3f} ({of_stock.low:.3f} to {of_stock.high:.3f})")
        rows.append([TITLES[fs], _range(stock.mib_s, 0), *told])
    heads = ("", "stock, MiB/s", "patches that prepare, of stock", "all patches, 1 context, of stock")
    return markdown.table(heads, rows, left=1)


def curves(name: str, claim: str) -> str:
    """Return the table of a published claim's shape over contexts, published and measured."""
    rows: dict[tuple[str, ...], list[float | None]] = {}
    counts: list[int] = []
    for comparison in published_summary(name).comparisons:
        if comparison.id != claim:
            continue
        for curve in comparison.curves:
            counts = [point.contexts for point in curve.points]
            for said in ("published", "measured"):
                points = [getattr(point, said) for point in curve.points]
                before = rows.get((said, str(curve.affinity)), [None] * len(points))
                rows[said, str(curve.affinity)] = [
                    new if new is not None else old for new, old in zip(points, before, strict=True)
                ]
    told = [
        [f"{said}, `{affinity}`", *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]
        for (said, affinity), ratios in rows.items()
    ]
    heads = ["multiple of one context", *(str(count) for count in counts)]
    return markdown.table(heads, told, left=1)


def extents(name: str) -> str:
    """Return the table of extents over contexts, as multiples of stock's, by filesystem."""
    rows = {}
    for comparison in published_summary(name).comparisons:
        if comparison.kind == "extents":
            [curve] = comparison.curves
            heads = ["extents, of stock", *(_contexts(point.contexts) for point in curve.points)]
            ratios = [point.measured for point in curve.points]
            rows[comparison.fs] = ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]
    return markdown.table(heads, [[TITLES[fs], *told] for fs, told in rows.items()], left=1)


def _contexts(count: int) -> str:
    return f"{count} context{'s' if count > 1 else ''}"


def claims(name: str) -> str:
    """Return the table of published claims other than extents: how often stock's, published and measured."""
    rows = []
    for claim in published_summary(name).comparisons:
        if claim.kind != "extents":
            measured = claim.measured
            told = [f"{measured.ratio:.2f}", measured.setting or "stock"] if measured else ["-", "-"]
            rows.append([claim.id, claim.claim, TITLES[claim.fs], f"{claim.published.ratio:.2f}", *told])
    rows.sort(key=lambda row: row[0])
    told_by_left = [[*row[:3], row[5], row[3], row[4]] for row in rows]
    return markdown.table(("", "claim", "on", "with", "published", "measured"), told_by_left, left=4)


def modes(*names: str) -> str:
    """Return the table of AG-aware writeback's modes, MiB/s and multiples of stock, a row for each job."""
    rows = []
    for name in names:
        cells = measurements.cells(name)
        stock = one(cells, variant="stock").mib_s.median
        told = [f"{stock:.0f}"]
        for mode in ("off", *AG_MODES):
            rate = one(cells, ag_mode=mode).mib_s.median
            told.append(f"{rate:.0f} ({rate / stock:.2f})")
        rows.append([f"[`{name}`](../measurements/{name}/table.md): {AG_JOBS[name]}", *told])
    heads = ("MiB/s", "stock", *(f"`{mode}`" for mode in ("off", *AG_MODES)))
    return markdown.table(heads, rows, left=1)


def fragments(name: str) -> str:
    """Return the table of the median file's extents by mode of AG-aware writeback."""
    cells = measurements.cells(name)
    shown = [one(cells, variant="stock"), *(one(cells, ag_mode=mode) for mode in ("off", *AG_MODES))]
    spreads = [cell.extents for cell in shown if cell.extents is not None]
    of_stock = [f"{spread.median / spreads[0].median:.2f}" for spread in spreads]
    heads = ("", "stock", *(f"`{mode}`" for mode in ("off", *AG_MODES)))
    rows = [["extents", *(_range(spread, 0) for spread in spreads)], ["of stock", *of_stock]]
    return markdown.table(heads, rows, left=1)


def verdict(name: str, fs: str, limit_mib: str) -> str:
    """Return what a measurement says of one filesystem and dirty limit, as the terminal shows it."""
    cells = [
        cell for cell in measurements.cells(name) if (cell.fs, cell.dirty_limit_mib) == (fs, int(limit_mib))
    ]
    wrap = textwrap.TextWrapper(
        WIDEST, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
    )
    lines = [line for said in report.said_of(cells) for line in said.splitlines()]
    return "\n".join(wrap.fill(line) for line in lines) + "\n"
