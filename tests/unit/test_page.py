# SPDX-License-Identifier: GPL-2.0
"""The page of a result: complete in itself, the verdict first, made again from what is kept."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lab import cli
from lab.profile import flamegraph
from lab.result import page, report, results
from tests import samples

VOID = {"meta", "img", "br"}
RUNS = [
    *samples.measured("stock", 1, 128, [100, 120, 120]),
    *samples.measured("parallel", 1, 128, [90, 120, 121]),
    *samples.measured("parallel", 2, 128, [200, 220, 221]),
    *samples.measured("bdis", None, 128, [220, 230, 231]),
]


class Outline(HTMLParser):
    """Checks that every element is closed, and notes what the page refers to and its text in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.text.append(data.strip())


def outline(text: str) -> Outline:
    found = Outline()
    found.feed(text)
    assert found.open == []
    return found


@pytest.fixture
def result(tmp_path: Path) -> Path:
    folder = tmp_path / "2026-01-01"
    folder.mkdir()
    meta = {
        "date": "2026-01-01",
        "kernels": {"stock": {"version": "7.3.4", "identity": "5ca1ab1e"}},
        "notes": ["a <note> of the run"],
        "scenario": samples.small_scenario(title="writes & more").model_dump(mode="json"),
    }
    results.write(folder, results.cells("s", RUNS), meta)
    (folder / "throughput-nolat.png").write_bytes(b"\x89PNG")
    return folder


def test_page_needs_nothing_else(result: Path) -> None:
    found = outline(page.write(result).read_text())
    assert [one[:22] for one in found.references] == ["data:image/png;base64,"]


def test_verdict_comes_first_then_its_costs_plots_and_tables(result: Path) -> None:
    text = outline(page.write(result).read_text()).text
    where = text.index("xfs on nolat, dirty limit 128 MiB")
    assert text[where - 2] == "writes & more"
    assert text[where + 1].startswith("Best at 2 contexts, 1.84x stock [")
    assert text[where + 2] == "echo 2 > /sys/class/bdi/MAJOR:MINOR/nwritebacks"
    after = " ".join(text[where + 3 : where + 6])
    assert "number of the disk, which its partitions share: lsblk -dno MAJ:MIN /dev/DISK" in after
    assert "mean latency -46% [-53%, -37%]" in after
    assert (
        where
        < text.index("How to read this")
        < text.index("Plots")
        < text.index("Tables")
        < text.index("How it was measured")
    )
    assert "A <note> of the run." in text
    assert "7.3.4, 5ca1ab1e" in text
    assert "rw=randwrite" in text[-1]


def test_no_gain_has_no_line_to_type(result: Path) -> None:
    as_stock = [one for one in samples.result() if one.key.contexts != 2]
    as_stock += samples.measured("parallel", 2, 128, [100, 120])
    meta = json.loads((result / "meta.json").read_text())
    results.write(result, results.cells("s", as_stock), meta)
    text = outline(page.write(result).read_text()).text
    assert not any(line.startswith(("echo", "MAJOR:MINOR")) for line in text)


def test_an_interrupted_result_says_so(result: Path) -> None:
    folder = result.rename(result.with_name("2026-01-01.incomplete"))
    assert any(line.startswith("interrupted") for line in outline(page.write(folder).read_text()).text)


def test_several_results_on_one_page(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "both.html"
    assert cli._run(["report", str(result), str(result), "--output", str(output)]) == 0
    assert outline(output.read_text()).text.count("How it was measured") == 2
    assert not (result / "index.html").exists()
    assert capsys.readouterr().out == f"{output}\n"


def test_a_result_without_its_raw_data_is_drawn_again(result: Path) -> None:
    cells, meta = results.read(result)
    results.write(result, results.without_raw(cells), meta)
    assert cli._run(["report", str(result)]) == 0
    assert not list(result.glob("dirty-*.png"))
    assert list(result.glob("latency-*.png"))


def test_marks_of_the_tables_are_explained(result: Path) -> None:
    cells, meta = results.read(result)
    shown = f"* {report.MARKS['*']}."
    assert shown not in outline(page.write(result).read_text()).text
    results.write(result, [cells[0].model_copy(update={"steady": False}), *cells[1:]], meta)
    text = outline(page.write(result).read_text()).text
    assert text.index("Tables") < text.index(shown) < text.index("How it was measured")


def test_words_of_verdicts_and_tables_are_explained(result: Path) -> None:
    text = outline(page.write(result).read_text()).text
    explained = text[text.index("How to read this") : text.index("Plots")]
    words = [
        "null ±",
        "separate BDIs",
        "direct I/O",
        "MiB/s, min..max",
        "x stock, x BDIs, x direct",
        "*",
        "^",
    ]
    assert [word for word in words if word not in explained] == []


def test_a_result_without_a_verdict_says_why(result: Path) -> None:
    _, meta = results.read(result)
    only_one = [one for one in samples.result() if one.key.contexts != 2]
    assert not any("No verdict" in line for line in outline(page.write(result).read_text()).text)
    results.write(result, results.cells("s", only_one), meta)
    text = outline(page.write(result).read_text()).text
    [said] = [line for line in text if line.startswith("No verdict: neither more than one context")]
    assert text.index(said) < text.index("Plots")


def facts(result: Path, **changes: Any) -> dict[str, str]:
    """Return what the page says of how a result was measured, with these changes of its meta.json."""
    cells, meta = results.read(result)
    results.write(result, cells, meta | {"notes": []} | changes)
    text = outline(page.write(result).read_text()).text
    told = text[text.index("How it was measured") + 1 : text.index("The job")]
    return dict(zip(told[::2], told[1::2], strict=True))


def test_how_it_was_measured_is_all_that_is_known(result: Path) -> None:
    scenario = samples.small_scenario(
        mkfs={"xfs": ["-d", "agcount={cpus}"]},
        limits=[
            {"mib": 128, "ramp_s": 2, "window_s": 4},
            {"mib": 256, "ramp_s": 0, "window_s": 9, "between_mib": [24, 96]},
            {"mib": 512, "ramp_s": 1},
        ],
        parts=6,
    )
    settings = {"dirty_bytes": 134217728, "dirty_ratio": 0, "dirty_expire_centisecs": 3000}
    found = facts(
        result,
        command="./pwb bench small",
        scenario=scenario.model_dump(mode="json"),
        dirty_settings={"limit-128": settings, "limit-256": settings | {"dirty_bytes": 268435456}},
        host={"cpus": 2, "machine": "x86_64", "kernel": "6.18"},
        commit="c0ffee",
        changed_files=3,
        fio="fio-3.33",
        seconds=178.9,
        side_by_side=2,
        budget_s=120.0,
    )
    assert found == {
        "command": "./pwb bench small",
        "stock kernel": "7.3.4, 5ca1ab1e",
        "guest": "uml, 2 CPUs, 8192 MiB",
        "device": "nolat, 5120 MiB",
        "further mkfs options": (
            "mkfs.xfs -d agcount={cpus} ({cpus}: the CPUs that share a device, at least 2)"
        ),
        "ramp and window": (
            "at 128 MiB: ramp 2 s, window 4 s; at 256 MiB: from 24 to 96 MiB written; "
            "at 512 MiB: ramp 1 s, then until fio ends; direct I/O: ramp 0.5 s, window 2.5 s"
        ),
        "parts of a window": "6",
        "dirty settings": (
            "vm.dirty_bytes = 134217728, vm.dirty_expire_centisecs = 3000; "
            "vm.dirty_bytes = 268435456, vm.dirty_expire_centisecs = 3000"
        ),
        "rounds of a setting": "3",
        "host": "2 CPUs, x86_64, Linux 6.18",
        "fio": "fio-3.33",
        "commit": "c0ffee, 3 files changed since",
        "measured for": "179 s, 2 at a time, with a budget of 120 s",
    }


def test_what_a_result_does_not_tell_is_left_out(result: Path) -> None:
    rounds = samples.measured("parallel", 4, 128, [200])
    meta = results.read(result)[1]
    results.write(result, results.cells("s", [*RUNS, *rounds]), meta)
    found = facts(result, scenario={"title": "on a server", "job": {"text": "[x]"}})
    assert found == {"stock kernel": "7.3.4, 5ca1ab1e", "rounds of a setting": "1 to 3"}


def test_a_result_whose_raw_data_is_gone_keeps_its_picture_of_that(result: Path) -> None:
    # The cells of the sample name raw data that is not there.
    (result / "dirty-nolat.png").write_bytes(b"\x89PNG")
    assert cli._run(["report", str(result)]) == 0
    assert (result / "dirty-nolat.png").read_bytes() == b"\x89PNG"
    assert (result / "latency-nolat.png").stat().st_size > 4
    assert len(outline((result / "index.html").read_text()).references) == 3


def test_what_is_missing_is_named(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._run(["report", str(result), "--output", str(tmp_path / "no" / "page.html")]) == 1
    assert f"pwb: error: --output {tmp_path}/no/page.html cannot be written" in capsys.readouterr().err


def test_what_is_no_result_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli._run(["report", str(tmp_path)]) == 1
    assert f"{tmp_path} is no result of a bench" in capsys.readouterr().err


def test_flame_graphs_of_stock_and_the_best_are_parts_of_the_page(result: Path) -> None:
    assert "Where the time went" not in outline(page.write(result).read_text()).text
    for variant in ("stock", "parallel"):
        run = result / "raw" / variant / "limit-128"
        run.mkdir(parents=True)
        for name in ("profile.svg", "profile-sleep.svg"):
            frames = [(f"{variant}'s <function>", "kernel")]
            graph = flamegraph.draw(flamegraph.tree([(frames, 5.0)]), "A graph", "ms")
            (run / name).write_text(graph)
    text = page.write(result).read_text()
    found = outline(text)
    tooltips = [text for text in found.text if text.endswith(">: 5 ms, 100.0%")]
    assert tooltips == [f"{variant}'s <function>: 5 ms, 100.0%" for variant in ("stock", "parallel")] * 2
    # Several in one page would clash in them.
    assert not any(part in text.partition("</head>")[2] for part in (" id=", "<style"))
    names = ("on a CPU", "waiting", "stock", "2 contexts")
    told = found.text[found.text.index("Where the time went") : found.text.index("Tables")]
    assert [text for text in told if text.endswith(names)] == [
        "xfs, dirty limit 128 MiB, on a CPU",
        "stock",
        "2 contexts",
        "xfs, dirty limit 128 MiB, waiting",
        "stock",
        "2 contexts",
    ]
