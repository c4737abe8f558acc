# SPDX-License-Identifier: GPL-2.0
"""Results on disk: results/<time>/ with summary.json (cells), meta.json and the raw data; results/latest."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
from pydantic import BaseModel

from lab.experiment.axes import Flavour, Variant
from lab.experiment.measure import (
    COSTS,
    FIGURES,
    Figures,
    FiguresOf,
    Rates,
    Spread,
    rate_spread,
    ratio,
    significant,
    spread,
)
from lab.experiment.raw import Raw
from lab.experiment.scenario import Machine
from lab.experiment.setting import Setting
from lab.profile.bottleneck import Bottleneck
from lab.profile.summary import Profile
from lab.result import profile
from lab.result.provenance import META, SUMMARY
from lab.util.paths import REPO

RESULTS = REPO / "results"
# Ends the name of the folder of a run that goes on or broke off.
INCOMPLETE = ".incomplete"
RUNS = "runs.csv"
#: Of a boot: what its runs came to, before figures are made of it.
RAW = "raw.json"
#: Figures of which every round's is kept, to compare settings round by round.
PAIRED = (*COSTS, "extents_sum")


class Key(Setting, frozen=True):
    """What tells one cell from another within a result.

    ``machine`` is that of a guest, or ``server`` for real hardware. ``dirty_limit_mib`` is None for direct
    I/O.
    """

    machine: Machine | Literal["server"] = "uml"
    cpus: int = 2
    device: str
    fs: str
    dirty_limit_mib: int | None


class Cell(Key, FiguresOf[Spread], frozen=True):
    """One row of the result: one setting, all its repetitions.

    ``kernel`` is the kernel that ran; ``variant`` tells the two bounds, which run the stock kernel too, from
    stock itself. ``rates`` are those in the parts of the window, for each round of the result; empty for a
    round without this setting. ``costs_by_round`` are the figures of :data:`PAIRED`, for the same rounds;
    empty where there is one only. Ratios are of medians in the same result; their spreads are of the ratios
    round by round. A figure that could not be had is None; ``bottleneck`` is that of the first run, where
    runs were profiled. docs/results.md explains each.
    """

    scenario: str
    kernel: Flavour
    runs: int
    steady: bool
    rates: tuple[tuple[float, ...], ...] = ()
    costs_by_round: Mapping[str, tuple[float | None, ...]] = {}
    ratio_to_stock: float | None = None
    ratio_to_stock_spread: Spread | None = None
    ratio_to_bdis: float | None = None
    ratio_to_bdis_spread: Spread | None = None
    ratio_to_direct: float | None = None
    ratio_to_direct_spread: Spread | None = None
    host_s_per_s: Spread | None = None
    lost: Spread | None = None
    bottleneck: Bottleneck | None = None
    raw: list[str]


class Clock(BaseModel):
    """What virtual time cost in a boot: seconds of the host for one of the guest, and the share lost.

    Lost is what the host's CPUs waited while CPUs of the guest waited for their turn.
    """

    host_s_per_s: float
    lost: float

    @classmethod
    def read(cls, counters: dict[str, float]) -> Self | None:
        """Make it from the counters of virtual time (docs/machine.md); None in the host's time."""
        if not counters.get("virtual_ns") or not counters.get("host_ns"):
            return None
        host_ns = counters["host_ns"]
        return cls(host_s_per_s=host_ns / counters["virtual_ns"], lost=counters["lost_ns"] / host_ns)


class Measured(BaseModel):
    """The figures of one run, with the round that it belongs to and where its raw data is."""

    key: Key
    round: int
    raw: str
    figures: Figures
    clock: Clock | None = None
    bottleneck: Bottleneck | None = None


def cells(scenario: str, measured: list[Measured]) -> list[Cell]:
    """Gather runs into cells, in order of appearance, and compare each with stock and the bounds."""
    grouped: dict[Key, dict[int, Measured]] = {}
    for one in measured:
        grouped.setdefault(one.key, {})[one.round] = one
    rounds = sorted({one.round for one in measured})
    by_round = {key: [runs.get(number) for number in rounds] for key, runs in grouped.items()}
    rates = {key: [one.figures.rates if one else None for one in runs] for key, runs in by_round.items()}
    return [_cell(scenario, key, runs, rates) for key, runs in by_round.items()]


def _cell(
    scenario: str, key: Key, by_round: list[Measured | None], rates: dict[Key, list[Rates | None]]
) -> Cell:
    runs = [one for one in by_round if one]

    def base(variant: Variant, contexts: int | None) -> list[Rates | None]:
        as_usual = Key(
            machine=key.machine,
            cpus=key.cpus,
            variant=variant,
            contexts=contexts,
            layout=key.layout,
            device=key.device,
            fs=key.fs,
            dirty_limit_mib=None if variant == "direct" else key.dirty_limit_mib,
        )
        return rates.get(as_usual, [])

    rate = rate_spread(rates[key])
    assert rate is not None  # a run without a rate has raised already
    to_stock = ratio(rates[key], base("stock", 1))
    to_bdis = ratio(rates[key], base("bdis", None))
    to_direct = ratio(rates[key], base("direct", None))

    costs = {name: [getattr(one.figures, name) if one else None for one in by_round] for name in PAIRED}
    over = {name: spread(getattr(run.figures, name) for run in runs) for name in FIGURES}
    return Cell.model_validate(
        dict(key)
        | over
        | {
            "scenario": scenario,
            "kernel": key.flavour,
            "runs": len(runs),
            "steady": all(run.figures.steady for run in runs),
            "mib_s": rate,
            "rates": tuple(
                tuple(significant(part) for part in one.parts) if one else () for one in rates[key]
            ),
            "costs_by_round": {
                name: tuple(None if value is None else significant(value) for value in values)
                for name, values in costs.items()
                if len(values) > 1
            },
            "ratio_to_stock": to_stock[0],
            "ratio_to_stock_spread": to_stock[1],
            "ratio_to_bdis": to_bdis[0],
            "ratio_to_bdis_spread": to_bdis[1],
            "ratio_to_direct": to_direct[0],
            "ratio_to_direct_spread": to_direct[1],
            "host_s_per_s": spread(run.clock.host_s_per_s if run.clock else None for run in runs),
            "lost": spread(run.clock.lost if run.clock else None for run in runs),
            "bottleneck": next((run.bottleneck for run in runs if run.bottleneck), None),
            "raw": list(dict.fromkeys(run.raw for run in runs)),
        }
    )


def is_complete(folder: Path) -> bool:
    """Say whether a result is whole, not that of a run that goes on or broke off."""
    return not folder.name.endswith(INCOMPLETE)


def create(root: Path = RESULTS) -> Path:
    """Make the folder of a new result, named for this moment and marked incomplete until :func:`publish`."""
    root.mkdir(parents=True, exist_ok=True)
    stamp = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
    for suffix in ["", *(f"-{n}" for n in range(2, 100))]:
        folder = root / f"{stamp}{suffix}{INCOMPLETE}"
        if not (root / f"{stamp}{suffix}").exists():
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    raise FileExistsError(f"{root}/{stamp}")


def publish(folder: Path) -> Path:
    """Drop the mark of an incomplete result and point ``latest`` at it, in one step each.

    Returns:
        The folder's final path.
    """
    final = folder.with_name(folder.name.removesuffix(INCOMPLETE))
    folder.rename(final)
    link = final.parent / f".latest-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(final.name)
    link.replace(final.parent / "latest")
    return final


def write(folder: Path, found: list[Cell], meta: dict[str, Any]) -> None:
    """Write ``summary.json``, the list of cells, and ``meta.json``, what they were measured with."""
    (folder / SUMMARY).write_text(text(found), encoding="utf-8")
    (folder / META).write_text(json.dumps(meta, indent=1, default=str) + "\n", encoding="utf-8")


def text(found: Iterable[Cell]) -> str:
    """Return cells as JSON, a line each, without the figures that they do not have."""
    lines = ",\n".join(
        cell.model_dump_json(exclude={name for name in FIGURES if getattr(cell, name) is None})
        for cell in found
    )
    return f"[\n{lines}\n]\n"


def without_raw(found: Iterable[Cell]) -> list[Cell]:
    """Return cells that leave their raw data behind, in the folder of the run."""
    return [cell.model_copy(update={"raw": []}) for cell in found]


def table_of_runs(measured: list[Measured]) -> pd.DataFrame:
    """Return a row for each run: its setting, its round and every figure."""
    rows = [
        one.key.model_dump()
        | {"round": one.round}
        | one.figures.model_dump()
        | {"parts_mib_s": " ".join(str(significant(part)) for part in one.figures.rates.parts)}
        | (one.clock.model_dump() if one.clock else {})
        | {"raw": one.raw}
        for one in measured
    ]
    return pd.DataFrame(rows)


def write_runs(folder: Path, measured: list[Measured]) -> None:
    """Write ``runs.csv``, a row for each run."""
    table_of_runs(measured).to_csv(folder / RUNS, index=False, lineterminator="\n")


def read(folder: Path) -> tuple[list[Cell], dict[str, Any]]:
    """Read back what :func:`write` wrote."""
    listed = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
    return [Cell.model_validate(one) for one in listed], meta


def read_raw(folder: Path) -> Raw:
    """Read what guest/load.py left in a results folder."""
    return Raw.model_validate_json((folder / RAW).read_text(encoding="utf-8"))


def run_folders(cell: Cell, folder: Path) -> list[Path]:
    """Return where the profile of each run of a cell is, if there is one, of the result in a folder."""
    return [raw.with_name(raw.name.removesuffix(".fio.json")) for raw in (folder / name for name in cell.raw)]


def read_profile(cell: Cell, folder: Path) -> Profile | None:
    """Read the profile of the first run of a cell that has one, of the result in a folder."""
    for run in run_folders(cell, folder):
        if (path := run / profile.JSON).exists():
            return Profile.model_validate_json(path.read_text(encoding="utf-8"))
    return None


def read_fio(path: Path) -> dict[str, Any]:
    """Read fio's JSON; fio may put notes ahead of it."""
    text = path.read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text[text.index("{") :])
    return parsed
