# SPDX-License-Identifier: GPL-2.0
"""Our hooks on the real kernels that they are for: what a made-up tree cannot show."""

from __future__ import annotations

import fcntl
import re
import runpy
import sys
from collections import Counter
from types import ModuleType, SimpleNamespace

import pytest

from lab.check.patches import listed
from lab.tree.hooks import load_patches
from lab.tree.series import load_systems
from lab.tree.source import Source, fetch
from lab.tree.weave import BRANCH, STOCK_TAG, Woven, git, weave
from lab.util.paths import REPO, cache_dir

pytestmark = pytest.mark.guest

# Of a patch, those that it adds and those that it removes; and of one system's patches.
MOST_LINES, MOST_PATCHES = 300, 15
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
MOVED = re.compile(r"\b(?:bdi|inode_to_bdi\(\w+\))->wb\b")


def weave_in_turn(series: str) -> Woven:
    """Weave, after another test process that is at it, where a user would be told to wait."""
    with (cache_dir() / "test-weave.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return weave(fetch(series))


@pytest.fixture(scope="module")
def woven(kernel_source: Source) -> Woven:
    return weave_in_turn(kernel_source.series)


@pytest.fixture(scope="module")
def woven_on_7_2() -> Woven:
    return weave_in_turn("7.2")


@pytest.fixture(params=["woven", "woven_on_7_2"])
def either(request: pytest.FixtureRequest) -> Woven:
    tree = request.getfixturevalue(request.param)
    assert isinstance(tree, Woven)
    return tree


def added_lines(tree: Woven) -> Counter[str]:
    diff = git(tree.path, "diff", "-U0", STOCK_TAG, BRANCH)
    return Counter(line for line in diff.splitlines() if re.match(r"\+(?!\+\+ )", line))


def test_every_patch_becomes_a_commit(either: Woven) -> None:
    patches = load_patches(REPO / "hooks", REPO / "kernel", either.source.series)
    titles = git(either.path, "log", "--reverse", "--format=%s", f"{STOCK_TAG}..{BRANCH}").splitlines()
    assert titles == [patch.title for patch in patches]


def test_patches_are_small_and_systems_short(either: Woven) -> None:
    """As whoever reads them on a mailing list wants them."""
    sizes = {patch.title: patch.added + patch.removed for patch in listed(either.path)}
    assert {title: size for title, size in sizes.items() if size > MOST_LINES} == {}
    systems = {system.name: len(system.patches) for system in load_systems(either.source)}
    assert {name: count for name, count in systems.items() if count > MOST_PATCHES} == {}
    assert sum(systems.values()) == len(sizes)


def test_nothing_names_a_field_that_moved_into_the_contexts(either: Woven) -> None:
    folders = ("block", "fs", "include/linux", "include/trace", "mm")
    sources = [path for folder in folders for path in (either.path / folder).rglob("*.[ch]")]
    assert sources
    leftovers = [
        f"{path.relative_to(either.path)}: {found}"
        for path in sources
        for found in MOVED.findall(COMMENT.sub("", path.read_text(errors="replace")))
    ]
    assert leftovers == []


def element(**fields: object) -> SimpleNamespace:
    """Make up an object of the kernel, as drgn shows it: by its address, and by the values of its members."""
    made = SimpleNamespace(**fields)
    made.address_of_ = lambda: made
    return made


def number(value: int) -> SimpleNamespace:
    return SimpleNamespace(value_=lambda: value)


def made_up_bdi() -> SimpleNamespace:
    """Make up a bdi with contexts 0 and 2, each with a writeback of the root and one of cgroup 7."""
    bdi = element(dev_name=SimpleNamespace(string_=lambda: b"8:0"))
    cgroup = element(cgroup=element(kn=element(id=number(7))))

    def writeback(ctx: SimpleNamespace, throttle: SimpleNamespace | None, flushed: int) -> SimpleNamespace:
        # Whatever is not the throttle's is rubbish.
        pages = [SimpleNamespace(count=n if throttle is None else 999) for n in (1, 2, 3, 4)]
        made = element(bdi=bdi, ctx=ctx, stat=pages, memcg_css=cgroup, nr_flushed=flushed)
        made.avg_write_bandwidth = 5 if throttle is None else 999
        made.throttle = throttle or made
        return made

    first, third = element(index=number(0)), element(index=number(2))
    first.wb = writeback(first, None, 10)
    third.wb = writeback(third, first.wb, 20)
    of_cgroup = writeback(first, None, 30)
    bdi.wb_list = element(entries=[first.wb, of_cgroup, third.wb, writeback(third, of_cgroup, 40)])
    return bdi


def test_monitor_shows_contexts(
    either: Woven, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bdi = made_up_bdi()
    names = ("WB_RECLAIMABLE", "WB_WRITEBACK", "WB_DIRTIED", "WB_WRITTEN", "NR_WB_STAT_ITEMS")
    program: dict[str, object] = {name: value for value, name in enumerate(names)}
    program |= {"PAGE_SHIFT": 12, "bdi_list": element(entries=[bdi])}
    helpers = ModuleType("drgn.helpers.linux.list")
    helpers.list_for_each_entry = lambda _, head, __: head.entries  # type: ignore[attr-defined]
    modules = {"drgn.helpers.linux.list": helpers}
    for name in ("drgn", "drgn.helpers", "drgn.helpers.linux"):
        modules[name] = ModuleType(name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", ["wb_monitor.py", "--cgroup", "--interval", "0"])
    script = either.path / "tools" / "writeback" / "wb_monitor.py"
    runpy.run_path(str(script), init_globals={"prog": program}, run_name="__main__")
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    # writeback, reclaimable, dirtied, written, bandwidth, flushed; pages of 4 KiB
    counted = ["8", "4", "12", "16", "20"]
    assert rows[1:] == [
        ["8:0_1", *counted, "40"],
        ["8:0_7", *counted, "120"],
        ["8:0_1.2", "0", "0", "0", "0", "0", "80"],
        ["8:0_7.2", "0", "0", "0", "0", "0", "160"],
        ["8:0", "16", "8", "24", "32", "40", "400"],
    ]


def test_older_kernel_gets_the_same_change(woven: Woven, woven_on_7_2: Woven) -> None:
    # 7.2 may lack places that 7.3 has; what it does get must read the same.
    assert added_lines(woven_on_7_2) - added_lines(woven) == Counter()


def test_every_file_for_administrators_is_documented(either: Woven) -> None:
    """As an ABI, or in a guide: attributes in sysfs, and files in debugfs but for those of tests."""
    attribute = re.compile(
        r"^\+(?:DEVICE_ATTR_\w+|XFS_\w*ATTR\w*)\((\w+)|debugfs_create_file\(\"(\w+)\"", re.MULTILINE
    )
    code = git(either.path, "diff", "-U0", STOCK_TAG, BRANCH, "--", "*.c", ":!mm/tests")
    names = {"".join(found) for found in attribute.findall(code)}
    assert names >= {"nwritebacks", "wb_affinity", "wb_workers", "generic_ags", "writeback"}
    pages = git(either.path, "diff", "-U0", STOCK_TAG, BRANCH, "--", "Documentation")
    assert {name for name in names if not re.search(rf"\b{name}\b", pages)} == set()
