# SPDX-License-Identifier: GPL-2.0
"""Kernels broken on purpose: each breaks one promise, and the test that it names must catch it.

A mutant is a diff on the woven tree, in ``tests/mutants/``. It is woven as a last system into a clone of this
one, whose cache is its own, so that neither the kernels nor the objects of this clone are touched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from lab.result import provenance
from lab.util import markdown
from lab.util.errors import LabError, unknown_name
from lab.util.lock import exclusive
from lab.util.paths import REPO, cache_dir
from lab.util.process import stream
from lab.util.progress import duration

MUTANTS = REPO / "tests" / "mutants"
NAME = "mutants"

# The last of all systems, whatever the others are called.
_SYSTEM = "z-mutant"
_SERIES = 'title = "a mutant"\nmessage = "Broken on purpose, to see that a test catches it."\n'
# What a clone shares with this one: none of it depends on the kernel.
_SHARED = ("ccache", "mypy", "program", "pycache", "qemu", "ruff", "source", "venv", "vtime")
_HEADER = re.compile(r"^# (caught by|which says|machine|kernel): *(.*)$")

Verdict = Literal["caught", "survived", "other"]


@dataclass(frozen=True)
class Mutant:
    """A kernel broken on purpose.

    Attributes:
        name: of its file, without ``.diff``.
        what: what is broken, a sentence.
        test: pytest's name of the test that catches it.
        says: what that test has to say, a regular expression.
        machine: machine of the kernel that the test boots.
        kernel: flavour of that kernel.
        path: the diff.
    """

    name: str
    what: str
    test: str
    says: str
    machine: str
    kernel: str
    path: Path


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        name: of the mutant.
        what: what is broken in it.
        test: pytest's name of the test.
        verdict: ``caught``, ``survived``, or ``other`` for a kernel that was not built, or a test that failed
            for another reason.
        words: of one that is caught, what the test said first; for ``other``, the end of what was said.
        build_s: seconds of the host that weaving and building took.
        test_s: seconds of the host that the test took.
    """

    name: str
    what: str
    test: str
    verdict: Verdict
    words: str
    build_s: float
    test_s: float

    @property
    def line(self) -> str:
        """Say it in one line."""
        how = {"caught": "caught", "survived": "SURVIVED", "other": "NOT DECIDED"}[self.verdict]
        took = f"{duration(self.build_s)} to build, {duration(self.test_s)} to test"
        return f"{self.name}: {how} by {self.test}, {took}"


def names() -> list[str]:
    """List the mutants."""
    return sorted(path.stem for path in MUTANTS.glob("*.diff"))


def load(name: str) -> Mutant:
    """Read a mutant.

    Raises:
        LabError: there is none of that name, or its header does not say what catches it.
    """
    if name not in names():
        raise unknown_name("mutant", name, names())
    path = MUTANTS / f"{name}.diff"
    lines = path.read_text(encoding="utf-8").splitlines()
    said = {match[1]: match[2] for line in lines if (match := _HEADER.match(line))}
    if not lines[0].startswith("# ") or not said.get("caught by") or not said.get("which says"):
        raise LabError(
            f"mutant {name} does not say what is broken and what catches it: expected a sentence in its "
            "first line, and 'caught by: TEST' and 'which says: REGULAR EXPRESSION' below"
        )
    return Mutant(
        name=name,
        what=lines[0].removeprefix("# "),
        test=said["caught by"],
        says=said["which says"],
        machine=said.get("machine", "uml"),
        kernel=said.get("kernel", "debug"),
        path=path,
    )


def run(chosen: Sequence[str], say: Callable[[str], None], take: Callable[[Outcome], None]) -> None:
    """Try mutants, one after the other; before the first, all of their tests have to pass.

    Args:
        chosen: names; none: all of them.
        say: told a line whenever there is one.
        take: given what became of each mutant, as soon as it is known.

    Raises:
        LabError: an unknown mutant, or a test that fails without one.
    """
    mutants = [load(name) for name in chosen or names()]
    home = cache_dir() / "mutants"
    with exclusive(home / "lock", "trying mutants"), _clone(home) as clone:
        began = time.monotonic()
        for machine, kernel in sorted({(mutant.machine, mutant.kernel) for mutant in mutants}):
            of_it = [mutant for mutant in mutants if (mutant.machine, mutant.kernel) == (machine, kernel)]
            tests = sorted({mutant.test for mutant in of_it})
            status, words = clone.build(machine, kernel)
            if status == 0:
                status, words = clone.test(machine, tests)
            if status != 0:
                raise LabError(f"without a mutant not all of the tests pass, mend that first:\n{words}")
        say(f"without a mutant all tests pass, {duration(time.monotonic() - began)}")
        for number, mutant in enumerate(mutants, 1):
            outcome = _try(clone, mutant)
            say(f"[{number}/{len(mutants)}] {outcome.line}")
            if outcome.words:
                say(outcome.words)
            take(outcome)


def keep(found: Sequence[Outcome], folder: Path) -> None:
    """Put what became of mutants into a folder, instead of what is there of the same ones.

    Args:
        found: the outcomes.
        folder: of the result; what it has of another change is left behind.
    """
    before = TypeAdapter(list[Outcome]).validate_python(provenance.earlier_rows(folder, []))
    every = {one.name: one for one in [*before, *found] if one.name in names()}
    ordered = [every[name] for name in sorted(every)]
    rows = [asdict(one) for one in ordered]
    has_earlier = len(ordered) > len(found)
    provenance.write(folder, NAME, rows, [], table=table(ordered), has_earlier=has_earlier)


def table(found: Sequence[Outcome]) -> str:
    """Return the table of mutants."""
    rows = [
        (
            one.name,
            one.what,
            f"`{one.test.removeprefix('tests/guest/')}`",
            one.verdict,
            f"{one.build_s:.0f}",
            f"{one.test_s:.0f}",
        )
        for one in found
    ]
    columns = ("mutant", "what is broken", "test", "outcome", "build, s", "test, s")
    return markdown.table(columns, rows, left=4)


@dataclass(frozen=True)
class _Clone:
    """A copy of this clone, with a cache of its own."""

    folder: Path
    cache: Path

    def build(self, machine: str, kernel: str) -> tuple[int, str]:
        """Build one of its kernels; return the status and what was said."""
        return self._run(["build", "--machine", machine, kernel])

    def test(self, machine: str, tests: Sequence[str]) -> tuple[int, str]:
        """Run tests; return pytest's status and what it said."""
        quiet = ["-q", "--no-header", "--machine", machine]
        return self._run(["python", "-m", "pytest", *quiet, *tests])

    def mutate(self, mutant: Mutant) -> None:
        """Have a mutant woven, in place of the one before."""
        hook = self.folder / "hooks" / _SYSTEM
        hook.mkdir(exist_ok=True)
        (hook / "series.toml").write_text(_SERIES, encoding="utf-8")
        for old in hook.glob("*.diff"):
            old.unlink()
        shutil.copy(mutant.path, hook / f"01-{mutant.name}.diff")

    def _run(self, arguments: Sequence[str]) -> tuple[int, str]:
        env = {**os.environ, "PWB_CACHE": str(self.cache)}
        lines: list[str] = []
        status = stream([str(self.folder / "pwb"), *arguments], self.folder, env, lines.append)
        return status, "".join(lines)


@contextmanager
def _clone(home: Path) -> Iterator[_Clone]:
    """Copy this clone's files, and have the kernels that are built of the copy go with it."""
    cache = home / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for name in _SHARED:
        (cache_dir() / name).mkdir(exist_ok=True)
        if not (cache / name).is_symlink():
            (cache / name).symlink_to(cache_dir() / name)
    folder = home / "clone"
    shutil.rmtree(folder, ignore_errors=True)
    for path in _own_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPO / path, folder / path)
    try:
        yield _Clone(folder, cache)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(cache / "kernel", ignore_errors=True)


def _own_files() -> list[Path]:
    """List the files of this clone, those that are not committed yet among them."""
    done = subprocess.run(
        ["git", "-C", str(REPO), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LabError(f"mutants need a clone of git, which {REPO} is not: {done.stderr.strip()}")
    return [Path(name) for name in done.stdout.split("\0") if name and (REPO / name).is_file()]


def _try(clone: _Clone, mutant: Mutant) -> Outcome:
    clone.mutate(mutant)
    began = time.monotonic()
    status, words = clone.build(mutant.machine, mutant.kernel)
    built = time.monotonic()
    verdict: Verdict = "other"
    if status == 0:
        status, words = clone.test(mutant.machine, [mutant.test])
        verdict = judge(mutant, status, words)
    return Outcome(
        name=mutant.name,
        what=mutant.what,
        test=mutant.test,
        verdict=verdict,
        words=words_of(verdict, words),
        build_s=round(built - began, 1),
        test_s=round(time.monotonic() - built, 1),
    )


def words_of(verdict: Verdict, words: str) -> str:
    """Return of what pytest said what tells why: its first error, or its end where that decides nothing."""
    if verdict == "other":
        return "\n".join(words.splitlines()[-12:])
    said = re.search(r"^E  +(.*)$", words, re.MULTILINE)
    return said[1].strip() if said else ""


def judge(mutant: Mutant, status: int, words: str) -> Verdict:
    """Say what the run of a test means.

    Args:
        mutant: what it was run on.
        status: pytest's.
        words: what pytest said.
    """
    if status == 0:
        return "survived"
    # 1: tests failed.  An error in a fixture counts as one, so look for the test's own failure.
    has_failed = status == 1 and re.search(r"^FAILED ", words, re.MULTILINE) is not None
    return "caught" if has_failed and re.search(mutant.says, words) else "other"
