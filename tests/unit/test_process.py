# SPDX-License-Identifier: GPL-2.0
"""Process groups come to their end, also where the kernel does not let go of one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from lab.util import process


class Held:
    """A child that waits for a disk which does not answer: no signal reaches it."""

    def __init__(self) -> None:
        """Have the number of a group that is gone."""
        gone = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
        gone.wait()
        self.pid = gone.pid
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> int:
        """End by itself only, which a caller without a limit waits for."""
        self.waited.append(timeout)
        if timeout is not None:
            raise subprocess.TimeoutExpired("held", timeout)
        return 0


def test_who_is_not_patient_leaves_a_child_that_the_kernel_holds() -> None:
    held: Any = Held()
    process.end_group(held, patient=False)
    assert len(held.waited) == 2 and None not in held.waited
    held = Held()
    process.end_group(held)
    assert held.waited[-1] is None
