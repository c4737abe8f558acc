# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.tree.series import write_series
from lab.tree.source import Source
from lab.tree.weave import weave
from lab.util.errors import LabError
from tests.madeup import add_lab, linux_tree

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]


def test_series_applies_to_a_pristine_tree(source: Source, repo: Path, tmp_path: Path) -> None:
    patches = write_series(source, tmp_path / "out", repo)
    assert [patch.name for patch in patches] == [
        "0000-cover-letter.patch",
        "0001-wb-contexts.patch",
        "0002-fs-streams.patch",
    ]
    tree = linux_tree(tmp_path / "pristine")
    commands = (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["am", "-q", *map(str, patches[1:])])
    for command in commands:
        subprocess.run([*GIT, *command], cwd=tree, check=True, capture_output=True)
    woven = weave(source, repo).path
    differing = subprocess.run(["diff", "-r", "--exclude=.git", str(tree), str(woven)], check=False)
    assert differing.returncode == 0


def test_lab_is_not_proposed(source: Source, repo: Path, tmp_path: Path) -> None:
    add_lab(repo)
    patches = write_series(source, tmp_path / "out", repo)
    assert [patch.name[5:] for patch in patches[1:]] == ["wb-contexts.patch", "fs-streams.patch"]
    assert "block: lab" not in patches[0].read_text()


def test_cover_letter_is_rendered(source: Source, repo: Path, tmp_path: Path) -> None:
    letter = write_series(source, tmp_path / "out", repo)[0].read_text()
    assert "Subject: [PATCH 0/2] wb: all\n" in letter
    assert "On 7.3.4:\n  - wb: contexts\n  - fs: streams\n" in letter
    assert "***" not in letter


def test_same_input_gives_same_patches(source: Source, repo: Path, tmp_path: Path) -> None:
    first = write_series(source, tmp_path / "one", repo)
    second = write_series(source, tmp_path / "two", repo)
    assert [patch.read_text() for patch in first] == [patch.read_text() for patch in second]


def test_output_that_holds_something_is_left_alone(source: Source, repo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "0001-mine.patch").write_text("mine")
    with pytest.raises(LabError, match="name a new or an empty directory"):
        write_series(source, out, repo)
    assert [path.read_text() for path in out.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("template", "said"),
    [(None, "is missing"), ("{{ nothing }}", "does not render"), ("{% if", "does not render")],
)
def test_bad_cover_letter_is_refused(
    source: Source, repo: Path, tmp_path: Path, template: str | None, said: str
) -> None:
    letter = repo / "hooks/cover-letter.j2"
    if template is None:
        letter.unlink()
    else:
        letter.write_text(template)
    with pytest.raises(LabError, match=f"hooks/cover-letter.j2 {said}"):
        write_series(source, tmp_path / "out", repo)
    assert not (tmp_path / "out").exists()
