# SPDX-License-Identifier: GPL-2.0
"""Parts of pages that are made of what is kept: what the kernel's own number comes to, and a verdict."""

from __future__ import annotations

import pytest

from lab.docs import auto, derived, measurements
from lab.experiment.measure import Spread
from lab.profile.bottleneck import Bottleneck
from lab.result import results
from lab.result.results import Cell
from tests import samples


def cells(own: float, *, p99_us: float = 100.0) -> list[Cell]:
    """Return cells on a SATA SSD: stock writes 100 MiB/s, 8 contexts 110, the kernel's own number so much."""
    runs = [
        one
        for variant, contexts, rate in (
            ("stock", 1, 100.0),
            ("parallel", None, own),
            ("parallel", 1, 100.0),
            ("parallel", 8, 110.0),
        )
        for one in samples.measured(variant, contexts, 128, [rate] * 3)  # type: ignore[arg-type]
    ]
    latency = Spread(median=p99_us, min=p99_us, max=p99_us)
    return [
        cell.model_copy(
            update={"device": "sata", "cpus": 8}
            | ({"latency_p99_us": latency} if cell.finds_contexts else {})
        )
        for cell in results.cells("s", runs)
    ]


def kept(monkeypatch: pytest.MonkeyPatch, found: list[Cell]) -> None:
    monkeypatch.setattr(measurements, "cells", lambda name: found)


def test_what_is_found_names_the_numbers_that_it_is_held_against(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, cells(99))
    heads, _, row = auto.found("auto").splitlines()
    assert heads.endswith("| `auto`, of the better of 1 and 8 contexts |")
    assert row == "| SATA SSD | 1.10 | 0.99 | 0.90 |"


def test_a_load_that_is_not_plain_overwrites_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, cells(99))
    rows = auto.found("auto-overwrite", "auto-small").splitlines()[2:]
    assert rows == ["| SATA SSD | 1.10 | 0.99 | 0.90 |", "| small files, SATA SSD | 1.10 | 0.99 | 0.90 |"]
    assert "; small files, SATA SSD, XFS 0.900 |" in auto.misses("auto-overwrite", "auto-small")


def test_other_cpus_than_usual_are_named_and_have_a_column_of_as_many_contexts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sixteen = [
        cell.model_copy(update={"cpus": 16, "contexts": 16 if cell.contexts == 8 else cell.contexts})
        for cell in cells(121)
    ]
    kept(monkeypatch, [*cells(99), *sixteen])
    heads, _, *rows = auto.found("auto-overwrite").splitlines()
    assert rows == ["| SATA SSD | 1.10 | 0.99 | 0.90 |", "| SATA SSD, 16 CPUs | 1.10 | 1.21 | 1.10 |"]
    assert heads.endswith(
        "| a context per CPU, of stock | `auto`, of stock | `auto`, of the best fixed number of contexts |"
    )
    assert "SATA SSD, XFS 0.900" in auto.misses("auto-overwrite")
    assert "16 CPUs" not in auto.misses("auto-overwrite")


def test_what_readers_get_beside_writers_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, p99 = Spread(median=150, min=150, max=150), Spread(median=240, min=240, max=240)
    read = {"read_mib_s": rate, "read_latency_p99_us": p99}
    kept(monkeypatch, [cell.model_copy(update=read if cell.variant == "stock" else {}) for cell in cells(99)])
    assert auto.reads("auto-reads").splitlines()[2:] == ["| SATA SSD | XFS | 150 (0.2 ms) | - | - |"]


def test_how_long_it_took_is_shown_where_it_was_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, cells(99))
    about = {"command": "./pwb bench auto-small", "date": "2026-11-29"}
    metas = {
        "auto-small": measurements.Meta(**about, seconds=125, host={"cpus": 2}),
        "auto-reads": measurements.Meta(**about, seconds=5, boots_from_cache=1),
        "auto-disk": measurements.Meta(**about),
    }
    monkeypatch.setattr(measurements, "meta", metas.__getitem__)
    monkeypatch.setattr(measurements, "names", lambda: ["auto-disk", "auto-reads", "auto-small", "clock"])
    assert auto.took().splitlines()[2:] == [
        "| `./pwb bench auto-disk` | 4 | - | not noted |",
        "| `./pwb bench auto-reads` | 4 | - | not noted |",
        "| `./pwb bench auto-small` | 4 | 2 | 2 min 5 s |",
    ]


def test_every_cell_that_misses_what_is_asked_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, cells(98.96, p99_us=105.01))
    rows = [line.strip("| ").split(" | ") for line in auto.misses("auto").splitlines()[2:]]
    assert rows == [
        ["throughput, at least 0.99 of stock", "0 of 1", "SATA SSD, XFS 0.990"],
        ["throughput, at least 0.97 of the better of 1 and 8 contexts", "0 of 1", "SATA SSD, XFS 0.900"],
        ["p99 latency, at most 1.05 of stock", "0 of 1", "SATA SSD, XFS 1.050"],
        ["extents, at most 1.01 of stock", "1 of 1", "-"],
    ]
    kept(monkeypatch, cells(110, p99_us=105))
    assert [line.split(" | ")[1] for line in auto.misses("auto").splitlines()[2:]] == ["1 of 1"] * 4


def test_a_cell_that_misses_what_is_asked_is_shown_with_its_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = Bottleneck(shares={"idle": 0.25}, functions={"memcpy": 0.5}, lock="fsync", lock_tasks=2.0)
    profiled = [cell.model_copy(update={"bottleneck": profile}) for cell in cells(98.9, p99_us=106)]
    kept(monkeypatch, profiled)
    rows = [line.strip("| ").split(" | ") for line in auto.profiles("auto").splitlines()[2:]]
    told = ["25%", "0%", "`memcpy` 50%", "fsync (2.0)"]
    assert rows == [
        ["SATA SSD, XFS: throughput, p99 latency", "stock", "100", *told],
        ["auto contexts", "99", *told],
        ["8 contexts", "110", *told],
    ]
    kept(monkeypatch, [*cells(98.9)])
    assert auto.profiles("auto").splitlines()[2:] == []
    kept(monkeypatch, [cell.model_copy(update={"bottleneck": profile}) for cell in cells(110)])
    assert auto.profiles("auto").splitlines()[2:] == []


def test_what_is_to_cost_nothing_is_compared_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        one
        for variant, rates in (
            ("stock", [100.0, 200.0]),
            ("prepared", [99.0, 198.0]),
            ("parallel", [101.0, 202.0]),
        )
        for one in samples.measured(variant, 1, 128, rates)  # type: ignore[arg-type]
    ]
    kept(monkeypatch, results.cells("s", runs))
    [row] = derived.prepared("s").splitlines()[2:]
    assert row == "| XFS | 150 (100 to 200) | 0.990 (0.990 to 0.990) | 1.010 (1.010 to 1.010) |"


def test_verdict_of_a_page_is_what_the_terminal_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(monkeypatch, cells(150))
    lines = derived.verdict("auto", "xfs", "128").splitlines()
    assert lines[0].startswith("    xfs on sata: at 128 MiB best at auto contexts, 1.50x stock [")
    assert "      echo auto > /sys/class/bdi/MAJOR:MINOR/nwritebacks" in lines
    assert max(map(len, lines)) <= derived.WIDEST


def test_a_writer_that_got_nowhere_is_among_what_is_asked_of_the_throttle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slowest(mib_s: float) -> Spread:
        return Spread(median=mib_s, min=mib_s, max=mib_s)

    kept(
        monkeypatch,
        [
            cell.model_copy(update={"slowest_job_mib_s": slowest(0.0 if cell.contexts == 8 else 10.0)})
            for cell in cells(100)
        ],
    )
    [row] = [line for line in derived.asked("throttle").splitlines() if line.startswith("| slowest job")]
    assert row == "| slowest job at least 0.8 | 1 of 1 | 1.00 | 0 of 1 | 0.00 | 0.00 to 0.00 |"
