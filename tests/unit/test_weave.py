# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.tree import weave as weaving
from lab.tree.source import Source
from lab.tree.weave import Woven, weave, weave_identity
from lab.util.errors import LabError
from lab.util.lock import exclusive
from lab.util.paths import REPO
from tests.madeup import FS_WRITEBACK, add_lab

OLD_NS = 1_000_000_000


def git(woven: Woven, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=woven.path, capture_output=True, text=True, check=True)
    return done.stdout


def touched_by_nobody(source: Source, woven: Woven) -> set[str]:
    files = (path for path in source.path.rglob("*") if path.is_file())
    names = {path.relative_to(source.path).as_posix() for path in files}
    return names - set(git(woven, "ls-files").split()) - {".pwb-source.json"}


def make_old(tree: Path) -> None:
    for path in tree.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(OLD_NS, OLD_NS))


def touched(tree: Path) -> set[str]:
    files = (path for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(tree).as_posix() for path in files if path.stat().st_mtime_ns != OLD_NS}


def test_our_files_and_hooks_are_in_and_stock_is_untouched(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    assert (woven.path / "mm/ctx.c").read_text() == "int ctx;\n"
    assert "first_wb(dev)" in (woven.path / "fs/fs-writeback.c").read_text()
    assert (woven.path / "mm/Makefile").read_text() == "obj-y += backing-dev.o\nobj-y += ctx.o\n"
    assert (woven.path / "fs/other.c").read_text() == "int other;\n"
    assert (source.path / "fs/fs-writeback.c").read_text() == FS_WRITEBACK
    assert not (source.path / "mm/ctx.c").exists()


def test_a_script_of_ours_can_be_executed(source: Source, repo: Path) -> None:
    (repo / "kernel/mm/run.sh").write_text("#!/bin/sh\n")
    woven = weave(source, repo)
    assert os.access(woven.path / "mm/run.sh", os.X_OK)
    assert not os.access(woven.path / "mm/ctx.c", os.X_OK)
    modes = git(woven, "ls-tree", "-r", "woven", "mm/ctx.c", "mm/run.sh")
    assert [line.split()[0] for line in modes.splitlines()] == ["100644", "100755"]


def test_no_file_is_shared_with_stock(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    assert not (woven.path / "fs/other.c").samefile(source.path / "fs/other.c")


def test_one_commit_per_patch_on_top_of_stock(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    assert git(woven, "log", "--format=%s", "woven").splitlines() == [
        "fs: streams",
        "wb: contexts",
        "Linux 7.3.4",
    ]
    assert git(woven, "log", "--format=%an <%ae>", "-1") == "parallel writeback <pwb@localhost>\n"
    assert git(woven, "show", "stock:fs/fs-writeback.c") == FS_WRITEBACK
    assert git(woven, "diff", "--name-only", "woven~1", "woven").split() == ["fs/stream.c"]
    assert git(woven, "status", "--porcelain") == ""


def test_same_input_gives_same_commits(source: Source, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = weave(source, repo)
    monkeypatch.setenv("PWB_CACHE", str(source.path.parent / "another"))
    second = weave(source, repo)
    assert first.path != second.path
    assert git(first, "rev-parse", "woven") == git(second, "rev-parse", "woven")
    assert first.identity == second.identity == weave_identity(source, repo)


def test_weaving_again_touches_only_what_changed(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    make_old(woven.path)
    (repo / "kernel/mm/ctx.c").write_text("int ctx = 2;\n")
    again = weave(source, repo)
    assert again.path == woven.path
    assert again.identity != woven.identity
    assert touched(woven.path) == {"mm/ctx.c"}
    assert git(woven, "show", "woven~1:mm/ctx.c") == "int ctx = 2;\n"


def test_weaving_the_same_again_touches_nothing(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    make_old(woven.path)
    head = git(woven, "rev-parse", "woven")
    assert weave(source, repo) == woven
    assert touched(woven.path) == set()
    assert git(woven, "rev-parse", "woven") == head


def test_what_left_the_change_goes_back_to_stock(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    make_old(woven.path)
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    (repo / "kernel/fs/stream.c").rename(repo / "kernel/fs/other-stream.c")
    weave(source, repo)
    assert (woven.path / "fs/fs-writeback.c").read_text() == FS_WRITEBACK
    assert not (woven.path / "fs/stream.c").exists()
    # Back to stock, but newer than any object built from the woven file: make must build it again.
    assert touched(woven.path) == {"fs/fs-writeback.c", "mm/backing-dev.c", "fs/other-stream.c"}


@pytest.mark.parametrize("victim", ["fs/fs-writeback.c", "mm/ctx.c", ".git/HEAD"])
def test_damaged_woven_tree_is_mended(source: Source, repo: Path, victim: str) -> None:
    woven = weave(source, repo)
    before = (woven.path / victim).read_text()
    (woven.path / victim).unlink()
    weave(source, repo)
    assert (woven.path / victim).read_text() == before


def test_stock_files_edited_by_hand_are_put_back(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    edited, removed = sorted(
        path for path in touched_by_nobody(source, woven) if (source.path / path).stat().st_size
    )[:2]
    make_old(woven.path)
    before = (source.path / edited).read_text()
    (woven.path / edited).write_text("x" * len(before))
    (woven.path / removed).unlink()
    weave(source, repo)
    assert (woven.path / edited).read_text() == before
    assert (woven.path / removed).read_text() == (source.path / removed).read_text()
    # Newer than an object that was built from the edited one.
    assert touched(woven.path) == {edited, removed}


def test_broken_stamp_is_made_again(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    stamp = woven.path.parent / "stamp.json"
    before = stamp.read_text()
    stamp.write_text("{}")
    weave(source, repo)
    assert stamp.read_text() == before


def test_failed_weave_changes_nothing(source: Source, repo: Path) -> None:
    woven = weave(source, repo)
    make_old(woven.path)
    rename = repo / "hooks/a-contexts/01-rename.cocci"
    rename.write_text(rename.read_text().replace("writeback.c 2", "writeback.c 4"))
    (repo / "kernel/mm/ctx.c").write_text("int never;\n")
    with pytest.raises(LabError, match="expected 4"):
        weave(source, repo)
    assert touched(woven.path) == set()


def test_our_file_may_not_replace_a_stock_one(source: Source, repo: Path) -> None:
    (repo / "kernel/fs/other.c").write_text("int ours;\n")
    with pytest.raises(LabError, match=r"kernel/fs/other.c is a file of the stock kernel"):
        weave(source, repo)


def test_patch_without_any_change_is_refused(source: Source, repo: Path) -> None:
    (repo / "kernel/fs/stream.c").unlink()
    manifest = repo / "hooks/b-streams/series.toml"
    manifest.write_text(manifest.read_text().replace('["fs/*"]', "[]"))
    with pytest.raises(LabError, match=r"hooks/b-streams changes nothing"):
        weave(source, repo)


def test_two_weaves_at_once_are_refused(source: Source, repo: Path, tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "cache/woven" / source.identity / "lock", "weaving"),
        pytest.raises(LabError, match="two runs at once"),
    ):
        weave(source, repo)


def test_lab_alone_is_woven_into_a_tree_of_its_own(source: Source, repo: Path) -> None:
    add_lab(repo)
    lab, whole = weave(source, repo, part="lab"), weave(source, repo)
    assert lab.path != whole.path
    assert git(lab, "log", "--format=%s", "woven").splitlines() == ["block: lab", "Linux 7.3.4"]
    assert (lab.path / "drivers/lab.c").read_text() == "int lab;\n"
    assert not (lab.path / "mm/ctx.c").exists()
    assert (lab.path / "fs/fs-writeback.c").read_text() == FS_WRITEBACK
    assert git(whole, "log", "--reverse", "--format=%s", "stock..lab") == "block: lab\n"
    assert git(whole, "log", "--reverse", "--format=%s", "lab..woven") == "wb: contexts\nfs: streams\n"


def test_what_only_prepares_ends_before_the_first_patch_that_changes_something(
    source: Source, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_lab(repo)
    monkeypatch.setattr(weaving, "FIRST_TO_CHANGE", "b-streams")
    prepared = weave(source, repo, part="prepared")
    assert prepared.path not in (weave(source, repo).path, weave(source, repo, part="lab").path)
    assert git(prepared, "log", "--reverse", "--format=%s", "stock..woven") == "block: lab\nwb: contexts\n"


def test_the_first_patch_that_changes_something_is_one_of_ours() -> None:
    assert (REPO / "hooks" / weaving.FIRST_TO_CHANGE / "series.toml").is_file()


def test_the_change_is_not_in_the_identity_of_the_lab(source: Source, repo: Path) -> None:
    add_lab(repo)
    before = weave_identity(source, repo, part="lab"), weave_identity(source, repo)
    (repo / "kernel/mm/ctx.c").write_text("int ctx = 2;\n")
    (repo / "hooks/b-streams/01-none.diff").write_text("# places[7.2]: none\n# places: fs/other.c 1\n")
    after = weave_identity(source, repo, part="lab"), weave_identity(source, repo)
    assert after[0] == before[0]
    assert after[1] != before[1]
    (repo / "kernel/drivers/lab.c").write_text("int lab = 2;\n")
    assert weave_identity(source, repo, part="lab") != before[0]


def test_without_a_lab_its_tree_is_stock(source: Source, repo: Path) -> None:
    lab = weave(source, repo, part="lab")
    assert git(lab, "log", "--format=%s", "woven").splitlines() == ["Linux 7.3.4"]
    assert not (lab.path / "mm/ctx.c").exists()


def test_users_git_configuration_has_no_say(
    source: Source, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text("[core]\n\tautocrlf = true\n[commit]\n\tgpgsign = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    woven = weave(source, repo)
    monkeypatch.delenv("GIT_DIR")
    assert git(woven, "show", "woven:mm/ctx.c") == "int ctx;\n"
