# SPDX-License-Identifier: GPL-2.0
"""What limits a run, picked from its profile, and the table of it."""

from __future__ import annotations

from pathlib import Path

from lab.bench import session
from lab.profile.bottleneck import Bottleneck, bottleneck
from lab.profile.offcpu import Waiting
from lab.profile.oncpu import Function, Spinning
from lab.profile.summary import Profile
from lab.result import bottleneck_table, report, results
from tests import samples

LIMIT = Bottleneck(
    shares={"user": 0.1, "kernel": 0.2, "spinning": 0.3, "idle": 0.4},
    functions={"memcpy": 0.5, "xas_load": 0.25},
    lock="f2fs_merge_page_bio",
    lock_tasks=2.5,
)


def waiting(who: str, kind: str, ms: float) -> Waiting:
    return Waiting(group="flushers", kind=kind, who=who, count=1, total_ms=ms, mean_us=1, share=0)


def profile(waits: list[Waiting], spins: list[Spinning]) -> Profile:
    functions = [
        Function(name=f"f{number}", kind="kernel", self_ms=1, share=0.1, total_ms=1) for number in range(9)
    ]
    return Profile(
        seconds=0.5,
        cpus=8,
        shares=LIMIT.shares,
        groups={},
        waiting_ms=0,
        host_ms=0,
        ready_ms=0,
        functions=functions,
        waits=waits,
        spins=spins,
        notes=[],
    )


def test_most_waited_for_is_a_lock_by_sleep_and_spinning_together() -> None:
    spin = Spinning(group="flushers", primitive="osq_lock", who="merge", total_ms=100, share=0)
    waits = [
        waiting("generic_perform_write", "balance_dirty_pages", 9000),
        waiting("write_begin", "mutex", 380),
        waiting("merge", "rwsem, read", 150),
        waiting("merge", "rwsem, write", 150),
    ]
    found = bottleneck(profile(waits, [spin]))
    assert (found.lock, found.lock_tasks) == ("merge", 0.8)
    assert list(found.functions) == ["f0", "f1", "f2", "f3", "f4"]


def test_a_function_that_spins_is_one_with_what_else_it_does() -> None:
    spinning = Function(name="smp_call", kind="spinning", self_ms=1, share=0.08, total_ms=1)
    working = spinning.model_copy(update={"kind": "kernel", "share": 0.03})
    of = profile([], [])
    found = bottleneck(of.model_copy(update={"functions": [*of.functions, spinning, working]}))
    assert next(iter(found.functions.items())) == ("smp_call", 0.11)


def test_a_lock_of_the_load_is_no_lock_of_the_kernel() -> None:
    waits = [waiting("merge", "mutex", 200), waiting("__x64_sys_futex", "futex", 4850)]
    found = bottleneck(profile(waits, []))
    assert (found.lock, found.lock_tasks) == ("the job itself (futex)", 9.7)


def test_without_a_lock_none_is_named() -> None:
    found = bottleneck(profile([waiting("submit", "I/O", 9000)], []))
    assert (found.lock, found.lock_tasks) == ("", 0)


def test_result_with_profiles_says_what_limits_each_cell() -> None:
    stock, contexts = samples.result()[0], samples.result()[5]
    cells = results.cells("s", [stock, contexts.model_copy(update={"bottleneck": LIMIT})])
    text = report.markdown(cells, [])
    assert "What limits each" in text
    [row] = [line for line in text.splitlines() if "f2fs_merge_page_bio" in line]
    assert row.count("|") == len(bottleneck_table.COLUMNS) + 1
    for said in ("memcpy 50%, xas_load 25%", "(2.5)", "| 10% | 20% | 30% | 40% |"):
        assert said in row
    assert "What limits each" not in report.markdown(results.cells("s", samples.result()), [])


def test_bench_takes_it_from_the_profile_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    assert session._bottleneck(path) is None
    found = profile([waiting("f", "mutex", 5)], [])
    path.write_text(found.model_dump_json())
    assert session._bottleneck(path) == bottleneck(found)
