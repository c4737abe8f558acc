# SPDX-License-Identifier: GPL-2.0
"""What AG-aware writeback of XFS costs, and what it does to extents: one mode after the other in one boot.

Two boots of one kernel differ by more than what is asked for here.
"""

from __future__ import annotations

import sys
from typing import TextIO

from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.paths import REPO

#: A question, and the module that answers it in the guest, in so many rounds.
QUESTIONS = {"costs": "guest.ag_costs", "extents": "guest.ag_extents"}
# Of the host, a guard only.
TIMEOUT_S = 4 * 3600


def measure(kernel: Kernel, question: str, rounds: int, cpus: int, stream: TextIO) -> None:
    """Boot a guest and have it answer a question by a table.

    Args:
        kernel: with AG-aware writeback, for any machine.
        question: of :data:`QUESTIONS`.
        rounds: how often each mode has its turn.
        cpus: the guest's CPUs.
        stream: where the table goes.

    Raises:
        LabError: the guest, or a job in it, failed.
    """
    command = ["env", f"PYTHONPATH={REPO}", sys.executable, "-m", QUESTIONS[question], str(rounds)]
    done = guest.run(
        kernel.path,
        command,
        machine=kernel.machine,
        cpus=cpus,
        device="waiting",
        settings={"nwritebacks": "1"},
        timeout_s=TIMEOUT_S,
        stream=stream,
    )
    if done.status:
        raise LabError(f"{QUESTIONS[question]} failed in the guest with status {done.status}, see above")
