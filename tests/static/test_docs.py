# SPDX-License-Identifier: GPL-2.0
"""The pages: their links lead somewhere, and their lines can be read beside code."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from lab.docs import derived, measurements, pages
from lab.experiment.measure import FIGURES
from lab.util.paths import REPO

HANDWRITTEN = pages.pages()
PAGES = [*HANDWRITTEN, *sorted(measurements.MEASUREMENTS.rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def named(page: Path) -> str:
    return str(page.relative_to(REPO))


def prose(page: Path) -> list[str]:
    """Return the lines of a page outside of code blocks and tables."""
    return [line for line in page.read_text().splitlines() if not line.startswith(("    ", "|"))]


def anchors(page: Path) -> set[str]:
    """Return what a link can name in a page, as GitHub makes it of the headings."""
    headings = (line.lstrip("#").strip().lower() for line in prose(page) if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (anchor and anchor not in anchors(place)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", HANDWRITTEN, ids=named)
def test_no_line_of_prose_is_too_wide(page: Path) -> None:
    assert [line for line in prose(page) if len(line) > derived.WIDEST] == []


def test_every_page_is_in_the_index() -> None:
    index = REPO / "docs" / "README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text())}
    assert [
        page for page in HANDWRITTEN if page.parent == index.parent and page not in linked | {index}
    ] == []


def test_every_command_is_in_the_docs() -> None:
    from lab import cli

    text = "".join(page.read_text() for page in PAGES)
    assert [name for name in cli.cli.commands if f"./pwb {name}" not in text] == []


def commands(page: Path) -> list[list[str]]:
    """Return the words of each line of a page that calls ./pwb, without comment and what the guest runs."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^    \./pwb (.+)$", text, re.MULTILINE) + re.findall(r"`\./pwb ([^`]+)`", text)
    # A line of several commands, or one with a placeholder for further words, is read up to there.
    return [re.split(r" (?:&&|\|\||[|;>]|\.\.\.)", line)[0].split("#")[0].split() for line in lines]


@pytest.mark.parametrize("page", HANDWRITTEN, ids=named)
def test_commands_have_the_options_that_pages_give_them(page: Path) -> None:
    from lab import cli

    unknown = []
    for words in commands(page):
        # The interpreter of the set-up takes its own.
        if words[0] in ("python", "--help"):
            continue
        command = cli.cli.commands.get(words[0])
        params = command.params if command else []
        known = {option for one in params for option in (*one.opts, *one.secondary_opts)}
        unknown += [] if command else [words[0]]
        given = list(itertools.takewhile(lambda word: word != "--", words[1:]))
        options = [word.split("=")[0] for word in given if re.match("--?[a-z]", word)]
        unknown += [f"{words[0]} {option}" for option in options if option not in known | {"--help", "-h"}]
    assert unknown == []


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_explained_with_its_unit(name: str) -> None:
    lines = (REPO / "docs" / "results.md").read_text().splitlines()
    [row] = [line for line in lines if line.startswith("|") and f"`{name}`" in line.split("|")[1]]
    assert FIGURES[name].unit == row.split("|")[2].strip()


OWN = ("lab", "guest", "vtime", "docs", "scenarios", "setup", "tools", "tests")
NAMED_FILE = re.compile(rf"(?<![\w/.-])(?:{'|'.join(OWN)})/[\w/-]+\.(?:py|[ch]|md|toml|fio|sh)\b")


def test_every_file_that_is_named_is_there() -> None:
    folders = [REPO / name for name in OWN if name != "tests"]
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".c", ".h")]
    scenarios = [*(REPO / "scenarios").glob("*.toml"), *(REPO / "devices").glob("*.toml")]
    gone = [
        f"{named(path)}: {file}"
        for path in [*HANDWRITTEN, *sources, *scenarios]
        for file in NAMED_FILE.findall(path.read_text())
        if not (REPO / file).exists()
    ]
    assert gone == []
