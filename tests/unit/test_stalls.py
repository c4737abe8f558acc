# SPDX-License-Identifier: GPL-2.0
"""Where CPUs stall in virtual time, and for how long: vtime/stalls.c without QEMU."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from lab.util.paths import REPO

HERE = Path(__file__).parent / "vtime"
LOCK, OTHER = 0x50000, 0x50010
START, END = 0x10000, 0x14000
PLACES = f"code 2000 2100\ncode 1000 1010\nboundary {LOCK:x}\nboundary 40000\n"
CALL, JUMP, MOVE = "e8", "e9", "b8"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("stalls") / "stalls"
    sources = [str(HERE / "stalls.c"), str(REPO / "vtime" / "stalls.c")]
    subprocess.run(
        ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(made), *sources], check=True
    )
    (made.parent / "places").write_text(PLACES)
    return made


def said(program: Path, seed: int, *words: object) -> list[list[int]]:
    command = [str(program), str(program.parent / "places"), str(seed), *map(str, words)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [[int(word) for word in line.split()] for line in lines]


def blocks(program: Path, seed: int) -> list[list[int]]:
    return said(program, seed, "blocks", f"{START:x}", f"{END:x}")


def calls(program: Path, seed: int, target: int, opcode: str) -> list[list[int]]:
    return said(program, seed, "calls", f"{START:x}", f"{END:x}", f"{target:x}", opcode)


def test_code_is_what_the_file_names(program: Path) -> None:
    inside = ["1000", "100f", "2000", "20ff"]
    outside = ["fff", "1010", "1fff", "2100", f"{LOCK:x}"]
    assert said(program, 1, "code", *inside, *outside) == [[1]] * 4 + [[0]] * 5


@pytest.mark.parametrize("line", ["code 1000\n", "boundary\n", "nonsense\n", "\n"])
def test_file_of_something_else_is_refused(program: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "places").write_text(PLACES + line)
    command = [str(program), str(tmp_path / "places"), "1", "code"]
    assert subprocess.run(command, check=False).returncode == 1
    assert subprocess.run([str(program), str(tmp_path / "none"), "1", "code"], check=False).returncode == 1


def test_a_seed_chooses_some_places_and_always_the_same(program: Path) -> None:
    chosen = blocks(program, 1)
    assert 0.5 < len(chosen) * 64 / (END - START) < 2
    assert blocks(program, 1) == chosen
    # Neighbours are as different as others.
    assert len([place for place in blocks(program, 2) if place in chosen]) < len(chosen) / 4


def test_of_the_calls_only_those_of_boundaries(program: Path) -> None:
    for opcode in (CALL, JUMP):
        assert 0.8 < len(calls(program, 1, LOCK, opcode)) * 4 / (END - START) < 1.25
        assert not calls(program, 1, OTHER, opcode)
    assert not calls(program, 1, LOCK, MOVE)


def test_passes_of_a_cpu_are_the_same_each_time(program: Path) -> None:
    stalls = said(program, 1, "passes", 0, 1000, 100_000)
    assert said(program, 1, "passes", 0, 1000, 100_000) == stalls
    assert said(program, 1, "passes", 1, 1000, 100_000) != stalls
    assert said(program, 2, "passes", 0, 1000, 100_000) != stalls


def test_stalls_are_of_all_lengths_and_leave_half_of_the_time(program: Path) -> None:
    stalls = said(program, 1, "passes", 0, 20_000, 1000)
    lengths = [length for _, length in stalls]
    assert 2000 <= min(lengths) < 4000
    assert 2_048_000 < max(lengths) < 4_096_000
    for (at, length), (then, _) in itertools.pairwise(stalls):
        assert then >= at + 2 * length


def test_one_pass_of_some_stalls(program: Path) -> None:
    # So far apart that every CPU has rested.
    assert 0.8 < len(said(program, 1, "passes", 0, 4000, 100_000_000)) * 4 / 4000 < 1.25
