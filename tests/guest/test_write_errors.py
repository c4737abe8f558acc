# SPDX-License-Identifier: GPL-2.0
"""Pages that cannot be written: who asks is told, as on the stock kernel."""

from __future__ import annotations

import itertools
import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import write_errors
from tests.guest.output import output_of
from tests.guest.resize import MAKE
from tests.tried import Tried

pytestmark = pytest.mark.guest


def told(kernel: Kernel, *arguments: str) -> list[str]:
    """Return what those who ask are told with a number of contexts, 0 for a kernel without, and a mode."""
    command = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "tests.guest.write_errors", *arguments]
    return output_of(kernel, command, fs="none").splitlines()


def held(number: int, why: str) -> str:
    """Return what the page of a file holds that could not be written."""
    if number not in write_errors.BAD:
        return "all of it"
    if number in write_errors.UNWRITTEN:
        return "zeros"
    return "EIO" if why == "bad" else "what was there before"


@pytest.fixture(scope="module")
def stock_answers(smp_stock_kernel: Kernel) -> list[str]:
    answers = told(smp_stock_kernel, "0")
    for fs, why in itertools.product(MAKE, write_errors.WHY):
        # F2FS calls any error of the device EIO.
        error = "ENOSPC" if why == "no room" and fs != "f2fs" else "EIO"
        for number in write_errors.numbers(fs):
            is_bad = number in write_errors.BAD
            # Each descriptor from before is told once.
            asked = f"{error} ok " * 4 if is_bad else "ok ok " * 4
            assert f"{fs}, {why}, file {number}: {asked}ok" in answers
            assert f"{fs}, {why}, file {number} holds: {held(number, why)}" in answers
            assert (f"{fs}, {why}, file {number}, what is bad: {error}" in answers) == is_bad
        assert f"{fs}, {why}, syncfs: {error} ok" in answers
    return answers


@pytest.mark.parametrize(
    "arguments",
    [
        ("1", "1"),
        ("8", "1"),
        ("8", "4"),
        ("8", "1", "ag-hint"),
        ("8", "1", "generic"),
        ("8", "4", "rotor"),
    ],
)
def test_who_asks_is_told_as_on_stock(
    stock_answers: list[str], debug_kernel: Kernel, tried: Tried, arguments: tuple[str, ...]
) -> None:
    assert told(debug_kernel, *arguments) == stock_answers
    tried(answers_compared=len(stock_answers))
