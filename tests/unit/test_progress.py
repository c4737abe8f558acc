# SPDX-License-Identifier: GPL-2.0
"""Progress: plain lines where nobody looks at a terminal, and an estimate once something is done."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from lab.util.progress import Progress, duration


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def test_plain_lines_tell_step_count_and_time_left(clock: Clock) -> None:
    out = io.StringIO()
    with Progress("stock kernel", Console(file=out, width=40)) as progress:
        progress.step("configure")
        progress.step("compile", 100)
        for _ in range(50):
            clock.now += 1.0
            progress.advance()
        progress.step("link")
        clock.now += 12
    assert out.getvalue().splitlines() == [
        "stock kernel: configure",
        "stock kernel: compile about 100 parts",
        "stock kernel: compile 30 of about 100, 1 min 10 s left",
        "stock kernel: link",
        "stock kernel: done in 1 min 2 s",
    ]


def test_a_step_of_unknown_length_only_counts(clock: Clock) -> None:
    out = io.StringIO()
    with Progress("stock kernel", Console(file=out)) as progress:
        progress.step("compile")
        clock.now += 31
        progress.advance()
    assert "stock kernel: compile 1\n" in out.getvalue()


def test_a_terminal_gets_one_live_line_and_the_closing_one() -> None:
    out = io.StringIO()
    with Progress(
        "stock kernel", Console(file=out, force_terminal=True, width=100, highlight=False)
    ) as progress:
        progress.step("compile", 2)
        progress.advance()
    assert "1 of about 2" in out.getvalue()
    assert out.getvalue().endswith("stock kernel: done in 0 s\n")


def test_a_failed_job_does_not_say_done() -> None:
    out = io.StringIO()
    with pytest.raises(ValueError, match="broken"), Progress("stock kernel", Console(file=out)):
        raise ValueError("broken")
    assert out.getvalue() == ""


def test_duration_speaks_in_minutes_and_seconds() -> None:
    assert [duration(0.4), duration(59.6), duration(312)] == ["0 s", "1 min 0 s", "5 min 12 s"]
