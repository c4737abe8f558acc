# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.tree.series import write_series
from lab.tree.source import Source, user_tree
from lab.tree.weave import weave
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO
from tests.madeup import add_lab, linux_tree, write_files

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]


def test_series_applies_to_a_pristine_tree(source: Source, repo: Path, tmp_path: Path) -> None:
    patches = write_series(source, tmp_path / "out", repo)
    assert [patch.relative_to(tmp_path / "out").as_posix() for patch in patches] == [
        "a-contexts/0000-cover-letter.patch",
        "a-contexts/0001-wb-contexts.patch",
        "b-streams/0000-cover-letter.patch",
        "b-streams/0001-fs-streams.patch",
    ]
    tree = linux_tree(tmp_path / "pristine")
    mails = [str(patch) for patch in patches if "cover-letter" not in patch.name]
    commands = (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["am", "-q", *mails])
    for command in commands:
        subprocess.run([*GIT, *command], cwd=tree, check=True, capture_output=True)
    woven = weave(source, repo).path
    differing = subprocess.run(["diff", "-r", "--exclude=.git", str(tree), str(woven)], check=False)
    assert differing.returncode == 0


def test_patches_with_one_first_letter_are_one_series(source: Source, repo: Path, tmp_path: Path) -> None:
    second = 'title = "wb: more"\nmessage = "Why."\nkernel = ["block/*"]\n'
    write_files(repo, {"kernel/block/more.c": "int more;\n", "hooks/a2-more/series.toml": second})
    patches = write_series(source, tmp_path / "out", repo)
    assert [patch.name for patch in patches if patch.parent.name == "a-contexts"] == [
        "0000-cover-letter.patch",
        "0001-wb-contexts.patch",
        "0002-wb-more.patch",
    ]


def test_lab_is_not_proposed(source: Source, repo: Path, tmp_path: Path) -> None:
    add_lab(repo)
    patches = write_series(source, tmp_path / "out", repo)
    assert [patch.name[5:] for patch in patches if "cover" not in patch.name] == [
        "wb-contexts.patch",
        "fs-streams.patch",
    ]
    assert all("block: lab" not in patch.read_text() for patch in patches)


def test_letter_of_a_users_tree_names_no_package(repo: Path, tmp_path: Path) -> None:
    (repo / "hooks/cover-letter.j2").write_text((REPO / "hooks/cover-letter.j2").read_text())
    source = user_tree(linux_tree(tmp_path / "own"))
    write_series(source, tmp_path / "out", repo)
    letter = (tmp_path / "out" / "a-contexts" / "0000-cover-letter.patch").read_text()
    assert f"Made for Linux {source.version}.\n" in letter


def test_cover_letters_are_rendered(source: Source, repo: Path, tmp_path: Path) -> None:
    write_series(source, tmp_path / "out", repo)
    first, second = (
        (tmp_path / "out" / name / "0000-cover-letter.patch").read_text()
        for name in ("a-contexts", "b-streams")
    )
    assert "Subject: [PATCH 0/1] wb: all\n" in first
    assert "\nA problem.\n\nOn 7.3.4\n" in first
    assert "Subject: [PATCH 0/1] fs: all\n" in second
    assert "\nAnother problem.\n\nOn 7.3.4, wb: all\n" in second
    assert "***" not in first + second


def test_cover_letter_has_figures(source: Source, repo: Path, tmp_path: Path) -> None:
    write_files(repo, {"hooks/b-streams.txt": "fs: all\n\nSo much:\n\n[figures: multiples x]\n\nOpen.\n"})
    write_series(source, tmp_path / "out", repo, figures=lambda what: f"table of {what}\n")
    letter = (tmp_path / "out" / "b-streams" / "0000-cover-letter.patch").read_text()
    assert "\nSo much:\n\ntable of multiples x\n\nOpen.\n" in letter


def test_cover_letter_says_to_whom_it_goes(source: Source, repo: Path, tmp_path: Path) -> None:
    program = "print qq(A Person <a\\@x.org>\\nlist\\@x.org\\nother\\@x.org\\n);\n"
    write_files(source.path, {"scripts/get_maintainer.pl": program})
    write_series(source, tmp_path / "out", repo)
    letter = (tmp_path / "out" / "a-contexts" / "0000-cover-letter.patch").read_text()
    assert (
        "[PATCH 0/1] wb: all\nTo: list@x.org,\n other@x.org\nCc: A Person <a@x.org>\n\nA problem." in letter
    )


def test_tree_that_cannot_tell_is_named(source: Source, repo: Path, tmp_path: Path) -> None:
    write_files(source.path, {"scripts/get_maintainer.pl": "die 'no MAINTAINERS';\n"})
    with pytest.raises(LabError, match=r"get_maintainer\.pl of the kernel tree failed: no MAINTAINERS"):
        write_series(source, tmp_path / "out", repo)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, "found 0"),
        ({"b-x.txt": "s\n\nt\n", "b-y.txt": "s\n\nt\n"}, "found 2"),
        ({"b-x.txt": "s\n"}, "a subject"),
    ],
)
def test_system_without_its_text_is_refused(
    source: Source, repo: Path, tmp_path: Path, texts: dict[str, str], said: str
) -> None:
    (repo / "hooks/b-streams.txt").unlink()
    write_files(repo / "hooks", texts)
    with pytest.raises(LabError, match=said):
        write_series(source, tmp_path / "out", repo)
    assert not (tmp_path / "out").exists()


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


def test_series_waits_for_who_holds_the_woven_tree(
    source: Source, repo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = weave(source, repo).path.parent / "lock"
    with ThreadPoolExecutor() as pool:
        with exclusive(lock, "building"):
            written = pool.submit(write_series, source, tmp_path / "out", repo)
            while "writing the series waits for process" not in capfd.readouterr().err:
                assert not written.done()
        assert len(written.result()) == 4
