# SPDX-License-Identifier: GPL-2.0
"""What the profiler is shown of a fio run."""

from __future__ import annotations

import pytest

from guest import fio


def test_each_run_has_two_marks_for_the_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    monkeypatch.setattr("signal.sigtimedwait", lambda _, seconds: made.append(seconds))
    monkeypatch.delenv("PWB_PROFILED", raising=False)
    fio.Marks().end()
    assert made == []
    monkeypatch.setenv("PWB_PROFILED", "1")
    marks = fio.Marks()
    for step, expected in ((marks.begin, 1), (marks.begin, 1), (marks.end, 2), (marks.end, 2)):
        step()
        assert len(made) == expected
    # The jobs ended before anything was written.
    fio.Marks().end()
    assert len(made) == 4
