# SPDX-License-Identifier: GPL-2.0
"""Memory for the guests of a measurement, which the host has found before the first of them starts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from lab.util import host

MIB = 1 << 20


@contextmanager
def filled(mib: int) -> Iterator[int]:
    """Hold a file for ``memory`` of :func:`lab.machine.guest.run`, every page there, until the block ends.

    A guest's memory is a file of the host, whose pages the host finds one by one when each is first
    touched, with each guest anew. On a host that is a virtual machine that may take ten times longer in one
    boot than in the next, for it gives free pages back to its own host (free page reporting). So
    what is measured touches them ahead, once for all its guests.

    Args:
        mib: MiB of memory that each guest has.

    Yields:
        The descriptor of the file, which has no name.

    Raises:
        LabError: the host has no room for it.
    """
    host.check(host.Need(packages=False, guest_mem_bytes=mib * MIB))
    with tempfile.TemporaryFile(dir=host.ram_dir(), buffering=0) as file:
        zeros = bytes(MIB)
        for _ in range(mib):
            file.write(zeros)
        yield file.fileno()
