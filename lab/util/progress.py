# SPDX-License-Identifier: GPL-2.0
"""Progress of a long job: one live line on a terminal, plain lines elsewhere; all on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

_PLAIN_EVERY_S = 30.0


class Progress:
    """Shows the current step of a job and, where the step's length is known, how long it still takes."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        """Take the job's title, and a console other than standard error for tests."""
        self._title = title
        self._console = console or Console(stderr=True, highlight=False)
        self._live = self._console.is_terminal
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._task: TaskID | None = None
        self._step = ""
        self._total: int | None = None
        self._done = 0
        self._began = self._step_began = self._printed = time.monotonic()

    def __enter__(self) -> Self:
        """Start the live line."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the live line away; say how long the job took if it went well."""
        self._bar.stop()
        if kind is None:
            self.note(f"done in {duration(time.monotonic() - self._began)}")

    def note(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(f"{self._title}: {text}", soft_wrap=True, markup=False)

    def step(self, name: str, total: int | None = None) -> None:
        """Begin a step of ``total`` parts, or of unknown length."""
        self._step, self._total, self._done = name, total, 0
        self._step_began = self._printed = time.monotonic()
        if self._task is None:
            self._task = self._bar.add_task("", total=total, detail="")
        self._bar.reset(self._task, total=total, description=f"{self._title}: {name}", detail=self._detail())
        if not self._live:
            self.note(" ".join(filter(None, [name, self._detail()])))

    def advance(self) -> None:
        """Count one part of the step as done."""
        self._done += 1
        now = time.monotonic()
        if self._task is not None and self._live:
            self._bar.update(self._task, completed=self._done, detail=self._detail())
        elif now - self._printed >= _PLAIN_EVERY_S:
            self._printed = now
            self.note(f"{self._step} {self._detail()}")

    def _detail(self) -> str:
        if not self._done:
            return f"about {self._total} parts" if self._total else ""
        if not self._total:
            return str(self._done)
        total = max(self._total, self._done)
        left_s = (time.monotonic() - self._step_began) / self._done * (total - self._done)
        return f"{self._done} of about {total}, {duration(left_s)} left"


def duration(seconds: float) -> str:
    """Write a length of time the way one says it: ``48 s``, ``5 min 12 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
