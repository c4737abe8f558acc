# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: a labblk device of the test's own, and what the flushers do to it.

Standard library only.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

NAME = "tested"
NODE = f"/dev/{NAME}"
MOUNT = Path("/tmp", NAME)
DEVICE = Path("/sys/kernel/config/labblk", NAME)
SETTLE_S = 60

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878


def fail(why: str) -> NoReturn:
    """End the program, with a sentence."""
    sys.exit(f"{Path(sys.argv[0]).stem}: {why}")


def quietly(*command: str) -> None:
    """Run a program whose words matter only if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if done.returncode:
        fail(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stdout[-4000:]}")


@contextlib.contextmanager
def device(attributes: Mapping[str, int]) -> Iterator[None]:
    """Make the device, and remove it when all is done."""
    DEVICE.mkdir()
    for name, value in attributes.items():
        (DEVICE / name).write_text(str(value))
    (DEVICE / "power").write_text("1")
    yield
    DEVICE.rmdir()


def flush(settings: Mapping[str, int]) -> None:
    """Say when flushers write."""
    for name, value in settings.items():
        Path("/proc/sys/vm", name).write_text(str(value))


def sectors_written() -> int:
    """Return how many sectors were written to the device."""
    return int(Path("/sys/block", NAME, "stat").read_text().split()[6])


def dirty_pages() -> int:
    """Return how many pages are dirty or under writeback."""
    text = Path("/proc/vmstat").read_text()
    return sum(int(count) for count in re.findall(r"^nr_(?:dirty|writeback) (\d+)$", text, re.MULTILINE))


def settle() -> None:
    """Wait until the flushers have written everything of their own accord."""
    end = time.monotonic() + SETTLE_S
    while dirty_pages():
        if time.monotonic() > end:
            fail(f"{dirty_pages()} pages are dirty still, and nobody writes them")
        time.sleep(0.01)
