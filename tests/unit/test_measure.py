# SPDX-License-Identifier: GPL-2.0
"""Figures from samples: the rates, the flushers' CPU time, fio's latencies, ratios."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.experiment import measure
from lab.experiment.raw import Sample
from lab.result.results import read_fio
from lab.util.errors import LabError
from tests import samples

GROUP = read_fio(samples.FIXTURES / "fio-group.json")
THREE_JOBS = read_fio(samples.FIXTURES / "fio-three-jobs.json")


def test_figures_of_a_run() -> None:
    run = samples.run(8, mib_s=100)
    found = measure.figures(samples.raw(run), run, GROUP, ramp_s=2, window_s=4)
    assert found.mib_s == pytest.approx(100)
    # Half a CPU at 100 MiB/s; the other kworker adds a tenth.
    assert found.flusher_cpu_s_per_gib == pytest.approx(0.5 * 1024 / 100)
    assert found.kworker_cpu_s_per_gib == pytest.approx(0.6 * 1024 / 100)
    assert (found.dirty_mib, found.writeback_mib, found.dirty_max_mib) == (100, 10, 110)
    assert found.slowest_job_mib_s is None
    assert (found.extents, found.extents_before, found.sync_s) == (3, 1, 1.0)


def test_figures_of_a_run_between_two_amounts() -> None:
    run = samples.run(8, idle_s=1, mib_s=100)
    found = measure.figures(samples.raw(run), run, GROUP, ramp_s=2, window_s=4, between_mib=(120, 330))
    assert found.mib_s == pytest.approx(100)
    assert found.steady


def test_parts_of_a_window_tell_how_much_the_rate_varies() -> None:
    run = samples.run(8, idle_s=1, mib_s=100)
    # From 5 s on, the third second of the window, twice as much is written.
    faster = [
        sample.model_copy(update={"sectors": [sample.sectors[0] + round(max(0, sample.t - 5) * 204800)]})
        for sample in run.samples
    ]
    run = run.model_copy(update={"samples": faster})

    def rates(ramp_s: float, window_s: float, parts: int) -> measure.Rates:
        raw = samples.raw(run)
        return measure.figures(raw, run, GROUP, ramp_s=ramp_s, window_s=window_s, parts=parts).rates

    found = rates(2, 4, 4)
    assert found.parts == pytest.approx([100, 100, 200, 200])
    assert found.whole == pytest.approx(150)
    # Pieces that end between samples are of equal length, too: the mean of their rates is that of the whole.
    odd = rates(2, 4, 3).parts
    assert odd == pytest.approx([100, 150, 200])
    assert sum(odd) / len(odd) == pytest.approx(150)
    # A run that is measured as a whole has no parts, and there can be no more than samples.
    assert len(rates(7, 4, 4).parts) == 1
    assert len(rates(2, 2, 9).parts) == 4


def test_busy_share_of_the_cpus() -> None:
    begin, end = _window({}, {})
    idle = [begin.model_copy(update={"idle_s": 10.0}), end.model_copy(update={"idle_s": 12.0})]
    assert measure.cpu_busy(idle, 8) == 0.75
    assert measure.cpu_busy([begin, end], 8) is None


def test_growth_of_dirty_pages_is_what_goes_on_all_through_the_window() -> None:
    def growth(dirty_mib: Callable[[int], int], ramp_s: float = 2) -> float | None:
        run = samples.run(10, idle_s=0)
        shown = [
            sample.model_copy(update={"dirty": dirty_mib(number) * samples.PAGES_PER_MIB})
            for number, sample in enumerate(run.samples)
        ]
        run = run.model_copy(update={"samples": shown})
        found = measure.figures(samples.raw(run), run, GROUP, ramp_s=ramp_s, window_s=4)
        return found.dirty_growth_mib

    # Nine samples from 2 s to 6 s, quarters of two.
    assert growth(lambda number: 10 * number) == 3 * 20
    swinging = growth(lambda number: 100 + 10 * (number % 4))
    assert swinging is not None
    assert swinging <= 0
    assert growth(lambda number: 10 * number, ramp_s=11) is None


def test_slowest_of_several_jobs() -> None:
    job = {"write": {"bw_bytes": 3 << 20}}
    slow = {"write": {"bw_bytes": 1 << 20}}
    reader = {"write": {"bw_bytes": 0}}
    assert measure.slowest_job_mib_s({"jobs": [job, slow, reader]}) == 1
    assert measure.slowest_job_mib_s({"jobs": [job, reader]}) is None


@pytest.mark.parametrize("kind", ["write", "randwrite:4", "rw", "randrw"])
def test_a_job_that_never_came_to_write_is_the_slowest(kind: str) -> None:
    job = {"write": {"bw_bytes": 3 << 20}}
    starved = {"write": {"bw_bytes": 0}, "job options": {"rw": kind}}
    reader = {"write": {"bw_bytes": 0}, "job options": {"rw": "randread"}}
    assert measure.slowest_job_mib_s({"jobs": [job, starved, reader]}) == 0
    # What all sections have in common stands apart, and a section may say otherwise.
    common = {"global options": {"rw": kind}, "jobs": [job, {"write": {"bw_bytes": 0}}, reader]}
    assert measure.slowest_job_mib_s(common) == 0
    assert measure.slowest_job_mib_s(common | {"jobs": [job, reader]}) is None


def test_seconds_to_the_device_are_from_the_first_page_to_the_end_of_the_sync() -> None:
    """Two sections of 3.5 s that run one after the other: fio's longest runtime is half of it."""
    run = samples.run(8, idle_s=1)
    turns = {"jobs": [{"write": GROUP["jobs"][0]["write"] | {"runtime": 3500}}] * 2}
    assert measure.figures(samples.raw(run), run, turns, ramp_s=2, window_s=4).seconds == 8.0
    assert measure.seconds_to_device(samples.run(8, mib_s=0, idle_s=8)) is None


def test_two_devices_add_up() -> None:
    run = samples.run(8, mib_s=100)
    both = [sample.model_copy(update={"sectors": sample.sectors * 2}) for sample in run.samples]
    run = run.model_copy(update={"samples": both})
    found = measure.figures(samples.raw(run), run, GROUP, ramp_s=2, window_s=4)
    assert found.mib_s == pytest.approx(200)


def test_nothing_written_is_an_error() -> None:
    run = samples.run(8, mib_s=0)
    with pytest.raises(LabError, match="counted no written byte"):
        measure.figures(samples.raw(run), run, GROUP, ramp_s=2, window_s=4)


def _window(*kworkers: dict[str, tuple[bool, int | None]]) -> list[Sample]:
    return [Sample(t=n, sectors=[0], dirty=0, writeback=0, kworkers=one) for n, one in enumerate(kworkers)]


def test_flusher_seen_once_counts_for_the_whole_window() -> None:
    window = _window({"1": (False, 10)}, {"1": (True, 40)}, {"1": (False, 100)})
    assert measure.cpu_s(window, flushers_only=True) == pytest.approx(90e-9)


def test_flushers_over_time_are_the_cpus_that_they_keep_busy() -> None:
    # Two of them in the third second; a kworker that never flushes is none.
    window = _window(
        {"1": (False, 0), "3": (False, 0)},
        {"1": (True, 500_000_000), "3": (False, 10**9)},
        {"1": (True, 1_500_000_000), "2": (True, 750_000_000), "3": (False, 2 * 10**9)},
    )
    assert measure.flushers_over_time(window, 2) == [(1, 0.5), (2, 1.75)]
    assert measure.flushers_over_time(window, 1) == [(2, 1.125)]
    assert measure.flushers_over_time(_window({"1": (True, None)}, {"1": (True, None)}), 1) == []


def test_kworkers_that_come_and_go() -> None:
    window = _window({"1": (True, 10)}, {"1": (True, 30), "2": (True, 5)}, {"2": (True, 9)})
    assert measure.cpu_s(window, flushers_only=True) == pytest.approx((20 + 5 + 4) * 1e-9)


def test_no_cpu_times_from_this_kernel() -> None:
    assert measure.cpu_s(_window({"1": (True, None)}, {"1": (True, None)}), flushers_only=True) is None


def test_latency_of_a_merged_group() -> None:
    mean, p99 = measure.write_latency_us(GROUP)
    assert mean == pytest.approx(1.097951583)
    assert p99 == pytest.approx(2.096)


def test_latency_over_jobs_is_that_of_all_their_writes() -> None:
    mean, p99 = measure.write_latency_us(THREE_JOBS)
    writes = [job["write"] for job in THREE_JOBS["jobs"]]
    assert [one["lat_ns"]["N"] for one in writes] == [256, 64, 0]
    assert mean == pytest.approx(
        (writes[0]["lat_ns"]["mean"] * 256 + writes[1]["lat_ns"]["mean"] * 64) / 320 / 1000
    )
    slowest = sorted(
        int(ns) for one in writes[:2] for ns, count in one["clat_ns"]["bins"].items() for _ in range(count)
    )[316:]
    assert p99 == pytest.approx(slowest[0] / 1000)


def test_latency_of_a_job_that_counts_it_from_submission_on() -> None:
    writes = {"lat_ns": {"N": 2, "mean": 20e3, "bins": {"10000": 1, "30000": 1}}, "clat_ns": {}}
    assert measure.write_latency_us({"jobs": [{"write": writes}]}) == (20, 30)


def test_a_percentile_has_the_submission_in_it_where_that_was_counted() -> None:
    writes = {"lat_ns": {"N": 1, "mean": 30e3, "bins": {"30000": 1}}, "clat_ns": {"bins": {"500": 1}}}
    assert measure.write_latency_us({"jobs": [{"write": writes}]}) == (30, 30)


def test_latency_without_writes() -> None:
    reader = {"jobs": [THREE_JOBS["jobs"][2]]}
    assert measure.write_latency_us(reader) == (None, None)


def test_reads_beside_writes_have_figures_of_their_own() -> None:
    idle = {"bw_bytes": 0, "lat_ns": {"N": 0}, "clat_ns": {}}
    reads = {"bw_bytes": 3 << 20, "lat_ns": {"N": 100}, "clat_ns": {"bins": {"1000": 98, "5000": 2}}}
    fio = {"jobs": [{"read": reads, "write": idle}, {"read": reads | {"bw_bytes": 2 << 20}, "write": idle}]}
    assert measure.read_mib_s(fio) == 5
    assert measure.latencies_ns(fio, "read") == {1000: 196, 5000: 4}
    assert measure.read_mib_s({"jobs": [{"read": idle, "write": idle}]}) is None
    run = samples.run()
    found = measure.figures(samples.raw(run), run, GROUP, ramp_s=2, window_s=4)
    assert (found.read_mib_s, found.read_latency_p99_us) == (None, None)


def test_spread_and_missing_values() -> None:
    assert measure.spread([3.0, None, 1.0, 2.0]) == measure.Spread(median=2, min=1, max=3)
    assert measure.spread([None]) is None


def _rounds(*rates: float | None) -> list[measure.Rates | None]:
    return [None if rate is None else measure.Rates(rate, [rate]) for rate in rates]


def test_ratio_is_of_medians_with_the_spread_of_rounds() -> None:
    value, rounds = measure.ratio(_rounds(100, 300), _rounds(100, 100))
    assert value == 2
    assert rounds == measure.Spread(median=2, min=1, max=3)
    assert measure.ratio(_rounds(100), []) == (None, None)


def test_ratio_leaves_out_rounds_without_a_base() -> None:
    ours, base = _rounds(100, 300), _rounds(None, 100)
    assert measure.ratio(ours, base)[1] == measure.Spread(median=3, min=3, max=3)


def test_spread_is_that_of_all_parts() -> None:
    ours, base = measure.Rates(210, [200, 220]), measure.Rates(100, [80, 110])
    assert measure.rate_spread([ours, None]) == measure.Spread(median=210, min=200, max=220)
    assert measure.rate_spread([None]) is None
    assert measure.ratio([ours], [base]) == (2.1, measure.Spread(median=2.25, min=2, max=2.5))
