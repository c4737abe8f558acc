# SPDX-License-Identifier: GPL-2.0
"""The series, patch by patch: all checks on each, and which patch fails."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from lab.check import compiled, folder, messages, patches
from lab.check.checkpatch import Checkpatch
from lab.check.coccinelle import Coccinelle
from lab.check.compiled import Compiled
from lab.check.configurations import CONFIGURATIONS
from lab.check.docs import Docs
from lab.check.folder import Folder
from lab.check.kunit import KUnit
from lab.check.load import Load
from lab.check.patches import CheckTree, Patch, chosen
from lab.check.strict import Strict
from lab.tree import config, kbuild, sparse
from lab.tree.source import Source
from lab.util import host
from lab.util.errors import LabError, unknown_name
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir
from lab.util.progress import Progress

# The names of all checks, in the order in which they are made: what takes a moment comes first.
NAMES = (
    Checkpatch.name,
    *(configuration.name for configuration in CONFIGURATIONS),
    Strict.name,
    Coccinelle.name,
    Docs.name,
    KUnit.name,
    Load.name,
)
#: What boots each patch.
BOOTED = (KUnit.name, Load.name)
#: What is checked unless something else is asked for: all that needs no link.
USUAL = tuple(name for name in NAMES if name not in BOOTED)
# What several checks use.
_OF_ALL = (compiled, config, folder, kbuild, messages, patches, sparse)
# Made with the last patch only, of all of them.
_OF_THE_WHOLE = (Docs.name,)

#: By the name of a check, what is wrong, a line each; none: the patch passes; None: it was not made.
Failures = dict[str, list[str] | None]

_DISK_BYTES = 8 << 30


class Check(Protocol):
    """A check of patches.

    Attributes:
        name: what users call it.
    """

    name: str

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome: as long as it stays the same the patch is not checked again."""

    def before(self, patch: Patch) -> None:
        """See what the tree below the patch is like, which the tree is put to."""

    def after(self, patch: Patch) -> list[str]:
        """Return what is wrong with the patch, which the tree is put to; nothing: it passes."""


@dataclass(frozen=True)
class Outcome:
    """What a check said of a patch.

    Attributes:
        check: its name.
        failures: what is wrong, a line each; none: it passes.
        seconds: how long it took on the host when it was made.
    """

    check: str
    failures: list[str]
    seconds: float


@dataclass(frozen=True)
class Checked:
    """A patch and what its checks said.

    Attributes:
        patch: the patch.
        said: by the name of each check that is made of it, in their order; None: it was not made yet.
    """

    patch: Patch
    said: dict[str, Outcome | None]

    @property
    def outcomes(self) -> list[Outcome]:
        """Return the outcomes that there are."""
        return [outcome for outcome in self.said.values() if outcome]

    @property
    def failures(self) -> Failures:
        """Return what is wrong by the name of each check that is made of it; None: it was not made yet."""
        return {name: outcome.failures if outcome else None for name, outcome in self.said.items()}

    @property
    def failed(self) -> list[Outcome]:
        """Return the outcomes of the checks that it fails."""
        return [outcome for outcome in self.outcomes if outcome.failures]


def check(
    source: Source,
    names: Sequence[str] = USUAL,
    wanted: str | None = None,
    *,
    fresh: bool = False,
    show: Callable[[Checked], None] = lambda _: None,
    repo: Path = REPO,
) -> list[Checked]:
    """Check the series patch by patch.

    Each outcome is kept in the cache as soon as it is known. One that passed is made again only when what
    decides it has changed; one that failed may have failed by what is not in the series, so it always is.

    Args:
        source: the tree that the series is for.
        names: of the checks, see :data:`NAMES`.
        wanted: which patches, see :func:`lab.check.patches.chosen`; None: all.
        fresh: check again what was checked before.
        show: told of each patch when all its checks are done.
        repo: clone that holds ``kernel/`` and ``hooks/``.

    Returns:
        The patches, in order.

    Raises:
        LabError: an unknown check or patch, a program is missing, the series does not weave, the tree below
            it does not compile, or another run checks the same source.
    """
    _known_names(names)
    host.check(host.Need(disk_bytes=_DISK_BYTES))
    home = _home(source)
    with (
        exclusive(home / "lock", f"checking the series for {source.version}"),
        Progress("series") as progress,
    ):
        progress.step("weave")
        tree = CheckTree(source, home, repo)
        tree.make()
        checks = [one for one in _checks(source, tree, home, progress) if one.name in names]
        results = _results(home, tree, wanted, checks)
        found = []
        for patch, kept in results.items():
            said = {name: result.read() for name, result in kept.items()}
            passed = {name for name, outcome in said.items() if outcome and not outcome.failures}
            left = [one for one in checks if one.name in kept and (fresh or one.name not in passed)]
            for outcome in _check(patch, left, tree, progress):
                kept[outcome.check].write(outcome)
                said[outcome.check] = outcome
            found.append(Checked(patch, said))
            show(found[-1])
    return found


def known(
    source: Source, names: Sequence[str] = NAMES, wanted: str | None = None, *, repo: Path = REPO
) -> list[Checked]:
    """Return what earlier runs, and one that is under way, have found of the series as it is now.

    Args:
        source: the tree that the series is for.
        names: of the checks, see :data:`NAMES`.
        wanted: which patches, see :func:`lab.check.patches.chosen`; None: all.
        repo: clone that holds ``kernel/`` and ``hooks/``.

    Returns:
        The patches, in order.

    Raises:
        LabError: an unknown check or patch, or the series does not weave.
    """
    _known_names(names)
    home = _home(source)
    tree = CheckTree(source, home, repo)
    checks = [one for one in _checks(source, tree, home, Progress("series")) if one.name in names]
    results = _results(home, tree, wanted, checks)
    return [
        Checked(patch, {name: _known(result) for name, result in kept.items()})
        for patch, kept in results.items()
    ]


def _known(result: _Result) -> Outcome | None:
    try:
        return result.read()
    except LabError:
        # A program is missing here, so that the check was not made with it.
        return None


def _known_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in NAMES:
            raise unknown_name("check", name, NAMES)


def _home(source: Source) -> Path:
    return cache_dir() / "check" / source.identity


def _checks(source: Source, tree: CheckTree, home: Path, progress: Progress) -> list[Check]:
    folders = {one.name: Folder(one, tree, home, progress) for one in CONFIGURATIONS}
    compiled = [Compiled(folder) for folder in folders.values()]
    strict = Strict(folders["x86-64"], tree)
    coccinelle = Coccinelle(source, tree, home / "coccinelle")
    docs = Docs(source, tree, home / Docs.name, progress)
    booted: list[Check] = [KUnit(folders["um"], tree), Load(folders["um"])]
    return [Checkpatch(source, tree), *compiled, strict, coccinelle, docs, *booted]


def _check(patch: Patch, checks: list[Check], tree: CheckTree, progress: Progress) -> list[Outcome]:
    """Make checks of a patch: all of them look at the tree below it before any looks at the patch."""
    took = dict.fromkeys((one.name for one in checks), 0.0)
    outcomes = []
    for number, what in ((patch.number - 1, "below"), (patch.number, "with")):
        if checks:
            tree.show(number)
        for one in checks:
            progress.step(f"{what} patch {patch.number}: {one.name}")
            began = time.monotonic()
            if what == "below":
                one.before(patch)
            else:
                failures = one.after(patch)
            took[one.name] += time.monotonic() - began
            if what == "with":
                outcomes.append(Outcome(one.name, failures, round(took[one.name], 1)))
    return outcomes


def _results(
    home: Path, tree: CheckTree, wanted: str | None, checks: Sequence[Check]
) -> dict[Patch, dict[str, _Result]]:
    """Return the results of the checks of each patch, whether they are there or not."""
    return {
        patch: {
            one.name: _Result(home, one, patch)
            for one in checks
            if one.name not in _OF_THE_WHOLE or patch == tree.patches[-1]
        }
        for patch in chosen(tree.patches, wanted)
    }


@functools.cache
def _code_of(check: type[Check]) -> str:
    """Return a digest of what makes a check: an outcome of other code may be another one."""
    modules = {sys.modules[one.__module__] for one in check.__mro__ if one.__module__.startswith("lab.")}
    files = sorted(str(module.__file__) for module in {*modules, *_OF_ALL})
    return hashlib.sha256(b"\0".join(Path(file).read_bytes() for file in files)).hexdigest()


class _Result:
    """The file in which the outcome of one check of one patch is kept."""

    def __init__(self, home: Path, check: Check, patch: Patch) -> None:
        self._home = home
        self._check = check
        self._patch = patch

    @functools.cached_property
    def _path(self) -> Path:
        inputs = "\0".join([self._check.name, _code_of(type(self._check)), *self._check.inputs(self._patch)])
        key = hashlib.sha256(inputs.encode()).hexdigest()[:32]
        return self._home / "outcomes" / f"{key}.json"

    def read(self) -> Outcome | None:
        try:
            return Outcome(**json.loads(self._path.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, outcome: Outcome) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
