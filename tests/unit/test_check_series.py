# SPDX-License-Identifier: GPL-2.0
"""The series patch by patch: which patch is named; ``make`` is a small fake that says what sources ask."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from lab.check import docs, result, series, table
from lab.check.configurations import Configuration
from lab.check.patches import Patch, chosen
from lab.check.series import Checked, Outcome
from lab.docs import measurements
from lab.tree.source import Source
from lab.util import host
from lab.util.errors import LabError
from tests.madeup import DEFS, FS_WRITEBACK, write_files

# Compiles what has changed since, itself or in what it includes; goals are folders or objects. It says each
# line "//SAY warning: ..." of a source and what it includes, with W=1 also "//STRICT warning: ..."; "//SAY
# error: ..." is one. Of pages it says each line ".. SAY warning: ...".
FAKE_MAKE = """#!/usr/bin/python3
import os, pathlib, re, shutil, sys
obj = pathlib.Path("obj")
obj.mkdir(exist_ok=True)
goals = [word for word in sys.argv[1:] if "=" not in word and not word.startswith("-")]
with open(os.environ["HOME"] + "/made", "a") as log:
    print(*goals, file=log)
if goals == ["allnoconfig"]:
    shutil.copy(os.environ["KCONFIG_ALLCONFIG"], obj / ".config")
    sys.exit()
if goals == ["htmldocs"]:
    for page in sorted(pathlib.Path("Documentation").rglob("*.rst")):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            if line.startswith(".. SAY "):
                print(f"{page.resolve()}:{number}: {line[7:]}")
        made = obj / "Documentation/output" / page.relative_to("Documentation").with_suffix(".html")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
    sys.exit()
status = 0
files = [path for goal in goals for path in
         ([pathlib.Path(goal).with_suffix(".c")] if goal.endswith(".o") else pathlib.Path(goal).rglob("*.c"))]
for file in files:
    text = file.read_text()
    flags = "W=1" if "W=1" in sys.argv else ""
    included = {}
    names = re.findall('#include "(.*)"', text)
    while names:
        name = "include/" + names.pop()
        included[name] = open(name).read()
        names += re.findall('#include "(.*)"', included[name])
    made = obj / file.with_suffix(".o")
    content = flags + text + "".join(included.values())
    if made.exists() and made.read_text() == content:
        continue
    print(f"  CC      {made.relative_to(obj)}")
    ok = True
    for name, lines in {file: text, **included}.items():
        for number, line in enumerate(lines.splitlines(), 1):
            word, _, said = line.partition(" ")
            if word == "//SAY" or (word == "//STRICT" and flags):
                print(f"../{name}:{number}:1: {said}")
                ok = ok and "error:" not in said
    if "C=1" in sys.argv and "UNLOOKED" not in text:
        print(f"  CHECK   ../{file}")
    made.parent.mkdir(parents=True, exist_ok=True)
    uses = "".join(f"  ../{name} \\\n" for name in [file, *included])
    made.with_name(f".{made.name}.cmd").write_text(f"deps_{file} := \\\n{uses}")
    if ok:
        made.write_text(content)
    else:
        made.unlink(missing_ok=True)
        print(f"make[1]: *** [../scripts/Makefile.build:1: {made}] Error 1")
        status = 2
sys.exit(status)
"""
# Of an object it says that it divides, if it does.
FAKE_NM = """\
#!/usr/bin/python3
import sys
for name in sys.argv[3:]:
    if "DIVIDES" in open(name).read():
        print(f"{name}:         U __udivdi3")
"""
CHECKPATCH = """\
my $status = 0;
for my $file (grep { !/^--/ } @ARGV) {
    open(my $mail, '<', $file);
    while (<$mail>) { if (/^\\+.*UGLY/) { print "$file:$.: WARNING:UGLY: it is\\n"; $status = 1; } }
}
exit $status;
"""
# Says each line "//DOC ..." of a header.
KERNEL_DOC = """\
#!/usr/bin/python3
import sys
for name in sys.argv[3:]:
    for number, line in enumerate(open(name), 1):
        if line.startswith("//DOC "):
            print(f"Warning: {name}:{number} {line[6:].strip()}", file=sys.stderr)
"""
# In front of the real one: a rule of the kernel's comes to no end with a file that says so.
SPATCH = """\
#!/bin/sh
for word; do
    case $word in
    *.c) if grep -q ENDLESS "$word"; then
            echo "Fatal error: exception Coccinelle_modules.Common.Timeout" >&2
            exit 2
         fi ;;
    esac
done
exec /usr/bin/spatch "$@"
"""
RULE = """\
virtual report
@r@
position p;
@@
bad@p();
@script:python depends on report@
p << r.p;
@@
coccilib.report.print_report(p[0], "WARNING: it is bad")
"""
MEND = """\
# Makes it compile.
# places: mm/ctx.c 1
--- a/mm/ctx.c
+++ b/mm/ctx.c
@@ @@
 int ctx;
-//SAY error: half of it is missing
+int half;
"""
CHANGE = """\
# Changes a file of the first patch.
# places: mm/ctx.c 1
--- a/mm/ctx.c
+++ b/mm/ctx.c
@@ @@
 int ctx;
+int more;
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a fake make in front of the path."""
    tools = write_files(tmp_path / "bin", {"make": FAKE_MAKE, "nm": FAKE_NM})
    for name in ("make", "nm"):
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(host, "check", lambda _: None)
    return tmp_path


@pytest.fixture
def source(source: Source) -> Source:
    for folder in ("block", "drivers/block"):
        (source.path / folder).mkdir(parents=True)
    scripts = {
        "scripts/checkpatch.pl": CHECKPATCH,
        "scripts/coccinelle/misc/bad.cocci": RULE,
        "scripts/kernel-doc": KERNEL_DOC,
    }
    pages = {f"Documentation/{name}/index.rst": "" for name in docs.FOLDERS}
    write_files(source.path, scripts | pages)
    (source.path / "scripts/kernel-doc").chmod(0o755)
    return source


def checked(source: Source, repo: Path, *names: str, wanted: str | None = None) -> dict[int, list[str]]:
    """Check and return what is wrong, by the number of the patch."""
    found = series.check(source, names or ["um"], wanted, repo=repo)
    return {
        one.patch.number: [line for outcome in one.outcomes for line in outcome.failures] for one in found
    }


def made(home: Path) -> int:
    """Return how often the fake was called."""
    log = home / "made"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_series_that_is_in_order_passes(source: Source, repo: Path) -> None:
    assert checked(source, repo, *series.USUAL) == {1: [], 2: []}


def test_patch_that_does_not_compile_alone_is_named(source: Source, repo: Path) -> None:
    # The whole change compiles.
    write_files(
        repo,
        {
            "kernel/mm/ctx.c": "int ctx;\n//SAY error: half of it is missing\n",
            "hooks/b-streams/01-mend.diff": MEND,
        },
    )
    found = series.check(source, ["um", "x86-64"], repo=repo)
    assert [bool(one.failed) for one in found] == [True, False]
    assert table.verdict(found) == (
        "patch 1 (wb: contexts) is the first that fails, the check um: "
        "mm/ctx.c:2:1: error: half of it is missing"
    )


def test_new_warning_is_found_and_an_old_one_is_not(source: Source, repo: Path) -> None:
    # The hook moves the old one to another line.
    (source.path / "fs/fs-writeback.c").write_text(FS_WRITEBACK + "//SAY warning: an old one\n")
    (source.path / "mm/backing-dev.c").write_text("//SAY warning: older\n")
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    write_files(
        repo,
        {
            "kernel/mm/ctx.c": "int ctx;\n//SAY warning: a new one\n",
            "hooks/a-contexts/01-move.diff": (
                "# Moves a line.\n# places: fs/fs-writeback.c 1\n--- a/fs/fs-writeback.c\n"
                '+++ b/fs/fs-writeback.c\n@@ @@\n #include "defs.h"\n+#include "defs.h"\n \n'
            ),
            "hooks/b-streams/01-change.diff": CHANGE,
        },
    )
    assert checked(source, repo) == {1: ["mm/ctx.c: warning: a new one"], 2: []}


def test_a_new_file_says_the_same_in_a_second_run(source: Source, repo: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "int stream;\n//SAY warning: a new one\n"})
    for _ in range(2):
        assert checked(source, repo)[2] == ["fs/stream.c: warning: a new one"]


def test_division_that_32_bits_have_not_is_told(source: Source, repo: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "int stream;\n//DIVIDES\n"})
    assert checked(source, repo, "i386")[2] == ["fs/stream.o:         U __udivdi3"]
    assert checked(source, repo, "um")[2] == []


def test_file_that_sparse_does_not_look_at_is_told(source: Source, repo: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "int stream;\n//UNLOOKED\n"})
    assert checked(source, repo, "strict")[2] == ["sparse did not look at fs/stream.c"]


def test_further_warnings_are_of_the_files_of_a_patch(source: Source, repo: Path) -> None:
    (source.path / "fs/other.c").write_text("//STRICT warning: not ours\n")
    (source.path / "mm/backing-dev.c").write_text("//STRICT warning: an old one\n" + "void f(void);\n")
    write_files(repo, {"kernel/mm/ctx.c": "//STRICT warning: a new one\n"})
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    assert checked(source, repo, "strict") == {1: ["mm/ctx.c: warning: a new one"], 2: []}


def header_only(repo: Path, added: str) -> None:
    """Let the second patch add a line to a header, and nothing else."""
    (repo / "kernel/fs/stream.c").unlink()
    diff = (
        "# Changes a header.\n# places: include/defs.h 1\n--- a/include/defs.h\n+++ b/include/defs.h\n"
        f"@@ @@\n struct device {{\n+{added}\n \tint id;\n"
    )
    about = 'title = "fs: header"\nmessage = "Why."\n'
    write_files(repo, {"hooks/b-streams/01-header.diff": diff, "hooks/b-streams/series.toml": about})


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ("//STRICT warning: a new one", ["include/defs.h: warning: a new one"]),
        ("//DOC id is not described", ["include/defs.h: id is not described"]),
        ("//", []),
    ],
)
def test_patch_of_a_header_alone_is_looked_at(
    source: Source, repo: Path, added: str, found: list[str]
) -> None:
    old = "//STRICT warning: an old one\n//DOC an old one\n"
    (source.path / "include/defs.h").write_text(old + DEFS)
    header_only(repo, added)
    assert checked(source, repo, "strict") == {1: [], 2: found}


def test_of_what_includes_a_header_a_few_that_tell_most_are_compiled(
    source: Source, repo: Path, home: Path
) -> None:
    users = {f"fs/u{number}.c": '#include "defs.h"\n' for number in range(9)}
    events = {"fs/x.c": '#define CREATE_TRACE_POINTS\n#include "defs.h"\n'}
    indirect = {"include/top.h": '#include "defs.h"\n', "block/a.c": '#include "top.h"\n'}
    write_files(source.path, users | events | indirect)
    header_only(repo, "//")
    assert checked(source, repo, "strict", wanted="2") == {2: []}
    goals = [line.split() for line in (home / "made").read_text().splitlines() if ".o" in line]
    assert goals == [["fs/x.o", "fs/fs-writeback.o", "fs/u0.o", "fs/u1.o"]] * 2


def test_old_warning_of_what_includes_a_header_only_with_the_patch_is_not_new(
    source: Source, repo: Path
) -> None:
    """Below it four others that include it themselves are compiled, with it one through another header."""
    users = {f"fs/u{number}.c": '#include "low.h"\n' for number in range(4)}
    headers = {"include/low.h": "int low;\n", "include/top.h": '#include "low.h"\n'}
    indirect = {"block/a.c": '#include "top.h"\n//STRICT warning: not ours\n'}
    write_files(source.path, users | headers | indirect)
    header_only(repo, "//STRICT warning: a new one")
    low = "# Includes it.\n# places: include/low.h 1\n--- a/include/low.h\n+++ b/include/low.h\n@@ @@\n"
    write_files(repo, {"hooks/b-streams/02-low.diff": f'{low} int low;\n+#include "defs.h"\n'})
    assert checked(source, repo, "strict") == {1: [], 2: ["include/defs.h: warning: a new one"]}


def test_page_of_the_series_is_looked_at_with_the_last_patch(source: Source, repo: Path) -> None:
    page = "Documentation/admin-guide/index.rst"
    (source.path / page).write_text(".. SAY WARNING: an old one\n\nWords.\n")
    hook = (
        f"# Moves a line.\n# places: {page} 1\n--- a/{page}\n+++ b/{page}\n"
        "@@ @@\n+More.\n .. SAY WARNING: an old one\n"
    )
    # Pages of other folders are not built, and not found for that.
    (source.path / "Documentation/mm.rst").touch()
    new = ".. SAY WARNING: unknown document: '/mm'\n.. SAY WARNING: unknown document: '/no'\n"
    write_files(
        repo,
        {
            "hooks/b-streams/series.toml": 'title = "fs: streams"\nmessage = "Why."\nkernel = ["[fD]*"]\n',
            "kernel/Documentation/filesystems/streams.rst": new,
            "hooks/a-contexts/03-page.diff": hook,
        },
    )
    found = series.check(source, ["docs"], repo=repo)
    assert [one.failures for one in found] == [
        {},
        {"docs": ["Documentation/filesystems/streams.rst:2: WARNING: unknown document: '/no'"]},
    ]


def test_second_warning_of_the_same_words_is_new(source: Source, repo: Path) -> None:
    page = "Documentation/admin-guide/index.rst"
    (source.path / page).write_text(".. SAY WARNING: an old one\n")
    hook = (
        f"# Says it once more.\n# places: {page} 1\n--- a/{page}\n+++ b/{page}\n"
        "@@ @@\n .. SAY WARNING: an old one\n+.. SAY WARNING: an old one\n"
    )
    write_files(repo, {"hooks/a-contexts/03-page.diff": hook})
    said = series.check(source, ["docs"], repo=repo)[-1].failures["docs"]
    assert said == [f"{page}:{line}: WARNING: an old one" for line in (1, 2)]


def test_pages_that_do_not_build_are_told(source: Source, repo: Path, home: Path) -> None:
    (source.path / "Documentation/filesystems/index.rst").unlink()
    with pytest.raises(LabError, match=r"does not build without the series, .* there are not all pages"):
        series.check(source, ["docs"], repo=repo)


def test_what_is_known_is_shown_without_a_check(source: Source, repo: Path, home: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "//SAY warning: a new one\n"})
    assert [one.failures for one in series.known(source, ["um", "arm64"], repo=repo)] == [
        {"um": None, "arm64": None}
    ] * 2
    assert made(home) == 0
    checked(source, repo, "um", wanted="2")
    before = made(home)
    assert [one.failures for one in series.known(source, ["um", "arm64"], repo=repo)] == [
        {"um": None, "arm64": None},
        {"um": ["fs/stream.c: warning: a new one"], "arm64": None},
    ]
    assert made(home) == before


def test_what_needs_a_missing_program_is_not_known(
    source: Source, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(self: Configuration) -> str:
        raise LabError(f"{self.name} is missing")

    monkeypatch.setattr(Configuration, "compiler", missing)
    assert [one.failures for one in series.known(source, ["um"], "2", repo=repo)] == [{"um": None}]


def test_what_is_known_is_a_result_that_can_be_kept(
    source: Source, repo: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(repo, {"kernel/fs/stream.c": "//SAY warning: a new one\n"})
    checked(source, repo, "um")
    rows = result.rows("7.3.4", series.known(source, ["um", "arm64", "docs"], repo=repo))
    monkeypatch.setattr(sys, "argv", ["pwb", "check-series", "--show", "--series", "7.3"])
    result.keep(rows, home / "result")
    assert (home / "result/table.md").read_text().splitlines() == [
        "|  | on Linux 7.3.4 | lines | um | arm64 | docs |",
        "|---|---|---|---|---|---|",
        "| 1 | wb: contexts | +6 -4 | ok | not run |  |",
        "| 2 | fs: streams | +1 -0 | FAILS | not run | not run |",
        "|  | all | +7 -4 | 1 of 2 ok | 0 of 2 ok | 0 of 1 ok |",
    ]
    monkeypatch.setattr(measurements, "MEASUREMENTS", home / "measurements")
    kept = measurements.keep(home / "result", "series")
    assert (kept / "table.md").read_text() == (home / "result/table.md").read_text()
    assert measurements.meta("series").command == "./pwb check-series --series 7.3"


def test_second_run_does_nothing(source: Source, repo: Path, home: Path) -> None:
    assert checked(source, repo, *series.USUAL) == {1: [], 2: []}
    before = made(home)
    assert before > 0
    assert checked(source, repo, *series.USUAL) == {1: [], 2: []}
    assert made(home) == before


def test_only_what_changed_is_checked_again(source: Source, repo: Path) -> None:
    assert checked(source, repo) == {1: [], 2: []}
    outcomes = source.path.parent / "cache/check" / source.identity / "outcomes"
    kept = set(outcomes.iterdir())
    # Below it is what the first patch compiled to, where the second one of before was compiled last.
    write_files(repo, {"kernel/fs/stream.c": "int stream;\n//SAY warning: a new one\n"})
    assert checked(source, repo) == {1: [], 2: ["fs/stream.c: warning: a new one"]}
    assert len(set(outcomes.iterdir()) - kept) == 1
    write_files(repo, {"kernel/fs/stream.c": "int stream;\n"})
    assert checked(source, repo) == {1: [], 2: []}


def test_what_failed_is_checked_again(source: Source, repo: Path) -> None:
    assert checked(source, repo) == {1: [], 2: []}
    outcomes = source.path.parent / "cache/check" / source.identity / "outcomes"
    for path in outcomes.iterdir():
        path.write_text(json.dumps(json.loads(path.read_text()) | {"failures": ["what a checker once said"]}))
    assert checked(source, repo) == {1: [], 2: []}


def test_other_words_of_a_message_compile_nothing(source: Source, repo: Path, home: Path) -> None:
    assert checked(source, repo) == {1: [], 2: []}
    before = made(home)
    write_files(
        repo, {"hooks/a-contexts/series.toml": 'title = "wb: x"\nmessage = "Why?"\nkernel = ["mm/*"]\n'}
    )
    assert checked(source, repo) == {1: [], 2: []}
    assert made(home) == before


def test_objects_of_a_run_that_was_killed_are_made_again(source: Source, repo: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "//SAY warning: a new one\n"})
    expected = {1: [], 2: ["fs/stream.c: warning: a new one"]}
    assert checked(source, repo) == expected
    cache = source.path.parent / "cache/check" / source.identity
    (cache / "um/said.json").unlink()
    for outcome in (cache / "outcomes").iterdir():
        outcome.unlink()
    assert checked(source, repo, wanted="2") == {2: expected[2]}


def test_file_that_the_series_no_longer_touches_is_stock_again(source: Source, repo: Path) -> None:
    assert checked(source, repo) == {1: [], 2: []}
    tree = source.path.parent / "cache/check" / source.identity / "linux"
    assert "first_wb" in (tree / "fs/fs-writeback.c").read_text()
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    assert checked(source, repo) == {1: [], 2: []}
    assert (tree / "fs/fs-writeback.c").read_text() == FS_WRITEBACK
    assert (tree / "mm/ctx.c").exists()


def test_tree_that_does_not_compile_below_the_series_is_told(source: Source, repo: Path) -> None:
    (source.path / "fs/other.c").write_text("//SAY error: stock is broken\n")
    with pytest.raises(
        LabError, match=r"below patch 1 \(wb: contexts\) the tree does not compile for um.*is broken"
    ):
        series.check(source, ["um"], repo=repo)


@pytest.mark.parametrize("name", ["um", "strict"])
def test_fault_of_a_patch_that_is_not_checked_is_not_blamed_on_the_next(
    source: Source, repo: Path, name: str
) -> None:
    write_files(repo, {"kernel/mm/ctx.c": "int ctx;\n//SAY error: half of it is missing\n"})
    with pytest.raises(
        LabError, match=r"below patch 2 .* does not compile .*--patches \.\.1: mm/ctx.c:2:1: err"
    ):
        series.check(source, [name], "2", repo=repo)
    assert series.known(source, [name], repo=repo)[1].said == {name: None}
    assert checked(source, repo, name) == {
        number: ["mm/ctx.c:2:1: error: half of it is missing"] for number in (1, 2)
    }


def test_settings_of_the_series_are_asked_for_where_it_has_them(
    source: Source, repo: Path, home: Path
) -> None:
    lost = FAKE_MAKE.replace(
        'shutil.copy(os.environ["KCONFIG_ALLCONFIG"], obj / ".config")',
        'lines = open(os.environ["KCONFIG_ALLCONFIG"]).read().splitlines(True)\n'
        '    lines = [line for line in lines if "CONFIG_BDI_WRITEBACK_AUTO" not in line]\n'
        '    (obj / ".config").write_text("".join(lines))',
    )
    assert lost != FAKE_MAKE
    (home / "bin/make").write_text(lost)
    write_files(repo, {"kernel/fs/Kconfig.streams": "config BDI_WRITEBACK_AUTO\n\tbool\n"})
    found = checked(source, repo)
    assert found[1] == []
    assert "CONFIG_BDI_WRITEBACK_AUTO=y (contexts.config" in found[2][0]


def test_checkpatch_judges_each_patch(source: Source, repo: Path) -> None:
    write_files(repo, {"kernel/fs/stream.c": "int UGLY;\n"})
    found = checked(source, repo, "checkpatch")
    assert found[1] == []
    assert [line.partition(" ")[2] for line in found[2]] == ["WARNING:UGLY: it is"]


def test_what_the_kernels_own_semantic_patches_find_is_new_or_old(source: Source, repo: Path) -> None:
    bad = "void f(void)\n{\n\tbad();\n}\n"
    (source.path / "mm/backing-dev.c").write_text(bad)
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    write_files(
        repo,
        {
            "kernel/fs/stream.c": bad,
            "hooks/a-contexts/01-more.diff": (
                "# Adds a line.\n# places: mm/backing-dev.c 1\n--- a/mm/backing-dev.c\n"
                "+++ b/mm/backing-dev.c\n@@ @@\n void f(void)\n {\n+\tgood();\n"
            ),
        },
    )
    assert checked(source, repo, "coccinelle") == {1: [], 2: ["fs/stream.c: WARNING: it is bad"]}


def test_rule_that_comes_to_no_end_with_a_file_is_wrong(source: Source, repo: Path, home: Path) -> None:
    """It was so below the patch, too; with the other files the rule does come to an end."""
    write_files(home / "bin", {"spatch": SPATCH})
    (home / "bin/spatch").chmod(0o755)
    (source.path / "mm/backing-dev.c").write_text("// ENDLESS\nint x;\n")
    (repo / "hooks/a-contexts/01-rename.cocci").unlink()
    diff = (
        "# Adds.\n# places: mm/backing-dev.c 1\n--- a/mm/backing-dev.c\n+++ b/mm/backing-dev.c\n"
        "@@ @@\n int x;\n+int y;\n"
    )
    write_files(
        repo,
        {
            "hooks/a-contexts/01-more.diff": diff,
            "kernel/mm/ctx.c": "void f(void)\n{\n\tbad();\n}\n",
        },
    )
    found = checked(source, repo, "coccinelle")
    assert sorted(found[1]) == [
        "mm/backing-dev.c: bad.cocci comes to no end in 120 s, so it is not known what it finds",
        "mm/ctx.c: WARNING: it is bad",
    ]
    assert found[2] == []


def test_missing_compiler_is_told_with_its_package() -> None:
    made_up = Configuration("toaster", "toaster", ("common",), "no-such-", "gcc-no-such")
    with pytest.raises(
        LabError, match=r"no-such-gcc is missing, toaster is compiled with it: .*gcc-no-such,"
    ):
        made_up.compiler()


def test_unknown_check_is_refused(source: Source, repo: Path) -> None:
    with pytest.raises(LabError, match="unknown check 'arm': expected arm64"):
        series.check(source, ["arm"], repo=repo)


def patch(number: int) -> Patch:
    return Patch(number, f"title {number}", "c", "b", "k", (), 1, 0)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [(None, [1, 2, 3]), ("2", [2]), ("2..3", [2, 3]), ("2..", [2, 3]), ("..2", [1, 2]), ("3..9", [3])],
)
def test_patches_are_chosen_by_number(wanted: str | None, numbers: list[int]) -> None:
    assert [one.number for one in chosen([patch(1), patch(2), patch(3)], wanted)] == numbers


@pytest.mark.parametrize(
    ("wanted", "said"), [("two", "names no patches"), ("..", "names no patches"), ("4", "the series has 1")]
)
def test_other_patches_are_refused(wanted: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        chosen([patch(1)], wanted)


def test_line_says_what_was_not_checked() -> None:
    assert table.line(Checked(patch(1), {"um": None})) == "patch 1 (title 1): not checked yet"
    assert table.line(Checked(patch(1), {})) == "patch 1 (title 1): nothing to check"
    half = Checked(patch(1), {"um": Outcome("um", [], 60.0), "arm64": None})
    assert table.line(half) == "patch 1 (title 1): ok, 1 min 0 s, not run: arm64"


def test_line_and_verdict_name_what_failed() -> None:
    fine = Checked(patch(1), {"um": Outcome("um", [], 60.0), "arm64": Outcome("arm64", [], 1.0)})
    wrong = Checked(
        patch(2), {"um": Outcome("um", [], 60.0), "arm64": Outcome("arm64", ["a.c: warning: x"], 2.0)}
    )
    assert table.line(fine) == "patch 1 (title 1): ok, 1 min 1 s"
    assert table.line(wrong) == "patch 2 (title 2): FAILS arm64, 1 min 2 s"
    assert table.verdict([fine]) is None
    assert table.verdict([fine, wrong]) == (
        "patch 2 (title 2) is the first that fails, the check arm64: a.c: warning: x"
    )


def test_a_narrow_terminal_has_a_line_for_each_patch() -> None:
    found = [Checked(patch(1), {name: Outcome(name, [], 1.0) for name in series.USUAL})]
    for width, lines in ((80, ["patch 1 (title 1): ok, 10 s"]), (160, None)):
        console = Console(width=width, record=True, file=io.StringIO())
        table.show(console, found)
        shown = console.export_text().splitlines()
        assert shown == lines if lines else any("checkpatch" in line for line in shown)
