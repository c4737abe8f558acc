# SPDX-License-Identifier: GPL-2.0
"""Pages that cannot be written: who asks is told, as on the stock kernel."""

from __future__ import annotations

import sys

import pytest

from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest import write_errors
from tests.guest.output import output_of
from tests.guest.resize import MAKE

pytestmark = pytest.mark.guest


def told(kernel: Kernel, contexts: int) -> list[str]:
    """Return what those who ask are told with a number of contexts, 0 for a kernel without."""
    command = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", "tests.guest.write_errors", str(contexts)]
    return output_of(kernel, command, fs="none").splitlines()


@pytest.fixture(scope="module")
def stock_answers(smp_stock_kernel: Kernel) -> list[str]:
    answers = told(smp_stock_kernel, 0)
    for fs in MAKE:
        for number, page in write_errors.BAD.items():
            # Each descriptor from before is told once.
            assert f"{fs}, file {number}: EIO ok EIO ok ok" in answers
            assert f"{fs}, pages of file {number} that cannot be read: [{page}]" in answers
        assert (f"{fs}, file 0: ok ok ok ok ok" in answers) == (fs != "f2fs")
        assert f"{fs}, syncfs: EIO ok" in answers
    return answers


@pytest.mark.parametrize("contexts", [1, 8])
def test_who_asks_is_told_as_on_stock(stock_answers: list[str], debug_kernel: Kernel, contexts: int) -> None:
    assert told(debug_kernel, contexts) == stock_answers
