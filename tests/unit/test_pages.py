# SPDX-License-Identifier: GPL-2.0
"""Results that are kept, and the parts of pages that are made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.docs import derived, measurements, pages
from lab.result import results
from lab.tree import change
from lab.util.errors import LabError
from tests import samples

PART = "<!-- made: {} -->\nout of date\n<!-- end -->\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep a result of this kernel, one of nearly the same, one of an earlier; return the pages."""
    monkeypatch.setattr(measurements, "SMALL_DIFFERENCES", {"before": "a comma"})
    monkeypatch.setattr(measurements, "MEASUREMENTS", tmp_path / "measurements")
    monkeypatch.setattr(pages, "MEASUREMENTS", tmp_path / "measurements")
    for name, of in (("present", change.identity()), ("near", "before"), ("past", None)):
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        about = {"view": "cells", "command": "./pwb bench", "date": "2026-11-25", "change": of}
        results.write(folder, results.cells("s", samples.result()), about)
        measurements.keep(folder, name)
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_page_says_of_which_kernel_its_figures_are(kept: Path) -> None:
    names = ("present", "near", "past")
    links = " ".join(f"[{name}](../measurements/{name}/table.md)" for name in names) + "\n"
    text = pages.renewed(page(kept, links + PART.format("source")))
    sentence = (
        "Measured on this kernel: [present](../measurements/present/meta.json); "
        "on this kernel but for a comma: [near](../measurements/near/meta.json); "
        "on an earlier kernel: [past](../measurements/past/meta.json)."
    )
    assert sentence in " ".join(text.split())
    assert "out of date" not in text


def test_page_that_does_not_say_it_is_an_error(kept: Path) -> None:
    with pytest.raises(LabError, match="does not say of which kernel"):
        pages.renewed(page(kept, "[a](../measurements/past/table.md)\n"))


def test_table_of_a_page_is_that_of_the_measurement(kept: Path) -> None:
    text = pages.renewed(page(kept, PART.format("table past") + PART.format("source")))
    assert "| xfs | 128 MiB | 2 contexts | 210 |" in text
    assert "[past]" in text


def test_figures_of_a_letter_say_that_they_are_of_an_earlier_change(kept: Path) -> None:
    assert "earlier" not in pages.figures("table present")
    assert pages.figures("table past").endswith("\n\n(Measured on an earlier kernel.)\n")
    assert pages.figures("table near").endswith("\n\n(Measured on this kernel but for a comma.)\n")


def test_unknown_part_is_an_error(kept: Path) -> None:
    with pytest.raises(LabError, match="unknown part of a page 'chart'"):
        pages.renewed(page(kept, PART.format("chart past") + PART.format("source")))


def test_table_of_a_setting_that_was_not_measured_is_an_error(kept: Path) -> None:
    with pytest.raises(LabError, match="0 cells with fs xfs, variant stock, layout even"):
        pages.renewed(page(kept, PART.format("affinity past") + PART.format("source")))


def test_what_is_too_large_for_git_is_not_kept(kept: Path) -> None:
    folder = kept.parent / "results" / "past"
    (folder / "plot.png").write_bytes(bytes(measurements.MOST_BYTES + 1))
    with pytest.raises(LabError, match=r"plot\.png has 200,001 bytes"):
        measurements.keep(folder, "past")
    assert measurements.names() == ["near", "past", "present"]


def test_what_broke_off_is_not_kept(kept: Path) -> None:
    folder = kept.parent / "results" / "past"
    broken = folder.rename(folder.with_name("past.incomplete"))
    with pytest.raises(LabError, match=r"past\.incomplete is of a run that broke off"):
        measurements.keep(broken, "past")
    assert measurements.names() == ["near", "past", "present"]


def test_cells_are_kept_without_their_raw_data(kept: Path) -> None:
    source = kept.parent / "results" / "past"
    assert any(cell.raw for cell in results.read(source)[0])
    assert not any(cell.raw for cell in results.read(kept.parent / "measurements" / "past")[0])


def test_bad_name_and_no_result_are_errors(kept: Path) -> None:
    with pytest.raises(LabError, match="names no measurement"):
        measurements.keep(kept.parent / "results" / "past", "../past")
    with pytest.raises(LabError, match="is no result that can be kept"):
        measurements.keep(kept, "docs")


def test_a_result_of_another_kind_does_not_take_the_place_of_one(kept: Path) -> None:
    folder = kept.parent / "results" / "past"
    about = json.loads((folder / "meta.json").read_text())
    measurements.keep(folder, "past")
    (folder / "meta.json").write_text(json.dumps(about | {"scenario": {"name": "t2"}}))
    with pytest.raises(LabError, match=r"measurements/past is of another kind: expected .* and past is"):
        measurements.keep(folder, "past")


def test_what_was_kept_stays_where_the_next_one_is_not_whole(kept: Path) -> None:
    folder = kept.parent / "results" / "past"
    before = (kept.parent / "measurements" / "past" / "summary.json").read_bytes()
    about = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(about | {"view": "odd"}))
    with pytest.raises(LabError, match="odd"):
        measurements.keep(folder, "past")
    (folder / "meta.json").write_text(json.dumps(about))
    (folder / "summary.json").unlink()
    with pytest.raises(LabError, match=r"has no summary\.json"):
        measurements.keep(folder, "past")
    assert (kept.parent / "measurements" / "past" / "summary.json").read_bytes() == before


def test_result_is_kept_by_the_name_of_its_scenario(kept: Path) -> None:
    folder = kept.parent / "results" / "past"
    assert measurements.name_of(folder) == "past"
    about = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(about | {"scenario": {"name": "t2"}}))
    assert measurements.name_of(folder) == "t2"


def test_session_is_shown_whole_and_no_wider_than_a_page(kept: Path) -> None:
    wide = f"# fio {'--option ' * 15}--last"
    folder = kept.parent / "measurements/present"
    (folder / "table.md").write_text(f"```\n{wide}\nWRITE: 1\n```\n")
    text = pages.renewed(page(kept, PART.format("session present") + PART.format("source")))
    assert max(map(len, text.splitlines())) <= derived.WIDEST
    assert " ".join(text.split()).count(wide) == 1
    assert "\n    --option" in text
    assert text.index("WRITE: 1\n```\n") > text.index("--last\n")
