# SPDX-License-Identifier: GPL-2.0
"""Which part of a run counts: by time, or by what was written."""

from __future__ import annotations

import pytest

from lab.experiment.window import between_amounts, mib_s, steady_window
from lab.util.errors import LabError
from tests import samples


def test_window_counts_from_when_the_jobs_began() -> None:
    window, steady = steady_window(samples.run(8, idle_s=1), 2, 4)
    assert steady
    assert (window[0].t, window[-1].t) == (3.0, 7.0)


def test_a_job_that_is_stopped_counts_from_the_device() -> None:
    # It dirties pages two seconds before any of them is written.
    run = samples.run(8, idle_s=3)
    early = [one.model_copy(update={"dirty": 25600 if one.t > 1 else 0}) for one in run.samples]
    run = run.model_copy(update={"samples": early})
    assert steady_window(run, 1, 2)[0][0].t == 2.0
    assert steady_window(run, 1, 2, from_device=True)[0][0].t == 4.0


def test_open_window_ends_with_fio() -> None:
    window, steady = steady_window(samples.run(8, idle_s=1), 2, None)
    assert steady
    assert window[-1].t == 8.0


def test_a_short_final_sync_is_not_in_the_window() -> None:
    run = samples.run(8, idle_s=1)
    synced = run.samples[-1].model_copy(update={"t": 8.1, "sectors": [run.samples[-1].sectors[0] * 2]})
    run = run.model_copy(update={"samples": [*run.samples[:-1], synced]})
    for window_s in (None, 5):
        window, steady = steady_window(run, 2, window_s)
        assert steady
        assert window[-1].t == 8.0
    with pytest.raises(LabError, match="700 MiB reached the device while the jobs ran"):
        between_amounts(run, 120, 800)


def test_a_job_too_short_for_a_window_counts_as_a_whole_with_its_sync() -> None:
    run = samples.run(2, idle_s=1)
    window, steady = steady_window(run, 4, None)
    assert not steady
    assert window == run.samples


def test_a_short_window_counts_where_it_was_asked_for() -> None:
    run = samples.run(8, idle_s=1)
    short = [sample.model_copy(update={"t": sample.t / 20}) for sample in run.samples]
    run = run.model_copy(update={"samples": short, "fio_s": run.fio_s / 20})
    window, steady = steady_window(run, 0.1, 0.2)
    assert steady
    assert (window[0].t, window[-1].t) == pytest.approx((0.15, 0.35))
    assert not steady_window(run, 0.1, None)[1]
    assert not steady_window(run, 0.3, 0.2)[1]


def test_a_window_may_begin_and_end_between_samples() -> None:
    # At 0, 30, 60 ms ..., at work from 30 ms on; the window from 50 to 155 ms has samples from 60 to 150 ms.
    run = samples.run(8, idle_s=0.5)
    coarse = [sample.model_copy(update={"t": sample.t * 0.06}) for sample in run.samples]
    run = run.model_copy(update={"samples": coarse, "fio_s": run.fio_s * 0.06})
    window, steady = steady_window(run, 0.02, 0.105)
    assert steady
    assert (window[0].t, window[-1].t) == pytest.approx((0.06, 0.15))
    assert not steady_window(run, 0.3, 0.3)[1]
    # The same samples of jobs that ended before the window did.
    assert not steady_window(run.model_copy(update={"fio_s": 0.15}), 0.02, 0.105)[1]


def test_equal_amounts_count_where_asked_for() -> None:
    # 100 MiB/s from second 1 on, sampled every 0.5 s: 120 MiB are there at 2.2 s, 330 at 4.3 s.
    run = samples.run(8, idle_s=1, mib_s=100)
    window = between_amounts(run, 120, 330)
    assert [window[0].t, window[-1].t] == pytest.approx([2.2, 4.3])
    assert [sample.t for sample in window[1:-1]] == [2.5, 3.0, 3.5, 4.0]
    assert mib_s(window) == pytest.approx(100)


def test_an_amount_that_was_not_reached_is_an_error() -> None:
    # What the final sync writes does not count.
    run = samples.run(8, idle_s=1, mib_s=10)
    last = run.samples[-1].model_copy(update={"sectors": [200 * samples.SECTORS_PER_MIB]})
    run = run.model_copy(update={"samples": [*run.samples[:-1], last]})
    with pytest.raises(
        LabError, match="70 MiB reached the device while the jobs ran, expected more than 90 MiB"
    ):
        between_amounts(run, 20, 90)
