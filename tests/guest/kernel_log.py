# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the kernel's log while a filesystem complains, rightly. Standard library only."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from lab.machine.console import CORRUPTION, MAX_REPORT_LINES, kind_of

KMSG = "/dev/kmsg"
LEVEL = Path("/proc/sys/kernel/printk")


class Log:
    """The kernel's log, which is not for the console while a filesystem complains, rightly.

    Attributes:
        excused: what may be said all the same, a fault of stock.
    """

    excused: re.Pattern[str] | None = None

    def __init__(self) -> None:
        """Begin at the end of the log."""
        self._fd = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._fd, 0, os.SEEK_END)

    @contextlib.contextmanager
    def only_reports(self, *, allowed: Collection[str] = (CORRUPTION,)) -> Iterator[None]:
        """Keep the console quiet; end the program if something was said that nobody may say.

        Args:
            allowed: kinds of report that may come: where the device fails, what a filesystem says of that.
        """
        usual = LEVEL.read_text()
        LEVEL.write_text("1")
        try:
            yield
        finally:
            LEVEL.write_text(usual)
            said = self._first_report(allowed)
            if said:
                sys.exit(said)

    def _first_report(self, allowed: Collection[str]) -> str:
        """Return the first report that may not come, with what was said after it."""
        records = list(self._records())
        for at, record in enumerate(records):
            if self.excused and self.excused.search(record):
                continue
            if kind_of(record) not in (None, *allowed):
                return "".join(records[at : at + MAX_REPORT_LINES])
        return ""

    def _records(self) -> Iterator[str]:
        while True:
            try:
                yield os.read(self._fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:
                sys.exit("the kernel's log was overwritten before it was read: it needs a larger log_buf_len")
