# SPDX-License-Identifier: GPL-2.0
"""What flushers wait for: from the lines of a trace to average numbers of flushers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lab.probes.probe import Boot, Row
from lab.probes.waits import probe as waits
from lab.probes.waits.in_guest import Flushers
from lab.util.errors import LabError

# Two seconds: a flusher sleeps for the AGF, is woken, waits for a CPU, runs, and is preempted by another; a
# kworker that does something else sleeps too.
TRACE = Path(__file__).parent / "fixtures" / "sched-trace.txt"
FOR_AGF = ("__schedule", "schedule", "xfs_buf_lock", "xfs_read_agf", "wb_workfn", "process_one_work")


def test_trace_says_what_a_flusher_did() -> None:
    flushers = Flushers()
    with TRACE.open() as lines:
        flushers.read(lines)
    assert flushers.waits == {FOR_AGF: (0.5, 1)}
    assert flushers.queued_s == pytest.approx(0.25 + 0.25)
    assert flushers.running_s == pytest.approx(0.25 + 0.25)
    assert flushers.lost == 0


def test_trace_may_begin_with_a_stack() -> None:
    flushers = Flushers()
    flushers.read(["  kworker/u8:1-35  [000] d..3.  10.000001: <stack trace>\n", " => wb_workfn\n"])
    assert flushers.waits == {}


def test_gap_in_the_trace_is_noticed() -> None:
    flushers = Flushers()
    flushers.read(["CPU:1 [LOST 231 EVENTS]\n"])
    assert flushers.lost == 1


@pytest.mark.parametrize(
    ("stack", "why"),
    [
        (FOR_AGF, "AGF"),
        (("schedule", "labblk_queue_rq", "xfs_read_agf"), "submission"),
        (("schedule", "nobody_knows", "wb_workfn"), "other"),
    ],
)
def test_reason_comes_from_the_stack(stack: tuple[str, ...], why: str) -> None:
    assert waits.reason(stack) == why


def recorded(**changes: object) -> waits.Recorded:
    """Return a window of 2 s in which one of four flushers waited half of the time."""
    found: dict[str, object] = {
        "seconds": 2.0,
        "mib_s": 40.0,
        "running_s": 1.0,
        "queued_s": 0.5,
        "waits": [[list(FOR_AGF), 1.0, 7], [["schedule", "nobody_knows", "wb_workfn"], 0.2, 1]],
        "lost": 0,
        "in_one_ag": 0.754,
    }
    return waits.Recorded.model_validate(found | changes)


PROBE = waits.Waits("xfs", (4,), ("fs",), ("apart",))
[BOOT] = PROBE.boots()


def row(boot: Boot = BOOT, **changes: object) -> Row:
    [found] = PROBE.rows(boot, recorded(**changes))
    return found


def test_seconds_become_flushers() -> None:
    assert row() == {
        "mib_s": 40.0,
        "in_one_ag": 0.75,
        "on a CPU": 0.5,
        "ready, no CPU": 0.25,
        "AGF": 0.5,
        "other": 0.1,
        "no work": 2.65,
    }


def test_trace_with_gaps_is_refused() -> None:
    with pytest.raises(LabError, match="apart-fs-4 has 3 gaps"):
        row(lost=3)


def test_settings_leave_out_what_is_no_choice() -> None:
    probe = waits.Waits("xfs", (1, 8), ("ino", "fs"), ("apart",))
    assert [boot.name for boot in probe.boots()] == ["apart-ino-1", "apart-ino-8", "apart-fs-8"]


@pytest.mark.parametrize(("affinity", "place"), [("inode", "apart"), ("ino", "appart")])
def test_unknown_setting_is_refused(affinity: str, place: str) -> None:
    with pytest.raises(LabError, match=r"unknown (affinity|place)"):
        waits.Waits("xfs", (1,), (affinity,), (place,))


def test_place_that_a_filesystem_has_not_is_refused() -> None:
    with pytest.raises(LabError, match="only xfs has it"):
        waits.Waits("ext4", (1,), ("ino",), ("full",))


def test_table_and_picture_have_the_states_that_occur(tmp_path: Path) -> None:
    runs = pd.DataFrame([BOOT.axes | row(), BOOT.axes | row(waits=[])])
    head, _, first, second = PROBE.table(runs).splitlines()
    assert head.endswith("| MiB/s | in one AG | on a CPU | ready, no CPU | AGF | other | no work |")
    assert first == "| apart | fs | 4 | 40 | 0.75 | 0.50 | 0.25 | 0.50 | 0.10 | 2.65 |"
    assert second == "| apart | fs | 4 | 40 | 0.75 | 0.50 | 0.25 | 0.00 | 0.00 | 3.25 |"
    PROBE.draw(runs, {}, tmp_path)
    assert (tmp_path / "waits.png").stat().st_size > 1000
