# SPDX-License-Identifier: GPL-2.0
"""The probe of the clock with made-up machines: what is a line of the table, and when a bound is met."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.machine.hardware import Hardware
from lab.probes.clock import probe as clock
from lab.probes.clock.row import HEADING, Row
from lab.probes.clock.trial import Outcome, Trial
from lab.util.errors import LabError

Change = Callable[[Trial], float]


def outcome(lines: list[str], counters: dict[str, float] | None = None) -> Outcome:
    return Outcome(lines, [10.0 + number for number in range(len(lines))], counters or {})


def exact(off: Change = lambda trial: 1.0) -> Callable[[Trial], Outcome]:
    """Return a machine that does everything as it should; ``off`` is by how much a trial is not."""

    def run(trial: Trial) -> Outcome:
        words = trial.script.split()
        factor = off(trial)
        if words[0] == "overwrite":
            knob = next(at for at, word in enumerate(words) if word in ("-", "$PWB_BDI/nwritebacks"))
            values = words[knob + 1 :]
            base = {"xfs": 1000, "ext4": 900, "f2fs": 700}[trial.fs]
            rates = [base * (2.0 if value == "8" else 1.0) * factor for value in values]
            lines = [line for one in rates for line in ("begin", "end", " ".join([f"{one:.3f}"] * 10))]
            return outcome(lines, {"lost_ns": 1.0, "host_ns": 100.0})
        if words[0] == "loop":
            cpus = int(words[2])
            return outcome(["begin", "end", *[f"{int(words[1]) * factor:.0f}"] * cpus])
        if words[0] == "pages":
            return outcome([f"{50_000 * factor:.1f}"])
        if words[0] == "nap":
            seconds = int(words[1]) * factor
            return outcome([f"{seconds * 1e9:.0f}"], {"virtual_ns": (3 + seconds) * 1e9})
        if words[0] == "handover":
            return outcome([f"{400.0 * factor:.2f}"] * len(clock.LOCKS))
        assert "fio" in words
        report = {"jobs": [{"write": {"bw_bytes": 20 * (1 << 20) * factor}}]}
        return outcome(json.dumps(report, indent=1).splitlines())

    return run


def test_right_clock_meets_every_bound() -> None:
    found = [row for name in clock.TESTS for row in clock.rows(name, exact())]
    assert {row.test for row in found} == set(clock.TESTS)
    assert [row for row in found if row.met is False] == []
    # What is only told has no bound.
    assert {row.test for row in found if row.met is None} == {"sensitivity", "uml", "speed"}


OFF: dict[str, tuple[Change, set[str]]] = {
    "the third boot is slower": (lambda trial: 0.97 if trial.turn == 3 else 1.0, {"repeat"}),
    "one context costs": (lambda trial: 0.97 if trial.kernel == "parallel" else 1.0, {"repeat", "stream"}),
    "load counts": (lambda trial: 0.98 if trial.loaded else 1.0, {"load", "lock"}),
    "all at once take longer": (
        lambda trial: 1.02 if trial.script == f"loop {clock.LOOP} 8" else 1.0,
        {"loop"},
    ),
    "the device is slow": (lambda trial: 0.98 if "pages" in trial.script else 1.0, {"device"}),
    "the rate is missed": (lambda trial: 1.03 if "--rate" in trial.script else 1.0, {"rate"}),
    "sleep is long": (lambda trial: 1.02 if "nap" in trial.script else 1.0, {"sleep"}),
    "locks overlap": (lambda trial: 0.4 if "handover" in trial.script else 1.0, {"lock"}),
    "the quantum counts": (
        lambda trial: 1.03 if trial.quantum_ns < Hardware.quantum_ns else 1.0,
        {"sensitivity", "stream"},
    ),
    "turns and a stream are in step": (
        lambda trial: (
            0.97 if trial.script == clock.STREAM and trial.quantum_ns > Hardware.quantum_ns else 1.0
        ),
        {"stream"},
    ),
    "64 CPUs are slow": (lambda trial: 1.02 if trial.cpus == 64 else 1.0, {"speed"}),
}


@pytest.mark.parametrize("fault", OFF)
def test_wrong_clock_is_seen(fault: str) -> None:
    off, tests = OFF[fault]
    found = [row for name in clock.TESTS for row in clock.rows(name, exact(off))]
    assert {row.test for row in found if row.met is False} == tests


def test_slow_machine_is_seen() -> None:
    cores = len(os.sched_getaffinity(0))

    def run(trial: Trial) -> Outcome:
        right = exact()(trial)
        # A second of each guest takes half a minute for each of the cores: too long for 8 CPUs, not for 16.
        slow = [at * 30 * cores * clock.WINDOW_MS / 1e3 for at in right.at_s]
        return Outcome(right.lines, slow, {"lost_ns": 3.0, "host_ns": 100.0})

    missed = [row.what for row in clock.rows("speed", run) if row.met is False]
    assert missed == [
        "8 CPUs, from the start to the command",
        f"8 CPUs, 8 contexts on xfs, a guest on each of {cores} cores, host's seconds for one of either",
        "8 CPUs, 8 contexts on xfs, time lost at the barrier",
        "16 CPUs, from the start to the command",
        "16 CPUs, 16 contexts on xfs, time lost at the barrier",
    ]


def test_guests_on_each_core_have_it_alone() -> None:
    def run(trial: Trial) -> Outcome:
        return Outcome([str(trial.turn), *map(str, sorted(os.sched_getaffinity(0)))], [])

    cores = sorted(os.sched_getaffinity(0))
    found = clock.on_each_core(run, clock.cell("stock"))
    assert [outcome.lines for outcome in found] == [[str(n), str(core)] for n, core in enumerate(cores, 1)]
    assert sorted(os.sched_getaffinity(0)) == cores


def test_host_seconds_are_those_of_the_window() -> None:
    ran = Outcome(["begin", "end", "1 2", "begin", "end", "3 4"], [10, 13.5, 13.6, 20, 29, 29.1])
    assert ran.windows_s() == [3.5, 9]
    assert ran.figures() == [[1, 2], [3, 4]]


def test_both_kernels_in_one_boot_of_a_setting() -> None:
    trials: list[Trial] = []

    def run(trial: Trial) -> Outcome:
        trials.append(trial)
        return exact()(trial)

    clock.rows("repeat", clock.once(run))
    clock.rows("load", clock.once(run))
    assert len(trials) == 2 * 3 + 2 * 3 * 2
    trials.clear()
    shared = clock.once(run)
    clock.rows("repeat", shared)
    clock.rows("load", shared)
    # The boots of stock on an idle host are the same.
    assert len(trials) == 2 * 3 + 3 * 3


def test_guest_that_fails_is_a_line() -> None:
    def run(trial: Trial) -> Outcome:
        if trial.loaded:
            raise LabError("the guest's time was up\nmore")
        return exact()(trial)

    [row] = clock.rows("load", run)
    assert (row.met, row.measured) == (False, "the guest's time was up")


def test_lines_before_a_failure_are_kept() -> None:
    def run(trial: Trial) -> Outcome:
        if trial.cpus == 64:
            raise LabError("no room")
        return exact()(trial)

    found = clock.rows("speed", run)
    assert len(found) == 10
    assert [row.met for row in found].count(False) == 1


def test_names() -> None:
    assert clock.chosen([]) == list(clock.TESTS)
    assert clock.chosen(["uml", "loop"]) == ["loop", "uml"]
    with pytest.raises(LabError, match="unknown test 'lop': expected loop"):
        clock.chosen(["lop"])


def line(test: str, measured: str) -> Row:
    return Row(test=test, what="it", expected="1 s", measured=measured, bound="1%", met=True)


def test_result_keeps_other_tests(tmp_path: Path) -> None:
    folder = tmp_path / "clock"
    clock.keep([line("sleep", "old"), line("sleep", "older")], [], folder)
    clock.keep([line("loop", "new")], [], folder)
    every = clock.keep([line("sleep", "new")], [], folder)
    assert [(row.test, row.measured) for row in every] == [("loop", "new"), ("sleep", "new")]
    assert len(json.loads((folder / "summary.json").read_text())) == 2
    assert (folder / "table.md").read_text() == HEADING + (
        "| test | what | expected | measured | bound | met |\n|---|---|---|---|---|---|\n"
        "| loop | it | 1 s | new | 1% | yes |\n| sleep | it | 1 s | new | 1% | yes |\n"
    )
