# SPDX-License-Identifier: GPL-2.0
"""Signals that ask ``./field`` to end: the first one does, and none cuts short what puts everything back."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signalled(KeyboardInterrupt):
    """A signal that asks us to end; keeps the number for the exit status."""

    def __init__(self, number: int) -> None:
        """Keep the status that a shell reports for this signal."""
        self.status = 128 + number


def raise_on_signals() -> None:
    """Have the first signal raise :class:`Signalled`, and ignore those after it."""
    for number in SIGNALS:
        # What the caller ignores, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


@contextmanager
def ignored() -> Iterator[None]:
    """Ignore the signals meanwhile."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    raise Signalled(number)
