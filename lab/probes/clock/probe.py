# SPDX-License-Identifier: GPL-2.0
"""Is the clock of the machine ``smp`` right? A table of what must hold, each line with what was found."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from lab.machine.hardware import Hardware
from lab.probes.clock import trial as trials
from lab.probes.clock.row import Row, apart, below, page, repeated, table
from lab.probes.clock.trial import Outcome, Run, Trial
from lab.result import provenance
from lab.tree.build import Kernel
from lab.util.errors import LabError, unknown_name
from lab.util.lock import whole_machine

NAME = "clock"
BOOTS = 3
CONTEXTS = 8
# A cell: jobs overwrite cached files at random, 4 KiB at a time, and what is written back is counted.
FILE_MIB = 64
LIMIT_MIB = 128
DEVICE_MIB = 1280
RAMP_MS, WINDOW_MS = 100, 800
# User-mode Linux has the host's clock and its noise.
UML_RAMP_MS, UML_WINDOW_MS = 2000, 4000
LOOP = 50_000_000
SHORT_LOOP = 5_000_000
PAGES, PAGES_PER_S = 10_000, 50_000
RATE_MIB_S = 20
NAP_S, LONG_NAP_S = 1, 11
# One job and one flusher, which take the lock of one file's page cache for each page.
STREAM = (
    "fio --name=stream --rw=write --bs=64k --size=512m --fallocate=none --invalidate=0 --time_based"
    " --ramp_time=1 --runtime=2 --clocksource=clock_gettime --output-format=json"
)
LOCKS = [(kind, cpus) for kind in ("round", "ticket", "spin") for cpus in (2, 4, 8)]
HANDOVERS = 100_000
# What the lock is held for: see handover.c.
HELD_NS = 200
HALF_QUANTUM = "half the quantum"
QUANTA: dict[str, dict[str, Any]] = {
    HALF_QUANTUM: {"quantum_ns": Hardware.quantum_ns // 2},
    "twice the quantum": {"quantum_ns": Hardware.quantum_ns * 2},
}
SETTINGS: dict[str, dict[str, Any]] = {
    **QUANTA,
    "PAUSE counts 40": {"pause": 40},
    "500 MIPS": {"mips": 500},
    "2,000 MIPS": {"mips": 2000},
}


def cell(kernel: str, contexts: Sequence[int] = (), *, fs: str = "xfs", cpus: int = CONTEXTS) -> Trial:
    """Return the trial that measures one cell, or one for each number of contexts in the same boot."""
    knob = f"$PWB_BDI/nwritebacks {' '.join(map(str, contexts))}" if contexts else "- -"
    return Trial(
        f"overwrite {cpus} {FILE_MIB} {RAMP_MS} {WINDOW_MS} {knob}",
        ("overwrite",),
        kernel=kernel,
        cpus=cpus,
        fs=fs,
        mkfs=("-d", f"agcount={cpus}") if fs == "xfs" else (),
        device_mib=DEVICE_MIB,
        mem_mib=DEVICE_MIB + cpus * FILE_MIB + 1024,
        limit_mib=LIMIT_MIB,
    )


def mib_s(outcome: Outcome) -> list[float]:
    """Return what each cell of a boot came to."""
    return [statistics.fmean(parts) for parts in outcome.figures()]


def stock_and_contexts(
    run: Run, contexts: Sequence[int] = (CONTEXTS,), fs: str = "xfs", **changes: Any
) -> list[float]:
    """Measure stock and numbers of contexts on 8 CPUs, with changes to the trials, in MiB/s."""
    stock = mib_s(run(replace(cell("stock", fs=fs), **changes)))
    return stock + mib_s(run(replace(cell("parallel", contexts, fs=fs), **changes)))


def turns(run: Run, contexts: Sequence[int], **changes: Any) -> list[tuple[float, ...]]:
    """Measure stock and numbers of contexts in several boots, in MiB/s; return the boots of each."""
    found = [stock_and_contexts(run, contexts, turn=number, **changes) for number in range(1, BOOTS + 1)]
    return list(zip(*found, strict=True))


def fio_mib_s(outcome: Outcome) -> float:
    """Return what a fio job has written in a second, in MiB."""
    written: float = json.loads("\n".join(outcome.lines))["jobs"][0]["write"]["bw_bytes"]
    return written / (1 << 20)


def repeat(run: Run) -> Iterable[Row]:
    """The same cell in several boots."""
    stock, one, many = turns(run, (1, CONTEXTS))
    yield repeated(f"stock, {BOOTS} boots", stock, 0.01, "MiB/s")
    yield repeated(f"one context, {BOOTS} boots", one, 0.02, "MiB/s")
    yield repeated(f"{CONTEXTS} contexts, {BOOTS} boots", many, 0.02, "MiB/s")
    medians = [statistics.median(found) for found in (one, stock)]
    yield apart(
        "one context against stock, medians", medians[0], medians[1], most=0.02, unit="MiB/s", digits=0
    )


def load(run: Run) -> Iterable[Row]:
    """The same cells on an idle host and on one that has more to do than it can.

    Boots differ by themselves, so several of each are compared.
    """
    idle, busy = (turns(run, (CONTEXTS,), loaded=loaded) for loaded in (False, True))
    for name, before, after in zip(("stock", f"{CONTEXTS} contexts"), idle, busy, strict=True):
        what = f"{name}, two busy loops a core beside it, medians of {BOOTS} boots each"
        medians = [statistics.median(found) for found in (after, before)]
        yield apart(what, *medians, most=0.01, unit="MiB/s", digits=0)


def loop(run: Run) -> Iterable[Row]:
    """A loop of known length, alone and on all CPUs at once."""
    expected_ms = LOOP / 1e6
    alone, together = (max(chain(*run(loop_trial(LOOP, cpus)).figures())) / 1e6 for cpus in (1, CONTEXTS))
    yield apart(
        f"a loop of {LOOP:,} instructions on one CPU", alone, expected_ms, most=0.01, unit="ms", digits=2
    )
    yield apart(
        f"the same on {CONTEXTS} CPUs at once, the slowest", together, alone, most=0.01, unit="ms", digits=2
    )


def loop_trial(instructions: int, busy: int, cpus: int = CONTEXTS) -> Trial:
    """Return the trial of a loop on some of the CPUs."""
    return Trial(f"loop {instructions} {busy}", ("loop",), cpus=cpus, mem_mib=1024 + 16 * cpus)


def device(run: Run) -> Iterable[Row]:
    """A device of known rate."""
    trial = Trial(f"pages $PWB_DEV 4 {PAGES}", ("pages",), device="one-channel")
    [[found]] = run(trial).figures()
    yield apart(
        "direct writes to a device of 20 us a page", found, PAGES_PER_S, most=0.01, unit="pages/s", digits=0
    )


def rate(run: Run) -> Iterable[Row]:
    """A fio job of a set rate."""
    job = f"fio --name=rate --rate={RATE_MIB_S}m --rw=randwrite --bs=4k --size=64m --time_based --runtime=2"
    trial = Trial(f"{job} --clocksource=clock_gettime --output-format=json", fs="xfs", device_mib=512)
    outcome = run(trial)
    what = f"a fio job with rate={RATE_MIB_S}m"
    yield apart(what, fio_mib_s(outcome), RATE_MIB_S, most=0.02, unit="MiB/s", digits=2)


def sleep(run: Run) -> Iterable[Row]:
    """A sleep of known length, by the guest's clock and by the machine's."""
    short, long = (run(Trial(f"nap {seconds}", ("nap",))) for seconds in (NAP_S, LONG_NAP_S))
    [[found_ns]] = short.figures()
    yield apart(f"sleep {NAP_S}, by the guest's clock", found_ns / 1e9, NAP_S, most=0.01, unit="s", digits=3)
    more_s = (long.clock["virtual_ns"] - short.clock["virtual_ns"]) / 1e9
    what = (
        f"a guest that sleeps {LONG_NAP_S} s ends later than one that sleeps {NAP_S}, by the machine's clock"
    )
    yield apart(what, more_s, LONG_NAP_S - NAP_S, most=0.01, unit="s", digits=3)


def lock_trial() -> Trial:
    """Return the trial that hands locks round."""
    script = "; ".join(f"handover {kind} {cpus} {HANDOVERS}" for kind, cpus in LOCKS)
    return Trial(script, ("handover",))


def lock(run: Run) -> Iterable[Row]:
    """A lock that goes round, on an idle and on a busy host."""
    idle, busy = (run(replace(lock_trial(), loaded=loaded)).figures() for loaded in (False, True))
    for (kind, cpus), [before], [after] in zip(LOCKS, idle, busy, strict=True):
        what = f"a {kind} lock goes round {cpus} CPUs, two busy loops a core beside it"
        yield apart(what, after, before, most=0.01, unit="ns a time")
    for (kind, cpus), [found] in zip(LOCKS, idle, strict=True):
        yield Row(
            test="",
            what=f"a {kind} lock goes round {cpus} CPUs, each of which holds it for {HELD_NS} ns",
            expected=f"at least {HELD_NS} ns a time",
            measured=f"{found:.1f} ns a time",
            bound="no less",
            met=found >= HELD_NS,
            figures={"found": found},
        )


def sensitivity(run: Run) -> Iterable[Row]:
    """What the settings of virtual time do to the ratio that is shown."""
    for fs in ("xfs", "f2fs"):
        before = stock_and_contexts(run, fs=fs)
        for name, changes in SETTINGS.items():
            after = stock_and_contexts(run, fs=fs, **changes)
            yield from moved(fs, name, before, after)
    trials = (lock_trial(), replace(lock_trial(), quantum_ns=Hardware.quantum_ns // 2))
    before_ns, after_ns = (run(trial).figures() for trial in trials)
    for (kind, cpus), [before_one], [after_one] in zip(LOCKS, before_ns, after_ns, strict=True):
        what = f"a {kind} lock goes round {cpus} CPUs, {HALF_QUANTUM}"
        yield apart(what, after_one, before_one, most=0.02, unit="ns a time")


def moved(fs: str, setting: str, before: Sequence[float], after: Sequence[float]) -> Iterable[Row]:
    """Make the lines for a setting; at half the quantum nothing may move."""
    ratio_after, ratio_before = after[1] / after[0], before[1] / before[0]
    promised = setting == HALF_QUANTUM
    row = apart(
        f"{fs}, {CONTEXTS} contexts over stock, {setting}",
        ratio_after,
        ratio_before,
        most=0.02,
        unit="x",
        digits=2,
    )
    yield row if promised else row.model_copy(update={"bound": "", "met": None})
    if promised:
        yield apart(f"{fs}, stock, {setting}", after[0], before[0], most=0.02, unit="MiB/s", digits=0)
        yield apart(
            f"{fs}, {CONTEXTS} contexts, {setting}", after[1], before[1], most=0.02, unit="MiB/s", digits=0
        )


def stream(run: Run) -> Iterable[Row]:
    """One stream, whose writer and flusher go in step with each other: no quantum may meet that step."""
    trial = Trial(STREAM, fs="xfs", device_mib=DEVICE_MIB, mem_mib=DEVICE_MIB + 2048, limit_mib=LIMIT_MIB)
    one_context = f"echo 1 > $PWB_BDI/nwritebacks; {STREAM}"
    before: list[float] = []
    for name, changes in {"": {}, **QUANTA}.items():
        found = [
            fio_mib_s(run(replace(trial, script=script, kernel=kernel, **changes)))
            for kernel, script in (("stock", STREAM), ("parallel", one_context))
        ]
        if not before:
            before = found
            yield apart(
                "xfs, one context against stock", found[1], found[0], most=0.02, unit="MiB/s", digits=0
            )
            continue
        for what, after, expected in zip(("stock", "one context"), found, before, strict=True):
            yield apart(f"xfs, {what}, {name}", after, expected, most=0.02, unit="MiB/s", digits=0)


def uml(run: Run) -> Iterable[Row]:
    """The same cells with 2 CPUs on both machines."""
    for fs in ("xfs", "ext4"):
        ratios = {}
        for machine in ("smp", "uml"):
            trials = [replace(cell("stock", fs=fs, cpus=2), machine=machine)]
            trials.append(replace(cell("parallel", (2,), fs=fs, cpus=2), machine=machine))
            if machine == "uml":
                trials = [replace(trial, script=slowly(trial.script)) for trial in trials]
            stock, parallel = (mib_s(run(trial))[0] for trial in trials)
            ratios[machine] = parallel / stock
        yield Row(
            test="",
            what=f"{fs}, 2 CPUs, 2 jobs: 2 contexts over stock on both machines",
            expected=f"uml {ratios['uml']:.2f} x",
            measured=f"smp {ratios['smp']:.2f} x",
            figures=ratios,
        )


def slowly(script: str) -> str:
    """Return the script of a cell with the times for a machine on the host's clock."""
    return script.replace(f" {RAMP_MS} {WINDOW_MS} ", f" {UML_RAMP_MS} {UML_WINDOW_MS} ")


def every_lane(trial: Trial) -> Trial:
    """Return a trial with as many CPUs at once as the host has cores."""
    return replace(trial, lanes=None)


def on_each_core(run: Run, trial: Trial) -> list[Outcome]:
    """Do a trial on each of the host's cores at once, as the cells of a measurement are run."""
    cores = sorted(os.sched_getaffinity(0))

    def on_core(core: int) -> Outcome:
        # Of this thread only; its guest inherits it.
        os.sched_setaffinity(0, {core})
        return run(replace(trial, turn=trial.turn + cores.index(core)))

    with ThreadPoolExecutor(len(cores)) as pool:
        return list(pool.map(on_core, cores))


def speed(run: Run) -> Iterable[Row]:
    """What virtual time costs in the host's."""
    for cpus, most_s, most_boot_s in ((8, 25, 15), (16, 55, 30)):
        boot_s = run(every_lane(loop_trial(LOOP, cpus, cpus))).at_s[0]
        yield below(f"{cpus} CPUs, from the start to the command", boot_s, most_boot_s, "s")
        trial = cell("parallel", (cpus,), cpus=cpus)
        what = f"{cpus} CPUs, {cpus} contexts on xfs"
        outcomes = on_each_core(run, trial)
        host_s = statistics.fmean(window_s(outcome) for outcome in outcomes) / len(outcomes)
        beside = f"a guest on each of {len(outcomes)} cores, host's seconds for one of either"
        yield below(f"{what}, {beside}", host_s, most_s, "s")
        yield below(f"{what}, time lost at the barrier", max(map(lost_percent, outcomes)), 2, "%")
        alone = run(every_lane(trial))
        yield Row(
            test="",
            what=f"{what}, one guest with a lane on each core",
            expected="",
            measured=f"{window_s(alone):.1f} s of the host's for one, {lost_percent(alone):.1f} % lost",
            figures={"host_s": window_s(alone), "lost_percent": lost_percent(alone)},
        )
    for cpus in (32, 64):
        slowest_ms = max(chain(*run(every_lane(loop_trial(SHORT_LOOP, cpus, cpus))).figures())) / 1e6
        what = f"{cpus} CPUs boot, and a loop of {SHORT_LOOP:,} instructions on each takes"
        yield apart(what, slowest_ms, SHORT_LOOP / 1e6, most=0.01, unit="ms", digits=2)


def window_s(outcome: Outcome) -> float:
    """Return the host's seconds for a second of a cell's window."""
    return outcome.windows_s()[0] / (WINDOW_MS / 1e3)


def lost_percent(outcome: Outcome) -> float:
    """Return the part of the host's time in which CPUs waited for their turn and none could run."""
    return 100 * outcome.clock["lost_ns"] / outcome.clock["host_ns"]


TESTS: dict[str, Callable[[Run], Iterable[Row]]] = {
    "repeat": repeat,
    "load": load,
    "loop": loop,
    "device": device,
    "rate": rate,
    "sleep": sleep,
    "lock": lock,
    "sensitivity": sensitivity,
    "stream": stream,
    "uml": uml,
    "speed": speed,
}


def chosen(names: Sequence[str]) -> list[str]:
    """Return the tests that are asked for, all of them without a name.

    Raises:
        LabError: there is no such test.
    """
    for name in names:
        if name not in TESTS:
            raise unknown_name("test", name, TESTS)
    return [name for name in TESTS if not names or name in names]


def rows(name: str, run: Run) -> list[Row]:
    """Do one test and return its lines; a guest that fails is one of them."""
    found: list[Row] = []
    try:
        # One by one: what was found before a failure is kept.
        for row in TESTS[name](run):
            found.append(row)
    except LabError as error:
        said = str(error).splitlines()[0]
        found.append(Row(test=name, what="the test itself", expected="ends", measured=said, met=False))
    return [row.model_copy(update={"test": name}) for row in found]


def once(run: Run) -> Run:
    """Return a runner that does equal trials once: several tests look at the same cell."""
    known: dict[Trial, Outcome] = {}

    def run_once(trial: Trial) -> Outcome:
        if trial not in known:
            known[trial] = run(trial)
        return known[trial]

    return run_once


def measure(
    names: Sequence[str],
    kernel_of: Callable[[str, str], Kernel],
    folder: Path,
    show: Callable[[str], None],
) -> list[Row]:
    """Do tests, keep the lines of each as soon as it is done, and return them.

    Args:
        names: of the tests.
        kernel_of: returns a kernel by its flavour and machine.
        folder: of the result.
        show: takes the table of each test.

    Raises:
        LabError: something is being measured already, or a kernel could not be built.
    """
    kernels: dict[tuple[str, str], Kernel] = {}

    def boot(trial: Trial) -> Outcome:
        of = trial.kernel, trial.machine
        kernels[of] = kernel_of(*of)
        return trials.boot(trial, kernels[of].path)

    run = once(boot)
    found = []
    with whole_machine("measuring the clock"):
        for name in names:
            lines = rows(name, run)
            keep(lines, kernels.values(), folder)
            show(table(lines))
            found += lines
    return found


def keep(found: Sequence[Row], kernels: Iterable[Kernel], folder: Path) -> list[Row]:
    """Put lines into the result in a folder, instead of those of the same tests; return all lines of it.

    Args:
        found: the lines.
        kernels: those that were booted.
        folder: of the result; what it has of another kernel is left behind.
    """
    booted = list(kernels)
    before = [Row.model_validate(row) for row in provenance.earlier_rows(folder, booted)]
    new = {row.test for row in found}
    every = [row for row in before if row.test not in new] + list(found)
    every.sort(key=lambda row: list(TESTS).index(row.test))
    rows = [row.model_dump() for row in every]
    has_earlier = len(every) > len(found)
    provenance.write(folder, NAME, rows, booted, table=page(every), has_earlier=has_earlier)
    return every
