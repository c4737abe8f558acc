# SPDX-License-Identifier: GPL-2.0
"""Run a command in a guest for what it prints."""

from __future__ import annotations

import io
from typing import Any

from lab.machine import guest
from lab.tree.build import Kernel
from lab.util.errors import LabError

#: CPUs of a guest that asks for no number: the test run's option, and on User-mode Linux no more than this.
cpus = 2
UML_CPUS = 2

#: Seconds that a guest has, fewer than its test, so that what it said is shown and not where pytest waited.
#: With all checks, one with many emulated CPUs takes minutes on a busy host.
SHORT_S, LONG_S = 540, 3540

#: So much of what a guest said is shown.
SHOWN = 20_000


def kept_kib() -> int:
    """Return how much of a counter the CPUs keep to themselves before they add it to the count, in KiB.

    That is WB_STAT_BATCH pages each.
    """
    return cpus * 8 * cpus.bit_length() * 4


def output_of(kernel: Kernel, command: str | list[str], **settings: Any) -> str:
    """Return what a command prints in a guest; a failing one fails the test.

    Args:
        kernel: what to boot.
        command: a shell script, or a program and its arguments.
        settings: those of lab.machine.guest.run(); if nothing else is said the guest has as many CPUs as the
            test run was asked for, in virtual time if they are more than two, and a minute less than a test
            has; its devices take 100 us a command, and have a context for each CPU from the start, so that
            several flushers are at work in every test.
    """
    output = io.StringIO()
    program = ["sh", "-c", command] if isinstance(command, str) else command
    number = min(cpus, UML_CPUS) if kernel.machine == "uml" else cpus
    options = {"machine": kernel.machine, "cpus": number, **settings}
    # Many emulated CPUs in the host's time wait for each other's turns on the few cores of the host.
    options.setdefault("clock", "host" if options["cpus"] <= UML_CPUS else "virtual")
    # A write that ends in an interrupt, as on a real device, shows lockdep the locks that are taken there.
    options.setdefault("device", "100us")
    options.setdefault("timeout_s", SHORT_S if options["cpus"] <= UML_CPUS else LONG_S)
    if kernel.flavour != "stock":
        options.setdefault("kernel_arguments", [f"nwritebacks={options['cpus']}"])
    try:
        result = guest.run(kernel.path, program, stream=output, **options)
    except LabError as error:
        error.add_note(output.getvalue())
        raise
    said = output.getvalue()
    # Shown where the test fails, whatever it then says of this.
    print(said[-SHOWN:])
    assert result.status == 0, said
    return said
