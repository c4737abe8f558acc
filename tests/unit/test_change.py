# SPDX-License-Identifier: GPL-2.0
"""Which change is in a kernel: what the compiler sees, wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tree import change
from tests import madeup

FRAGMENTS = ("common", "uml", "smp", "contexts", "hints", "bench")
OURS = "kernel/mm/ctx.c"
HOOK = """# Why.
# places: mm/x.c 1
--- a/mm/x.c
+++ b/mm/x.c
@@ @@
 \t/* was there */
+\tours();
+\t/*
+\t * A word about it.
+\t */
 \ttheirs();
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    madeup.clone(tmp_path)
    (tmp_path / "config").mkdir()
    for name in FRAGMENTS:
        (tmp_path / "config" / f"{name}.config").write_text("CONFIG_A=y\n")
    madeup.write_files(
        tmp_path,
        {OURS: 'int ours; /* a word */\nchar *s = "/*";\n', "hooks/a1-x/10-x.diff": HOOK},
    )
    return tmp_path


@pytest.mark.parametrize(
    "files",
    [
        {"kernel/mm/tests/kunit.c": "int test;\n", "config/debug.config": "CONFIG_B=y\n"},
        {"config/common.config": "# Another reason\n\nCONFIG_A=y\n"},
        {"kernel/Documentation/x.rst": "Text.\n", "hooks/a-contexts.txt": "wb: all\n\nAnother problem.\n"},
        {OURS: '// SPDX\nint ours;\n\nchar *s = "/*"; /* another\n * word */\n'},
        {"hooks/a1-x/10-x.diff": HOOK.replace("A word", "Two words").replace("# Why.", "# Why so.")},
        {OURS: 'int ours;\nEXPORT_SYMBOL_GPL(ours);\nchar *s = "/*";\n'},
    ],
)
def test_tests_words_comments_and_exports_are_no_part_of_it(clone: Path, files: dict[str, str]) -> None:
    before = change.identity(clone)
    madeup.write_files(clone, files)
    assert change.identity(clone) == before


def test_it_is_the_same_whichever_patch_brings_it(clone: Path) -> None:
    before = change.identity(clone)
    (clone / "hooks" / "b9-y").mkdir()
    (clone / "hooks" / "a1-x" / "10-x.diff").rename(clone / "hooks" / "b9-y" / "20-y.diff")
    assert change.identity(clone) == before


@pytest.mark.parametrize(
    "files",
    [
        {OURS: 'int other;\nchar *s = "/*";\n'},
        {OURS: 'int ours;\nchar *s = "/* */";\n'},
        {"kernel/mm/new.c": "int more;\n"},
        {"hooks/a1-x/10-x.diff": HOOK.replace("ours();", "*ours = 1;")},
        {
            "hooks/a1-x/10-x.diff": HOOK.replace(" \ttheirs();\n", "").replace(
                "+\tours", " \ttheirs();\n+\tours"
            )
        },
        {"config/common.config": "CONFIG_A=m\n"},
    ],
)
def test_what_the_compiler_sees_is(clone: Path, files: dict[str, str]) -> None:
    before = change.identity(clone)
    madeup.write_files(clone, files)
    assert change.identity(clone) != before
