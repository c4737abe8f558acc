# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from lab.tree.applier import Applier, Overlay, changed_places
from lab.tree.hooks import Hook, load_patches, parse_hook, read_text, to_bytes
from lab.util.errors import LabError
from tests.madeup import MAKE, RENAME, clone, linux_tree, write_files

SERIES = "7.3"


def hook(tmp_path: Path, name: str, body: str, series: str = SERIES) -> Hook:
    path = tmp_path / "a-contexts" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(body)
    return parse_hook(path, series)


def applied(tmp_path: Path, name: str, body: str) -> dict[str, str]:
    overlay = Overlay(linux_tree(tmp_path / "linux"))
    Applier(tmp_path / "memo").apply(hook(tmp_path, name, body), overlay)
    return overlay.changed


def test_header_is_read(tmp_path: Path) -> None:
    body = (
        "// Why: the text says it.\n// files: fs/a.c include/b.h\n// places: fs/a.c 2,\n// places: fs/c.c 1\n"
        "// options: --no-includes --max-width 90\n@@\n@@\n// places: fs/d.c 9\n"
    )
    parsed = hook(tmp_path, "01-x.cocci", body)
    assert parsed.name == "a-contexts/01-x.cocci"
    assert parsed.places == {"fs/a.c": 2, "fs/c.c": 1}
    assert parsed.reads == ("include/b.h",)
    assert parsed.options == ("--no-includes", "--max-width", "90")


def test_counts_of_one_series_override_the_common_ones(tmp_path: Path) -> None:
    body = "// places: fs/a.c 2, fs/b.c 1\n// places[7.2]: fs/a.c 3\n@@\n@@\n"
    assert hook(tmp_path, "01-x.cocci", body).places == {"fs/a.c": 2, "fs/b.c": 1}
    assert hook(tmp_path, "01-x.cocci", body, "7.2").places == {"fs/a.c": 3, "fs/b.c": 1}


def test_hook_may_be_left_out_of_a_series(tmp_path: Path) -> None:
    body = "// places: fs/a.c 2\n// places[7.2]: none\n@@\n@@\n"
    assert hook(tmp_path, "01-x.cocci", body, "7.2").places == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("@@\n@@\n", "does not say how many places"),
        ("// places: fs/a.c\n@@\n@@\n", "'fs/a.c' is not a place"),
        ("// places: fs/a.c 1\n// options: --python evil\n", "option '--python' is not among"),
        ("// places: fs/a.c 1\n// options: --max-width\n", "option '--max-width' is not among"),
    ],
)
def test_bad_header_is_refused(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(LabError, match=said) as caught:
        hook(tmp_path, "01-x.cocci", body)
    assert "a-contexts/01-x.cocci" in str(caught.value)


def test_semantic_patch_changes_the_stated_places(tmp_path: Path) -> None:
    changed = applied(tmp_path, "01-rename.cocci", RENAME)
    assert set(changed) == {"fs/fs-writeback.c", "mm/backing-dev.c"}
    assert changed["fs/fs-writeback.c"].count("go(first_wb(dev));") == 3
    assert (tmp_path / "linux/fs/fs-writeback.c").read_text().count("first_wb") == 0


@pytest.mark.parametrize("stated", [1, 3])
def test_other_count_names_hook_file_and_both_numbers(tmp_path: Path, stated: int) -> None:
    with pytest.raises(LabError) as caught:
        applied(tmp_path, "01-rename.cocci", RENAME.replace("writeback.c 2", f"writeback.c {stated}"))
    assert str(caught.value) == (
        "hook a-contexts/01-rename.cocci changed 2 places in fs/fs-writeback.c (lines 5, 8), "
        f"expected {stated}: the kernel moved there; update the hook"
    )


def test_count_of_a_diff_is_checked_too(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"02-make.diff changed 1 places in mm/Makefile .*expected 2"):
        applied(tmp_path, "02-make.diff", MAKE.replace("Makefile 1", "Makefile 2"))


def test_file_that_is_only_read_must_stay(tmp_path: Path) -> None:
    body = RENAME.replace(", mm/backing-dev.c 1", "\n// files: mm/backing-dev.c")
    with pytest.raises(LabError, match=r"changed 1 places in mm/backing-dev.c .*expected 0"):
        applied(tmp_path, "01-rename.cocci", body)


def test_skipped_function_is_named(tmp_path: Path) -> None:
    linux = linux_tree(tmp_path / "linux")
    (linux / "mm/backing-dev.c").write_text(
        "void stop(struct device *dev)\n{\n\tODD {{ (;\n\tend(&dev->wb);\n}\n"
    )
    with pytest.raises(
        LabError, match=r"changed 0 places in mm/backing-dev.c.*cannot parse there: near line \d"
    ):
        Applier(tmp_path / "memo").apply(hook(tmp_path, "01-rename.cocci", RENAME), Overlay(linux))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"01-rename.cocci names fs/gone.c, which is not in the kernel tree"):
        applied(tmp_path, "01-rename.cocci", RENAME.replace("mm/backing-dev.c", "fs/gone.c"))


def test_rule_that_spatch_refuses_shows_its_words(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"hook a-contexts/01-bad.cocci: spatch refused it .*identifier"):
        applied(tmp_path, "01-bad.cocci", "// places: fs/other.c 1\n@@\nidentifier ,;\n@@\n- x\n")


def test_diff_may_only_change_what_it_states(tmp_path: Path) -> None:
    more = MAKE + "--- a/fs/other.c\n+++ b/fs/other.c\n@@ @@\n-int other;\n+int another;\n"
    with pytest.raises(LabError, match=r"changes fs/other.c, which its places header does not name"):
        applied(tmp_path, "02-make.diff", more)


def test_diff_that_does_not_fit_names_hook_and_file(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"02-make.diff, mm/Makefile: hunk 1 .*fits nowhere"):
        applied(tmp_path, "02-make.diff", MAKE.replace(" obj-y += backing-dev.o", " obj-y += backing.o"))


def test_header_changed_by_an_earlier_hook_is_seen(tmp_path: Path) -> None:
    overlay = Overlay(linux_tree(tmp_path / "linux"))
    overlay.write("include/defs.h", "struct device {\n\tstruct other *peer;\n\tstruct wb wb;\n};\n")
    body = (
        "// places: mm/backing-dev.c 1\n// options: --all-includes\n@@\nstruct device *dev;\n"
        "struct other *peer;\n@@\n- end(&dev->wb);\n+ end2(&dev->wb);\n"
    )
    Applier(tmp_path / "memo").apply(hook(tmp_path, "01-x.cocci", body), overlay)
    assert "end2" in overlay.changed["mm/backing-dev.c"]


def test_spatch_runs_once_for_the_same_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = applied(tmp_path, "01-rename.cocci", RENAME)
    monkeypatch.setattr("lab.tree.applier.shutil.which", lambda _: None)
    assert applied(tmp_path, "01-rename.cocci", RENAME) == first
    with pytest.raises(LabError, match="coccinelle"):
        applied(tmp_path, "01-rename.cocci", RENAME + "// another rule text\n")


def test_broken_remembered_result_is_made_again(tmp_path: Path) -> None:
    first = applied(tmp_path, "01-rename.cocci", RENAME)
    for entry in (tmp_path / "memo").iterdir():
        entry.write_text("{ half")
    assert applied(tmp_path, "01-rename.cocci", RENAME) == first


def test_unused_results_are_dropped(tmp_path: Path) -> None:
    applied(tmp_path, "01-rename.cocci", RENAME)
    Applier(tmp_path / "memo").forget_unused()
    assert not list((tmp_path / "memo").iterdir())


def test_places_are_runs_of_changed_lines() -> None:
    assert changed_places("a\nb\nc\nd\n", "a\nB\nC\nd\nnew\n") == [2, 5]
    assert changed_places("a\n", "a\n") == []


def test_text_of_any_encoding_survives(tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes(b"/* caf\xe9 */\r\n")
    assert to_bytes(read_text(path)) == path.read_bytes()


def loaded(root: Path, series: str = SERIES) -> dict[str, list[str]]:
    patches = load_patches(root / "hooks", root / "kernel", series)
    return {patch.name: [one.path.name for one in patch.hooks] for patch in patches}


def test_patches_come_in_order_with_their_files(tmp_path: Path) -> None:
    root = clone(tmp_path)
    patches = load_patches(root / "hooks", root / "kernel", SERIES)
    assert [(patch.title, list(patch.files)) for patch in patches] == [
        ("wb: contexts", ["mm/ctx.c"]),
        ("fs: streams", ["fs/stream.c"]),
    ]
    assert loaded(root)["a-contexts"] == ["01-rename.cocci", "02-make.diff"]


def test_variant_of_a_series_replaces_the_common_hook(tmp_path: Path) -> None:
    root = write_files(
        clone(tmp_path), {"hooks/a-contexts/02-make.7.2.diff": MAKE, "hooks/b-streams/01-only.7.2.diff": MAKE}
    )
    assert loaded(root) == {"a-contexts": ["01-rename.cocci", "02-make.diff"], "b-streams": []}
    assert loaded(root, "7.2") == {
        "a-contexts": ["01-rename.cocci", "02-make.7.2.diff"],
        "b-streams": ["01-only.7.2.diff"],
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("kernel/fs/lost/x.c", "", None),
        ("kernel/block/x.c", "", "kernel/block/x.c belongs to no patch"),
        (
            "hooks/b-streams/series.toml",
            'title = "t"\nmessage = "m"\nkernel = ["*"]\n',
            "belongs to a-contexts and b-",
        ),
        (
            "hooks/b-streams/series.toml",
            'title = "t"\nmessage = "m"\nkernel = ["io/*"]\n',
            "matches 'io/\\*'",
        ),
        ("hooks/b-streams/series.toml", 'title = "t"\n', "expected title and message"),
        (
            "hooks/b-streams/series.toml",
            'title = "t"\nmessage = "m"\nkernel = "fs"\n',
            "expected kernel as a list",
        ),
        ("hooks/b-streams/series.toml", "title =\n", "is not TOML"),
        (
            "hooks/b-streams/series.toml",
            'title = "t"\nmessage = "m"\nkernel = ["fs/*"]\nlab = 1\n',
            "expected lab as true or false",
        ),
        (
            "hooks/b-streams/series.toml",
            'title = "t"\nmessage = "m"\nkernel = ["fs/*"]\nlab = true\n',
            "hooks/b-streams is part of the lab and comes after hooks/a-contexts",
        ),
        ("hooks/c-new/01-x.diff", MAKE, "hooks/c-new/series.toml is missing"),
        ("hooks/b-streams/notes.txt", "", "hooks/b-streams/notes.txt is not a hook"),
    ],
)
def test_bad_patches_are_refused(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    root = write_files(clone(tmp_path), {name: text})
    if said is None:
        assert loaded(root)
        return
    with pytest.raises(LabError, match=said):
        loaded(root)


def test_editors_files_are_passed_over(tmp_path: Path) -> None:
    root = write_files(clone(tmp_path), {"kernel/.x.swp": "", "kernel/y.c~": "", "hooks/a-contexts/.z": ""})
    assert set(loaded(root)) == {"a-contexts", "b-streams"}
