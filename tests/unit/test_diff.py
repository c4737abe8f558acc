# SPDX-License-Identifier: GPL-2.0
"""Two results side by side."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from lab import cli
from lab.experiment.axes import Variant
from lab.result import diff, results
from lab.result.results import Cell
from lab.result.verdict import Group
from tests import samples


def cells(stock: list[float], two: list[float], fs: str = "xfs") -> list[Cell]:
    runs = [
        *samples.measured("stock", 1, 128, stock, fs=fs),
        *samples.measured("parallel", 2, 128, two, fs=fs),
    ]
    return results.cells("s", runs)


def parts(rates: list[list[float]], contexts: int | None = 2) -> list[Cell]:
    """Return the cell of a result with these rates in the parts of the window of each round."""
    variant: Variant = "parallel" if contexts else "stock"
    runs = samples.measured(variant, contexts or 1, 128, [statistics.fmean(of) for of in rates])
    return results.cells(
        "s",
        [
            one.model_copy(update={"figures": one.figures.model_copy(update={"parts_mib_s": of})})
            for one, of in zip(runs, rates, strict=True)
        ],
    )


def rows(text: str) -> list[str]:
    return [line.split(" | ", 5)[5] for line in text.splitlines()[2:] if line.startswith("| nolat")]


def test_an_interval_says_what_differs() -> None:
    before = cells([100, 102, 101], [200, 203, 201])
    after = cells([101, 100, 102], [230, 233, 231])
    assert rows(diff.markdown(before, after)) == [
        "101 (100..102) | 101 (100..102) | 1.00 [0.98, 1.02] | the same |",
        "201 (200..203) | 231 (230..233) | 1.15 [1.13, 1.17] | more |",
    ]
    assert rows(diff.markdown(after, before))[1].endswith("| 0.87 [0.86, 0.88] | less |")


def test_rounds_that_lie_apart_by_chance_are_not_told_apart() -> None:
    text = diff.markdown(cells([100, 102], [200, 201]), cells([100, 102], [215, 240]))
    assert rows(text)[1] == "200 (200..201) | 228 (215..240) | 1.13 [0.57, 2.27] | not told apart |"


def test_a_round_counts_once_where_there_are_several() -> None:
    """Parts of a round lie close together, and rounds do not."""
    before = parts([[99, 100, 101], [139, 140, 141], [119, 120, 121]])
    after = parts([[139, 140, 141], [119, 120, 121], [159, 160, 161]])
    assert rows(diff.markdown(before, after)) == [
        "120 (99..141) | 140 (119..161) | 1.17 [0.82, 1.66] | not told apart |"
    ]
    # With one round the parts are all that there is, and how far boots lie apart is assumed.
    one_round = rows(diff.markdown(parts([[99, 100, 101]]), parts([[119, 120, 121]])))
    assert one_round == ["100 (99..101) | 120 (119..121) | 1.20 [1.09, 1.32] | more |"]


def test_an_interval_of_parts_is_widened_by_the_null() -> None:
    stock, null = parts([[99, 100, 101]], None), parts([[101, 102, 103]], 1)
    before, after = [parts([[99, 100, 101]]), parts([[111, 112, 113]])]
    said = rows(diff.markdown([*stock, *null, *before], [*stock, *null, *after]))
    assert said[2] == "100 (99..101) | 112 (111..113) | 1.12 [1.03, 1.22] | not told apart |"


def test_direct_io_is_widened_by_what_the_cache_shows_of_the_device() -> None:
    stock, null = parts([[99, 100, 101]], None), parts([[99, 100, 101]], 1)
    before, after = (
        [cell.model_copy(update={"dirty_limit_mib": None, "variant": "direct"}) for cell in parts([rates], 4)]
        for rates in ([99.0, 100, 101], [101.0, 102, 103])
    )
    alone = rows(diff.markdown(before, after))
    assert alone == ["100 (99..101) | 102 (101..103) | 1.02 [0.92, 1.13] | not told apart |"]
    said = rows(diff.markdown([*stock, *null, *before], [*stock, *null, *after]))
    assert said[-1] == "100 (99..101) | 102 (101..103) | 1.02 [1.00, 1.04] | the same |"


def test_a_result_of_one_context_alone_has_a_null() -> None:
    stock = parts([[99, 100, 101]], None)
    before, after = parts([[99, 100, 101]], 1), parts([[94.9, 95.5, 96]], 1)
    said = rows(diff.markdown([*stock, *before], [*stock, *after]))
    # By its own null of 4.5%, where 5% would be assumed without one.
    assert said[1].startswith("100 (99..101) | 95 (95..96) | 0.95 ")
    assert diff._nulls([*stock, *after]) == {Group.of(stock[0]): pytest.approx(0.0453, abs=1e-3)}


def test_what_else_differs_is_listed() -> None:
    lines = diff.markdown(cells([100], [200]), cells([100], [250])).splitlines()
    where = lines.index("What else B has more or less of:")
    assert lines[where + 3] == (
        "- xfs on nolat, 2 CPUs, 2 contexts at 128 MiB: mean latency -20%, p99 latency +0%, "
        "flushers' CPU time per GiB +0%, final sync +0%, extents +0%"
    )
    said = diff.markdown(cells([100, 102, 101], [200, 203, 201]), cells([100, 102, 101], [230, 233, 231]))
    assert "2 contexts at 128 MiB: mean latency -13% [-14%, -12%], p99 latency +0% [+0%, +0%]" in said


def test_one_rate_of_each_cannot_tell() -> None:
    text = diff.markdown(cells([100], [200]), cells([100], [200.1]))
    assert rows(text)[1].endswith("| 1.00 | cannot tell: too few rates |")


def test_a_whole_run_is_not_compared_with_a_window() -> None:
    whole = [cell.model_copy(update={"steady": False}) for cell in parts([[99, 100, 101]])]
    said = rows(diff.markdown(parts([[99, 100, 101]]), whole))
    assert said[0].endswith("| 1.00 | cannot tell: one has no steady window |")


def test_of_several_jobs_those_of_one_name_are_compared() -> None:
    found = cells([100], [200])

    def named(name: str, fio: str = "fio-3.33") -> diff.Result:
        return found, {"scenario": {"name": name}, "fio": fio}

    text = diff.text([named("x"), named("y")], [named("y", "fio-3.36"), named("z")])
    pair = diff.markdown(found, found)
    assert text == (f"y:\n\n{pair}\nfio is fio-3.33 in A and fio-3.36 in B\n\nonly in A: x\n\nonly in B: z\n")
    # A single one of each is what is asked for, whatever it is called.
    assert diff.text([named("x")], [named("y")]) == pair


def test_other_jobs_are_told() -> None:
    meta = {"fio": "fio-3.33", "scenario": {"job": {"text": "[a]"}, "guest": {"cpus": 8}}}
    assert diff.notes(meta, meta) == []
    other = {"fio": "fio-3.36", "scenario": {"job": {"text": "[b]"}, "guest": {"cpus": 8}}}
    assert diff.notes(meta, other) == [
        "A and B differ in job of their scenarios: see meta.json of each",
        "fio is fio-3.33 in A and fio-3.36 in B",
    ]


def test_what_only_one_has_is_named() -> None:
    lines = diff.markdown(cells([100], [200]), cells([100], [200], fs="ext4")).splitlines()
    assert lines[0] == "no setting is in both results"
    assert (
        lines[2]
        == "only in A: xfs on nolat, 2 CPUs, stock at 128 MiB; xfs on nolat, 2 CPUs, 2 contexts at 128 MiB"
    )
    assert lines[4].startswith("only in B: ext4 on nolat")


def limited(mib: int, **settings: int) -> diff.Result:
    """Return a result at a limit, and what it was measured with."""
    found = results.cells("s", samples.measured("stock", 1, mib, [100, 101]))
    return found, {"dirty_settings": {f"limit-{mib}": settings}}


def test_dirty_limits_are_compared_to_the_byte() -> None:
    a = limited(95, dirty_bytes=100_000_000, dirty_ratio=0)
    lines = diff.text([a], [limited(95, dirty_bytes=95 << 20, dirty_ratio=0)]).splitlines()
    assert lines[0] == "no setting is in both results"
    assert lines[2] == "only in A: xfs on nolat, 2 CPUs, stock at 100000000 bytes"
    assert lines[4] == "only in B: xfs on nolat, 2 CPUs, stock at 95 MiB"
    same = diff.text([a], [a]).splitlines()
    assert same[2].startswith("| nolat | 2 | xfs | 100000000 bytes | stock |")
    assert same[4] == "dirty limits compared, the same in both: 100000000 bytes"


def test_a_dirty_limit_is_the_one_that_was_set() -> None:
    """What it came to, by which cells tell it, may lie below."""
    text = diff.text([limited(128)], [limited(127, dirty_bytes=128 << 20)])
    assert "dirty limits compared, the same in both: 128 MiB\n" in text
    shares = [limited(mib, dirty_bytes=0, dirty_ratio=20) for mib in (3201, 3199)]
    text = diff.text(shares[:1], shares[1:])
    assert "| 20% of memory | stock |" in text
    assert "the same in both: 20% of memory (3201 MiB in A, 3199 MiB in B)\n" in text
    assert "no setting is in both" in diff.text(shares[:1], [limited(3201)])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        results.write(folder, cells([100], [200]), {})
    assert cli._run(["diff", *map(str, folders)]) == 0
    assert "| 2 contexts | 200 (200..200) | 200 (200..200) | 1.00 |" in capsys.readouterr().out
    assert cli._run(["diff", str(tmp_path), str(folders[0])]) == 1
    assert f"{tmp_path} is no result of a bench" in capsys.readouterr().err
