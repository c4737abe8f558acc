# SPDX-License-Identifier: GPL-2.0
"""Where the change weaves: each series of Linux that is packaged, and trees that a user names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from lab.result import provenance
from lab.tree import held
from lab.tree.source import Source, fetch, packaged, user_tree
from lab.tree.weave import BRANCH, LAB_TAG, git
from lab.util import markdown
from lab.util.errors import LabError
from lab.util.paths import REPO

NAME = "weaves"


@dataclass(frozen=True)
class Kernel:
    """A kernel that was woven onto.

    Attributes:
        version: of its source; of one that could not be fetched its series.
        package: Debian package that the source is of; None: a tree of the user's.
        patches: how many the series has there; 0: it does not weave.
        refused: why it does not weave, or could not be fetched; empty: it weaves.
    """

    version: str
    package: str | None
    patches: int
    refused: str = ""


def try_all(
    trees: Sequence[Path], show: Callable[[Kernel], None] = lambda _: None, repo: Path = REPO
) -> list[Kernel]:
    """Weave onto every packaged kernel series, from the oldest one that is meant on, and onto trees.

    Args:
        trees: trees of the user's.
        show: told of each kernel as soon as it is tried.
        repo: clone that holds ``kernel/`` and ``hooks/``.

    Raises:
        LabError: no mirror can be reached, or a tree is not one of Linux.
    """
    own = [user_tree(tree) for tree in trees]
    found = []
    of_packages = (_fetch_and_try(series, repo) for series in packaged())
    for kernel in chain(of_packages, (_try(source, None, repo) for source in own)):
        show(kernel)
        found.append(kernel)
    return found


def _fetch_and_try(series: str, repo: Path) -> Kernel:
    package = f"linux-source-{series}"
    try:
        source = fetch(series)
    except LabError as error:
        return Kernel(series, package, 0, f"not fetched: {_one_line(error)}")
    return _try(source, package, repo)


def _try(source: Source, package: str | None, repo: Path) -> Kernel:
    try:
        with held.woven(source, "counting its patches", repo, waits=True) as woven:
            commits = git(woven.path, "rev-list", f"{LAB_TAG}..{BRANCH}").splitlines()
    except LabError as error:
        return Kernel(source.version, package, 0, _one_line(error))
    return Kernel(source.version, package, len(commits))


def _one_line(error: LabError) -> str:
    return " ".join(str(error).split())


def line(kernel: Kernel) -> str:
    """Say in a line what became of a kernel."""
    return f"Linux {kernel.version}: {kernel.refused or f'weaves, {kernel.patches} patches'}"


def table(kernels: Iterable[Kernel]) -> str:
    """Return the table of kernels."""
    rows = [
        (
            f"Linux {one.version}",
            f"`{one.package}`" if one.package else "a tree of one's own",
            one.refused or "yes",
            str(one.patches or "-"),
        )
        for one in kernels
    ]
    return markdown.table(("kernel", "source", "weaves", "patches"), rows, left=3)


def keep(kernels: Sequence[Kernel], folder: Path) -> None:
    """Write what was found as a result: figures, what they were made with, a table."""
    provenance.write(folder, NAME, map(asdict, kernels), [], table=table(kernels))
