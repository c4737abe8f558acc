# SPDX-License-Identifier: GPL-2.0
"""The table, its markdown twin and the verdicts."""

from __future__ import annotations

import io

from rich.console import Console

from lab.result import report, results
from tests import samples

CELLS = results.cells("s", samples.result())


def _shown(notes: list[str], width: int = 140) -> str:
    out = io.StringIO()
    report.show(Console(file=out, width=width), CELLS, notes, samples.FIXTURES)
    return out.getvalue()


def test_table_has_every_setting_with_its_ratios() -> None:
    text = _shown([])
    for name in ("stock", "1 context", "2 contexts", "separate BDIs", "direct I/O"):
        assert name in text
    [line] = [line for line in text.splitlines() if " 2 contexts " in line and "128 MiB" in line]
    for figure in ("210", "200..220", "1.91", "0.95", "0.70"):
        assert figure in line


def test_rows_read_stock_contexts_bounds() -> None:
    names = [cell.variant for cell in report.in_order(reversed(CELLS))]
    assert names == ["stock", "parallel", "parallel", "bdis", "direct"]


def test_number_that_the_kernel_has_found_is_shown() -> None:
    found = samples.figures(200).model_copy(update={"contexts_used": 6})
    [ours] = samples.measured("parallel", None, 128, [200])
    measured = [*samples.measured("stock", 1, 128, [100]), ours.model_copy(update={"figures": found})]
    shown = [report.row(cell)[2] for cell in report.in_order(results.cells("small", measured))]
    assert shown == ["stock", "auto contexts (6)"]
    assert report.auto_said(results.cells("small", measured)) == []


def test_what_is_found_is_held_against_the_best_fixed_number() -> None:
    rates = {None: 190, 1: 100, 8: 200}
    measured = [
        one for contexts, rate in rates.items() for one in samples.measured("parallel", contexts, 128, [rate])
    ]
    assert report.auto_said(results.cells("small", measured)) == [
        "xfs on nolat, 128 MiB: auto contexts reach 0.95 of the best fixed number measured (1, 8): "
        "8 contexts."
    ]


GAIN = results.cells(
    "s",
    [
        *samples.measured("stock", 1, 128, [99.0, 100, 101]),
        *samples.measured("parallel", 4, 128, [200.0] * 3),
    ],
)


def test_what_cannot_be_judged_is_not_called_the_best() -> None:
    [said] = report.said_of(CELLS)
    text = (
        "not judged: 1.91x stock with 2 contexts, too few rates for an interval, null ±16.7%, "
        "0.95 of separate BDIs"
    )
    assert said == f"xfs on nolat: at 128 MiB {text}."
    shown = report.table(report.Rig.of(CELLS[0]), report.in_order(CELLS))
    assert not any(row.style for row in shown.rows)


def test_a_gain_has_the_line_to_type_and_what_it_costs() -> None:
    line = "echo 4 > /sys/class/bdi/MAJOR:MINOR/nwritebacks"
    said = report.said_of(GAIN)[0].splitlines()
    assert said[0].startswith("xfs on nolat: at 128 MiB best at 4 contexts, 1.99x stock [")
    assert said[1] == f"  {line}"
    assert said[2].startswith("  Against stock: mean latency -50% [")
    written = report.markdown(GAIN, [])
    assert f"\n  `{line}`\n  Against stock: mean latency -50% [" in written
    out = io.StringIO()
    report.show(Console(file=out, width=140), GAIN, [], samples.FIXTURES)
    assert f"\n  {line}\n  Against stock: mean" in out.getvalue()
    shown = report.table(report.Rig.of(GAIN[0]), report.in_order(GAIN))
    assert [row.style for row in shown.rows] == [None, "bold"]


def test_whole_run_is_said() -> None:
    [one] = samples.measured("stock", 1, 128, [100])
    one = one.model_copy(update={"figures": one.figures.model_copy(update={"steady": False})})
    text = report.markdown(results.cells("s", [one]), [])
    assert "| stock* |" in text
    assert "final sync included" in text
    assert "final sync included" not in report.markdown(CELLS, [])


def test_dirty_pages_that_still_grow_are_said() -> None:
    [one] = samples.measured("stock", 1, 128, [100])
    growing = one.model_copy(update={"figures": one.figures.model_copy(update={"dirty_growth_mib": 14})})
    text = report.markdown(results.cells("s", [growing]), [])
    assert "| stock^ |" in text
    assert "still grew" in text
    assert "still grew" not in report.markdown(results.cells("s", [one]), [])


def test_a_narrow_terminal_loses_columns_not_digits() -> None:
    text = _shown([], width=80)
    assert "…" not in text
    [line] = [line for line in text.splitlines() if " 2 contexts " in line and "128 MiB" in line]
    for figure in ("210", "1.91", "0.95"):
        assert figure in line
    assert "mean" not in text


def test_markdown_has_the_same_rows_and_the_notes() -> None:
    text = report.markdown(CELLS, ["no bound from direct I/O: because"])
    rows = [line for line in text.splitlines() if line.startswith("| xfs")]
    assert len(rows) == len(CELLS)
    assert all(line.count("|") == len(report.COLUMNS) + 1 for line in rows)
    assert "- no bound from direct I/O: because" in text


def test_show_ends_with_where_the_results_are() -> None:
    text = _shown(["a [note]"])
    assert "a [note]" in text
    assert f"results: {samples.FIXTURES} (also {samples.FIXTURES.parent / 'latest'})" in text
    assert "\n  fio-group.json\n" in text
