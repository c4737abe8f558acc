# SPDX-License-Identifier: GPL-2.0
"""Keep the host's CPUs from sleeping while a guest runs."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A limit on the latency of waking up from idle, held for as long as the file is open
# (Documentation/power/pm_qos_interface.rst).
LATENCY = Path("/dev/cpu_dma_latency")


@contextmanager
def awake(latency: Path = LATENCY) -> Iterator[bool]:
    """Let idle CPUs of the host wait in a loop instead of sleeping, until the block ends.

    Each system call of a guest's program is two wake-ups on the host, from the program's process to the
    kernel's and back. When the host puts them on two CPUs, the one that waits sleeps, and on a host that is a
    virtual machine that is an exit to its own host: a guest then does a fifth of what it can, for seconds,
    whatever its kernel.

    Args:
        latency: the host's file, which root may open.

    Yields:
        Whether it is so.
    """
    try:
        fd = os.open(latency, os.O_WRONLY)
    except OSError:
        yield False
        return
    try:
        os.write(fd, struct.pack("i", 0))
        yield True
    finally:
        os.close(fd)
