# SPDX-License-Identifier: GPL-2.0
"""The probe of a load that changes: its figures, and what it refuses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from lab.probes import runner
from lab.probes.changes import in_guest
from lab.probes.changes.probe import Changes, Recorded
from lab.util.errors import LabError
from lab.util.paths import REPO

RECORD = '{"parts": [[0.0, "4 files"], [2.5, "nothing"]], "samples": [[0.5, 1, 0], [1.0, 2, 51200]]}'
PROBE = Changes(("xfs",), "brd", 8, 128)


def test_each_part_of_the_load_has_a_row() -> None:
    found = Recorded.model_validate_json(RECORD)
    assert found.rates == [(1.0, 100.0)]
    [boot] = PROBE.boots()
    assert PROBE.rows(boot, found) == [
        {"part": "4 files", "contexts": 2, "mib_s": 100.0, "found": None, "changes": 0},
        {"part": "nothing", "contexts": None, "mib_s": None, "found": None, "changes": 0},
    ]
    runs = pd.DataFrame([boot.axes | row for row in PROBE.rows(boot, found)])
    assert PROBE.table(runs).splitlines()[2:] == [
        "| xfs | brd | 8 | 4 files | 2 | 100 | - | 0 |",
        "| xfs | brd | 8 | nothing | - | - | - | 0 |",
    ]


def test_a_cold_start_and_a_steady_load_have_their_figures() -> None:
    # 90 MiB/s until 3 s have passed and 100 from then on; the number changes at 1, 5, 9 and 16 s.
    times = [half / 2 for half in range(41)]
    contexts = [1 + sum(at >= change for change in (1, 5, 9, 16)) for at in times]
    written = [int((90 * min(at, 3) + 100 * max(at - 3, 0)) * 1024) for at in times]
    found = Recorded(
        parts=[(0, "8 files"), (20, "nothing")], samples=list(zip(times, contexts, written, strict=True))
    )
    [boot] = PROBE.boots()
    [steady, _] = PROBE.rows(boot, found)
    assert steady["found"] == pytest.approx(0.9)
    # Of 5, 9 and 16 s: that at 1 s belongs to the start.
    assert steady["changes"] == 2


def test_one_file_lasts_until_there_is_one_context() -> None:
    header = (REPO / "kernel" / "mm" / "bdi-wb-auto.h").read_text()

    def seconds(name: str) -> float:
        [(times, parts)] = re.findall(
            rf"^#define WB_AUTO_{name}\s+\(?(?:(\d+) \* )?HZ(?: / (\d+))?", header, re.M
        )
        return int(times or 1) / int(parts or 1)

    trial_s = seconds("SETTLE_TIME") + seconds("WINDOW")
    # From 64 it is halved six times; ahead of that is a trial that finds no more, and a rate to compare with.
    assert trial_s + seconds("MIN_BACKOFF") + seconds("WINDOW") + 6 * trial_s < in_guest.ONE_FILE_S
    # And in the steady load from 8 to 4 and back.
    assert 4 * trial_s + seconds("MIN_BACKOFF") + 2 * trial_s < in_guest.STEADY_S


def test_each_part_runs_as_long_as_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    in_guest.load(8, "data.0", 256, in_guest.ONE_FILE_S)
    assert "--runtime=13000ms" in ran[0]


@pytest.mark.parametrize(
    ("fs", "device", "cpus", "words"),
    [
        ("xfz", "brd", 8, "xfz"),
        ("xfs", "brdd", 8, "unknown device 'brdd'"),
        ("xfs", "brd", 65, "65 guest CPUs"),
    ],
)
def test_what_there_is_not_is_refused_ahead_of_a_build(fs: str, device: str, cpus: int, words: str) -> None:
    with pytest.raises(LabError, match=words):
        runner.check(Changes((fs,), device, cpus, 128))


def test_draw(tmp_path: Path) -> None:
    one = Recorded.model_validate_json(RECORD)
    PROBE.draw(pd.DataFrame(), {"xfs": one, "ext4": one}, tmp_path)
    assert (tmp_path / "changes.png").read_bytes().startswith(b"\x89PNG")
