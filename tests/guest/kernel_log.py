# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: the kernel's log while a filesystem complains, rightly. Standard library only."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

REPORT = re.compile(r"WARNING: |BUG: |INFO: task |\bOops\b|kernel BUG|refcount_t")


class Log:
    """The kernel's log, which is not for the console while a filesystem complains, rightly."""

    def __init__(self) -> None:
        """Begin at the end of the log."""
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self._fd, 0, os.SEEK_END)

    @contextlib.contextmanager
    def only_reports(self) -> Iterator[None]:
        """Keep the console quiet; end the program if something was said that nobody may say."""
        level = Path("/proc/sys/kernel/printk")
        usual = level.read_text()
        level.write_text("1")
        try:
            yield
        finally:
            level.write_text(usual)
            reports = [record for record in self._records() if REPORT.search(record)]
            if reports:
                sys.exit("".join(reports))

    def _records(self) -> Iterator[str]:
        while True:
            try:
                yield os.read(self._fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue
