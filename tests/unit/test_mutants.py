# SPDX-License-Identifier: GPL-2.0
"""Kernels broken on purpose: what a mutant's file says, and what the run of its test means."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.proof import mutants
from lab.proof.mutants import Mutant, Outcome
from lab.result import provenance
from lab.util.errors import LabError

TEST = "tests/guest/test_sync.py::test_syncfs_keeps_its_promise[xfs]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mutants, "MUTANTS", tmp_path)
    return tmp_path


def mutant(says: str = "") -> Mutant:
    return Mutant("lazy", "A sync does nothing.", TEST, says, "uml", "debug", Path("lazy.diff"))


def outcome(name: str = "lazy", verdict: mutants.Verdict = "caught") -> Outcome:
    return Outcome(name, "A sync does nothing.", TEST, verdict, "", 61.2, 5.0)


def test_file_says_what_is_broken_and_what_catches_it(folder: Path) -> None:
    (folder / "lazy.diff").write_text(
        f"# A sync does nothing.\n# caught by: {TEST}\n# which says: lost\n# machine: smp\n# kernel: kcsan\n"
        "# places: a.c 1\n"
    )
    assert mutants.load("lazy") == Mutant(
        "lazy", "A sync does nothing.", TEST, "lost", "smp", "kcsan", folder / "lazy.diff"
    )


def test_kernel_is_the_debug_kernel_of_user_mode_linux_unless_said(folder: Path) -> None:
    (folder / "lazy.diff").write_text(f"# A sync does nothing.\n# caught by: {TEST}\n# which says: lost\n")
    loaded = mutants.load("lazy")
    assert (loaded.machine, loaded.kernel) == ("uml", "debug")


@pytest.mark.parametrize("said", ["places: a.c 1", f"caught by: {TEST}", "which says: lost"])
def test_file_that_does_not_say_what_catches_it_is_refused(folder: Path, said: str) -> None:
    """A test can fail for any reason, such as a guest that does not boot."""
    (folder / "lazy.diff").write_text(f"# A sync does nothing.\n# {said}\n")
    with pytest.raises(LabError, match="mutant lazy does not say what is broken and what catches it"):
        mutants.load("lazy")


def test_unknown_mutant_is_refused_with_the_known_ones(folder: Path) -> None:
    (folder / "lazy.diff").write_text("")
    with pytest.raises(LabError, match="unknown mutant 'crazy': expected lazy"):
        mutants.run(["crazy"], print, print)


@pytest.mark.parametrize(
    ("status", "words", "verdict"),
    [
        (0, "1 passed", "survived"),
        (1, f"not ok 3 covers\nFAILED {TEST} - assert\n1 failed", "caught"),
        # It failed, and not for what is broken.
        (1, f"FAILED {TEST} - assert\n1 failed", "other"),
        # The guest was not even booted.
        (1, f"not ok 3 covers\nERROR {TEST} - LabError\n1 error", "other"),
        # There is no such test.
        (4, "not ok 3 covers\nERROR: not found", "other"),
    ],
)
def test_only_the_tests_own_failure_catches(status: int, words: str, verdict: str) -> None:
    assert mutants.judge(mutant("not ok .* covers"), status, words) == verdict


def test_what_the_test_said_is_noted() -> None:
    words = "\n".join(
        ["the test", ">    assert lost == []", "E    assert [7] == []", "E    more", "1 failed"]
    )
    assert mutants.words_of("caught", words) == "assert [7] == []"
    assert mutants.words_of("survived", "1 passed") == ""
    assert mutants.words_of("other", words) == words


def test_results_are_kept_beside_those_of_other_mutants(folder: Path, tmp_path: Path) -> None:
    for name in ("crazy", "lazy"):
        (folder / f"{name}.diff").write_text("")
    results = tmp_path / "results"
    mutants.keep([outcome("lazy", "survived")], results)
    mutants.keep([outcome("crazy")], results)
    mutants.keep([outcome("lazy")], results)
    table = (results / provenance.TABLE).read_text()
    assert [line.split(" | ")[0] for line in table.splitlines()[2:]] == ["| crazy", "| lazy"]
    assert "survived" not in table
    assert "`test_sync.py::test_syncfs_keeps_its_promise[xfs]` | caught | 61 | 5 |" in table
