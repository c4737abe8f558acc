# SPDX-License-Identifier: GPL-2.0
"""The probe of a load that goes on for hours: its guests, its figures and its picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from lab.probes.endurance.probe import BESIDE_S, Endurance, Recorded, Round

FIRST = Round(
    at_s=20,
    writes_s=5000,
    write_ms=2.5,
    kernel_mib=100,
    programs_mib=50,
    slab_mib=40.125,
    percpu_mib=2,
    kworkers=9,
    dying_cgroups=0,
    writebacks=8,
)
LAST = FIRST.model_copy(update={"at_s": 400.0, "kernel_mib": 101.0, "kworkers": 12})
RECORD = Recorded(rounds=[FIRST] * 10 + [LAST] * 10, resizes=12_000, cgroups=900)
PROBE = Endurance(("xfs", "ext4"), 2)


def test_filesystems_share_the_hours() -> None:
    boots = PROBE.boots()
    assert [boot.arguments for boot in boots] == [("xfs", "3600"), ("ext4", "3600")]
    assert boots[0].options["timeout_s"] == 3600 + BESIDE_S


def test_first_and_last_tenth_of_the_rounds_have_a_row() -> None:
    [boot, _] = PROBE.boots()
    runs = pd.DataFrame([boot.axes | row for row in PROBE.rows(boot, RECORD)])
    assert PROBE.table(runs).splitlines()[2:] == [
        "| xfs | 20 | first 1 | 100.0 | 50.0 | 40.12 | 2.00 | 9.0 | 0.0 | 8.0 | 5,000 | 2.5 | 12,000 | 900 |",
        "| xfs | 20 | last 1 | 101.0 | 50.0 | 40.12 | 2.00 | 12.0 | 0.0 | 8.0 | 5,000 | 2.5 | 12,000 | 900 |",
    ]


def test_one_round_is_first_and_last() -> None:
    [boot, _] = PROBE.boots()
    rows = PROBE.rows(boot, RECORD.model_copy(update={"rounds": [FIRST]}))
    assert [row["part"] for row in rows] == ["first 1", "last 1"]


def rounds(**changes: Callable[[int], float]) -> dict[str, Recorded]:
    """Return an hour of rounds whose figures go as said, by the round's number."""
    made = [
        FIRST.model_copy(update={"at_s": 20.0 * number, **{name: of(number) for name, of in changes.items()}})
        for number in range(180)
    ]
    return {"xfs": RECORD.model_copy(update={"rounds": made})}


def test_what_grows_is_objected_to() -> None:
    grown = rounds(kernel_mib=lambda number: 100 + number / 20 + number % 3)
    [said] = PROBE.objections(grown)
    assert said.startswith("xfs: kernel memory, 103.5 at first, is worse by ")
    slower = rounds(writes_s=lambda number: 5000 - 5 * number + number % 7)
    assert PROBE.objections(slower)[0].startswith("xfs: writes, 4,7")


def test_a_step_that_stays_is_objected_to() -> None:
    [said] = PROBE.objections(rounds(kernel_mib=lambda number: 100 + 50 * (number > 80) + number % 3))
    assert said.startswith("xfs: kernel memory, 101.0 at first, is worse by 4")
    slower = rounds(writes_s=lambda number: 5000 - 2000 * (number > 80))
    assert PROBE.objections(slower)[0].startswith("xfs: writes, 5,000")


def test_what_goes_up_and_down_is_not() -> None:
    assert PROBE.objections(rounds(kernel_mib=lambda number: 100 + 20 * (number % 5))) == []
    # What fills up in the first quarter, and then stays.
    assert PROBE.objections(rounds(kernel_mib=lambda number: 100 + min(number, 45))) == []
    # Programs are not the kernel's.
    assert PROBE.objections(rounds(programs_mib=lambda number: 50 + number)) == []
    assert PROBE.objections({"xfs": RECORD.model_copy(update={"rounds": [FIRST, LAST]})}) == []


def test_draw(tmp_path: Path) -> None:
    PROBE.draw(pd.DataFrame(), {"xfs": RECORD, "ext4": RECORD}, tmp_path)
    assert (tmp_path / "endurance.png").read_bytes().startswith(b"\x89PNG")
