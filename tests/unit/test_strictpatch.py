# SPDX-License-Identifier: GPL-2.0
from __future__ import annotations

import pytest

from lab.tree import strictpatch

TWO_ALIKE = "int a(void)\n{\n\tgo();\n}\n\nint b(void)\n{\n\tgo();\n}\n"


def patched(text: str, hunks: str) -> str:
    return strictpatch.apply(text, strictpatch.parse(f"--- a/f.c\n+++ b/f.c\n{hunks}")["f.c"])


def test_hunk_is_found_wherever_its_lines_moved() -> None:
    moved = "\n" * 50 + "one\ntwo\nthree\n"
    assert patched(moved, "@@ -2,2 +2,2 @@\n-two\n+2\n three\n") == "\n" * 50 + "one\n2\nthree\n"


def test_numbers_may_be_left_out() -> None:
    assert patched("one\ntwo\n", "@@ @@\n one\n+more\n") == "one\nmore\ntwo\n"


def test_no_fuzz() -> None:
    with pytest.raises(strictpatch.PatchError, match=r"hunk 1 \('two'\) fits nowhere"):
        patched("one\ntwo \n", "@@ @@\n one\n-two\n")


def test_hunk_that_fits_twice_is_refused() -> None:
    with pytest.raises(strictpatch.PatchError, match=r"fits at 2 places \(lines 3, 8\)"):
        patched(TWO_ALIKE, "@@ @@\n-\tgo();\n+\tstop();\n")


def test_heading_tells_like_places_apart() -> None:
    after = patched(TWO_ALIKE, "@@ @@ int b(void)\n-\tgo();\n+\tstop();\n")
    assert after.count("stop") == 1
    assert after.index("stop") > after.index("int b")


def test_exact_line_number_tells_like_places_apart() -> None:
    after = patched(TWO_ALIKE, "@@ -8 +8 @@\n-\tgo();\n+\tstop();\n")
    assert after.index("stop") > after.index("int b")


def test_near_line_number_does_not() -> None:
    with pytest.raises(strictpatch.PatchError, match="fits at 2 places"):
        patched(TWO_ALIKE, "@@ -7 +7 @@\n-\tgo();\n+\tstop();\n")


def test_line_numbers_hold_below_an_earlier_hunk_that_grew_the_file() -> None:
    text = "x\nx\nx\nx\n"
    assert patched(text, "@@ -1 +1,2 @@\n x\n+new\n@@ -4 +5 @@\n-x\n+last\n") == "x\nnew\nx\nx\nlast\n"


def test_hunks_apply_downwards_only() -> None:
    with pytest.raises(strictpatch.PatchError, match="hunk 2"):
        patched("one\ntwo\n", "@@ @@\n-two\n+2\n@@ @@\n-one\n+1\n")


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("@@ @@\n-one\n", "before the first file"),
        ("--- a/f.c\n+++ b/g.c\n@@ @@\n-one\n", "expected '\\+\\+\\+ b/f.c'"),
        ("--- a/f.c\n+++ b/f.c\n@@ @@\n+new\n", "context"),
        ("--- a/f.c\n+++ b/f.c\n", "no hunk"),
        ("--- /dev/null\n+++ b/f.c\n@@ @@\n+new\n", "not a line"),
        ("--- a/f.c\n+++ b/f.c\n@@ @@\n-one\n\\ No newline at end of file\n", "not a line"),
    ],
)
def test_malformed_diff_is_refused(diff: str, said: str) -> None:
    with pytest.raises(strictpatch.PatchError, match=said):
        strictpatch.parse(diff)


def test_git_headers_are_passed_over() -> None:
    parsed = strictpatch.parse(
        "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\n"
    )
    assert [(hunk.before, hunk.after) for hunk in parsed["f"]] == [(["a"], ["b"])]
