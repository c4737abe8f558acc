# SPDX-License-Identifier: GPL-2.0
"""Made-up samples and results that several tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.experiment.axes import Variant
from lab.experiment.measure import Figures
from lab.experiment.raw import Raw, RawRun, Sample
from lab.experiment.scenario import Scenario
from lab.profile.summary import Profile
from lab.result.results import Key, Measured

FIXTURES = Path(__file__).parent / "unit" / "fixtures"
JOB = "[global]\ndirect=0\n[x]\nrw=randwrite\nsize=1m\nruntime=${WINDOW_S}\n"
STEP_S = 0.5
PAGES_PER_MIB = 256
SECTORS_PER_MIB = 2048


def run(
    seconds: float = 8.0, *, idle_s: float = 1.0, mib_s: float = 100.0, name: str = "limit-128"
) -> RawRun:
    """Return a run that writes ``mib_s`` after ``idle_s``; its flusher spends half of the time on a CPU."""
    samples = []
    for number in range(round(seconds / STEP_S) + 1):
        t = number * STEP_S
        busy_s = max(0.0, t - idle_s)
        samples.append(
            Sample(
                t=t,
                sectors=[round(busy_s * mib_s * SECTORS_PER_MIB)],
                dirty=100 * PAGES_PER_MIB if busy_s else 0,
                writeback=10 * PAGES_PER_MIB if busy_s else 0,
                kworkers={
                    "7": (number % 2 == 1, round(busy_s * 5e8)),
                    "8": (False, round(busy_s * 1e8)),
                },
            )
        )
    end = samples[-1].model_copy(update={"t": seconds + 1, "dirty": 0, "writeback": 0})
    return RawRun(
        name=name,
        dirty_settings={"dirty_bytes": 128 << 20},
        fio_json=f"{name}.fio.json",
        fio_s=seconds,
        sync_s=1.0,
        samples=[*samples, end],
        extents={"a": 1, "b": 5, "c": 3},
    )


def raw(*runs: RawRun) -> Raw:
    """Return a boot with these runs."""
    return Raw(kernel="7.3.4", page_bytes=4096, extents_before={"a": 1}, runs=list(runs))


def profile(throttled: list[float]) -> Profile:
    """Return the profile of 4 s in which so many writers were throttled, in each of equal pieces."""
    return Profile(
        seconds=4, cpus=1, shares={}, groups={}, waiting_ms=0, host_ms=0, ready_ms=0, functions=[], waits=[],
        spins=[], throttled=throttled, notes=[],
    )  # fmt: skip


def write_raw(folder: Path) -> None:
    """Write the raw data that :func:`measured` names for stock and ours into the folder of a result."""
    for variant in ("stock", "parallel"):
        where = folder / "raw" / variant
        where.mkdir(parents=True)
        (where / "raw.json").write_text(raw(run()).model_dump_json())
        (where / "limit-128.fio.json").write_text((FIXTURES / "fio-group.json").read_text())


def figures(mib_s: float) -> Figures:
    """Return figures with this rate, the latency and the seconds that go with it."""
    return Figures(
        mib_s=mib_s,
        steady=True,
        flusher_cpu_s_per_gib=2.0,
        kworker_cpu_s_per_gib=2.5,
        latency_mean_us=1000 / mib_s,
        latency_p99_us=100.0,
        slowest_job_mib_s=None,
        dirty_mib=90.0,
        dirty_max_mib=100.0,
        dirty_growth_mib=0.0,
        writeback_mib=5.0,
        sync_s=0.5,
        seconds=1000 / mib_s,
        extents=1,
        extents_before=1,
    )


def measured(
    variant: Variant,
    contexts: int | None,
    limit: int | None,
    rates: list[float],
    fs: str = "xfs",
    **choice: Any,
) -> list[Measured]:
    """Return one measured run per round, with what else was chosen for the setting."""
    key = Key(variant=variant, contexts=contexts, **choice, device="nolat", fs=fs, dirty_limit_mib=limit)
    return [
        Measured(key=key, round=number + 1, raw=f"raw/{variant}/limit-128.fio.json", figures=figures(rate))
        for number, rate in enumerate(rates)
    ]


def result() -> list[Measured]:
    """Return a small result with every kind of cell."""
    return [
        *measured("stock", 1, 128, [100, 120]),
        *measured("direct", None, None, [300, 300]),
        *measured("parallel", 1, 128, [90, 100]),
        *measured("parallel", 2, 128, [200, 220]),
        *measured("bdis", None, 128, [220, 220]),
    ]


def small_scenario(**changes: Any) -> Scenario:
    """Return a scenario of few and small settings, with these changes."""
    values: dict[str, Any] = {
        "name": "small",
        "title": "small",
        "devices": ["nolat"],
        "filesystems": ["xfs", "ext4"],
        "contexts": [1, 2],
        "bounds": ["bdis", "direct"],
        "repetitions": 2,
        "limits": [{"mib": 128, "ramp_s": 2, "window_s": 4}, {"mib": 256, "ramp_s": 2, "window_s": 4}],
        "files": {"names": ["a", "b"], "size_mib": 4},
        "job": {"text": JOB},
    }
    return Scenario.model_validate(values | changes)
