# SPDX-License-Identifier: GPL-2.0
"""Virtual time: the clocks of vtime/clock.c on threads that only count, and the cost of instructions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.util.paths import REPO

HERE = Path(__file__).parent / "vtime"
QUANTUM = 2000
BLOCK = 7
PAUSE = 140
LENGTH = 400_000
STALL = 100_000


def _compiled(name: str, parts: list[str], folder: Path) -> Path:
    program = folder / name
    sources = [str(HERE / f"{name}.c"), *(str(REPO / "vtime" / part) for part in parts)]
    subprocess.run(
        ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", str(program), *sources],
        check=True,
    )
    return program


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled("clock", ["clock.c"], tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled("costs", ["costs.c"], tmp_path_factory.mktemp("costs"))


def _said(program: Path, *arguments: str, host_cpus: int | None = None) -> dict[str, list[int]]:
    """Run a test of clock.c, on that many of the host's CPUs, and return what it said by name."""
    allowed = sorted(os.sched_getaffinity(0))
    mask = ",".join(map(str, allowed[:host_cpus]))
    done = subprocess.run(
        ["taskset", "-c", mask, str(program), *arguments], capture_output=True, text=True, check=True
    )
    found: dict[str, list[int]] = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        found.setdefault(name, []).append(int(value))
    return found


@pytest.mark.parametrize(("host_cpus", "lanes"), [(1, 1), (2, 2)])
@pytest.mark.parametrize("cpus", [1, 2, 8])
def test_no_cpu_runs_ahead(clock: Path, cpus: int, host_cpus: int, lanes: int) -> None:
    said = _said(clock, "even", str(cpus), host_cpus=host_cpus)
    bound = QUANTUM if lanes == 1 else 2 * QUANTUM
    assert said["furthest_ahead"][0] <= bound + BLOCK


@pytest.mark.parametrize("host_cpus", [1, 2])
def test_turns_differ(clock: Path, host_cpus: int) -> None:
    # Equal ones would meet what two CPUs do in step always at the same place.
    turns = _said(clock, "even", "2", host_cpus=host_cpus)["turn"]
    assert all(QUANTUM * 3 // 4 <= turn <= QUANTUM for turn in turns)
    assert len(set(turns)) > len(turns) // 2


@pytest.mark.parametrize("host_cpus", [1, 2])
def test_equal_work_takes_equal_time(clock: Path, host_cpus: int) -> None:
    ended = _said(clock, "even", "8", host_cpus=host_cpus)["ended_ns"]
    assert len(ended) == 8
    assert max(ended) - min(ended) <= BLOCK
    # Alone as together: nobody is held up by the others.
    alone = _said(clock, "even", "1", host_cpus=host_cpus)["ended_ns"]
    assert abs(ended[0] - alone[0]) <= BLOCK


@pytest.mark.parametrize("cpus", [2, 8])
def test_spinning_ends_when_the_lock_is_released(clock: Path, cpus: int) -> None:
    late = _said(clock, "spin", str(cpus), host_cpus=1)["latest_ns"][0]
    # A PAUSE, grown by what was waited before, and the share of a quantum that the holder runs meanwhile.
    assert late <= PAUSE + 1500 // 8 + QUANTUM // 8


@pytest.mark.parametrize("cpus", [2, 8])
def test_a_long_wait_ends_no_later_than_some_pauses(clock: Path, cpus: int) -> None:
    # In a queue of waiters each is late after the one before it: an eighth of so long a wait would add up.
    late = _said(clock, "spin", str(cpus), "1000", "20000", host_cpus=1)["latest_ns"][0]
    assert late <= 4 * PAUSE + QUANTUM // 8


@pytest.mark.parametrize("host_cpus", [1, 2])
@pytest.mark.parametrize("cpus", [1, 8])
def test_others_go_on_while_a_cpu_stalls(clock: Path, cpus: int, host_cpus: int) -> None:
    said = _said(clock, "stall", str(cpus), host_cpus=host_cpus)
    # What they are ahead or behind is what CPUs always may be, and the blocks that are under way.
    assert all(abs(executed - STALL) <= 2 * QUANTUM + 3 * BLOCK for executed in said.get("others", []))
    assert len(said.get("others", [])) == cpus - 1
    stalled, *others = said["ended_ns"]
    assert abs(stalled - LENGTH - STALL) <= BLOCK
    assert all(abs(ended - LENGTH) <= BLOCK for ended in others)


def test_a_cpu_that_stalls_leaves_by_the_gate_and_stalls_on_later(clock: Path) -> None:
    said = _said(clock, "gate", host_cpus=1)
    assert said["left_ns"][0] <= QUANTUM
    assert STALL <= said["ended_ns"][0] <= STALL + 3 * BLOCK


@pytest.mark.parametrize("mips", [500, 1000, 2000])
def test_deadlines(clock: Path, mips: int) -> None:
    said = _said(clock, "deadlines", "1", str(mips))
    assert said["early"] == [0]
    assert said["halted_turn"] == said["jumped"] == [1]
    # Never before the deadline, or its timer would not be due, and the jump be made again for ever.
    assert 9_000_001 <= said["after_jump_ns"][0] <= 9_000_003
    assert said["resumed_ns"][0] - said["after_jump_ns"][0] in (998, 1000)
    assert said["no_jump"] == [0]
    assert said["due_turn"] == [1]


@pytest.mark.parametrize(
    ("code", "cost"),
    [
        ("f3 90", "pause"),
        ("90", "1"),
        ("f0 48 0f b1 0a", "20"),  # lock cmpxchg %rcx,(%rdx)
        ("48 87 0a", "20"),  # xchg %rcx,(%rdx): locks without the prefix
        ("48 87 ca", "1"),  # xchg between registers does not
        ("0f ae f0", "33"),  # mfence
        ("0f ae e8", "1"),  # lfence
        ("48 f7 f1", "26"),  # div %rcx
        ("48 f7 d9", "1"),  # neg %rcx
        ("0f 31", "25"),  # rdtsc
        ("0f 01 f9", "25"),  # rdtscp
        ("0f 01 38", "100"),  # invlpg (%rax)
        ("0f 22 d8", "100"),  # mov %rax,%cr3
        ("0f 22 c0", "1"),  # mov %rax,%cr0
        ("0f 30", "100"),  # wrmsr
        ("0f a2", "100"),  # cpuid
        ("ed", "1000"),  # in (%dx),%eax
        ("66 ef", "1000"),  # out %ax,(%dx)
        ("65 48 8b 04 25 00 00 00 00", "1"),  # mov %gs:0,%rax
    ],
)
def test_cost_of_an_instruction(costs: Path, code: str, cost: str) -> None:
    done = subprocess.run([str(costs), *code.split()], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == cost
