# SPDX-License-Identifier: GPL-2.0
"""Our hooks on the real kernels that they are for: what a made-up tree cannot show."""

from __future__ import annotations

import fcntl
import re
from collections import Counter

import pytest

from lab.tree.hooks import load_systems
from lab.tree.source import Source, fetch
from lab.tree.weave import BRANCH, STOCK_TAG, Woven, git, weave
from lab.util.paths import REPO, cache_dir

pytestmark = pytest.mark.guest

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


def test_every_system_becomes_a_commit(either: Woven) -> None:
    systems = load_systems(REPO / "hooks", REPO / "kernel", either.source.series)
    titles = git(either.path, "log", "--reverse", "--format=%s", f"{STOCK_TAG}..{BRANCH}").splitlines()
    assert titles == [system.title for system in systems]


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


def test_older_kernel_gets_the_same_change(woven: Woven, woven_on_7_2: Woven) -> None:
    # 7.2 may lack places that 7.3 has; what it does get must read the same.
    assert added_lines(woven_on_7_2) - added_lines(woven) == Counter()
