# SPDX-License-Identifier: GPL-2.0
"""Proofs that are tests of the guest: run with all their long cases, and what they tried in a table.

A test notes what it has tried by pytest's ``record_property``: a count, under the name of what is counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lab.result import provenance
from lab.util import markdown
from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO
from lab.util.process import stream

NAME = "tested"

#: What pytest is told for each proof: files, and options that they need.
PROOFS = {
    "sync": ("tests/guest/test_sync.py",),
    "resize": ("tests/guest/test_resize.py",),
    "mapped": ("tests/guest/test_data_check.py",),
    "memory": ("tests/guest/test_allocations.py",),
    "faults": ("tests/guest/test_faults.py", "tests/guest/test_write_errors.py"),
    "races": ("tests/guest/test_data_races.py", "--machine=smp"),
    "hostile": ("tests/guest/test_hostile.py", "tests/unit/test_wbctl_hostile.py"),
}
# As in the Makefile: guests leave their CPUs idle half of the time.
_SIDE_BY_SIDE = ("-n", "auto", "--maxprocesses", "4", "--dist", "worksteal")
# pytest's own status where tests were run, whether they passed or not.
_RAN = (0, 1)
_BROKEN = {"failure", "error"}


@dataclass(frozen=True)
class Outcome:
    """What a test came to, all its cases together.

    Attributes:
        proof: name in :data:`PROOFS`.
        test: its file and function.
        cases: how many were run.
        tried: counts by what is counted, the sums over all cases.
        seconds: of the host, all cases one after the other.
        failed: cases that failed.
        skipped: cases that were not run.
    """

    proof: str
    test: str
    cases: int
    tried: dict[str, int]
    seconds: float
    failed: int
    skipped: int


def run(proofs: Sequence[str], say: Callable[[str], None], take: Callable[[list[Outcome]], None]) -> None:
    """Run proofs, one after the other.

    Args:
        proofs: names; none: all of them.
        say: told each line of pytest's, newline included.
        take: given what became of a proof, as soon as it is known.

    Raises:
        LabError: an unknown proof, or tests that could not be run.
    """
    for name in proofs:
        if name not in PROOFS:
            raise unknown_name("proof", name, list(PROOFS))
    for name in proofs or PROOFS:
        take(_run(name, say))


def _run(proof: str, say: Callable[[str], None]) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "junit.xml")
        command = [
            sys.executable,
            "-m",
            "pytest",
            *PROOFS[proof],
            "-v",
            *_SIDE_BY_SIDE,
            f"--junitxml={report}",
        ]
        status = stream(command, REPO, os.environ, say)
        if status not in _RAN:
            raise LabError(f"the tests of {proof} could not be run, see above: pytest's status is {status}")
        return outcomes(proof, report)


def outcomes(proof: str, report: Path) -> list[Outcome]:
    """Read what pytest has reported, in JUnit's XML.

    Args:
        proof: the name of the proof that was run.
        report: the file.
    """
    cases: dict[str, list[ElementTree.Element]] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        file, function = case.attrib["classname"].split(".")[-1], case.attrib["name"].split("[")[0]
        cases.setdefault(f"{file}.py::{function}", []).append(case)
    return [_outcome(proof, test, of) for test, of in sorted(cases.items())]


def _outcome(proof: str, test: str, cases: Sequence[ElementTree.Element]) -> Outcome:
    tried: dict[str, int] = {}
    for case in cases:
        for noted in case.iter("property"):
            what = noted.attrib["name"]
            tried[what] = tried.get(what, 0) + int(noted.attrib["value"])
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Outcome(
        proof=proof,
        test=test,
        cases=len(cases) - skipped,
        tried=tried,
        seconds=round(sum(float(case.attrib["time"]) for case in cases), 1),
        failed=sum(not _BROKEN.isdisjoint(child.tag for child in case) for case in cases),
        skipped=skipped,
    )


def keep(found: Sequence[Outcome], folder: Path) -> None:
    """Put what became of a proof into a folder, instead of what is there of the same tests.

    A test that has failed stays there when it passes later, for it need not fail each time.

    Args:
        found: the outcomes.
        folder: of the result; what it has of another change is left behind.
    """
    provenance.add(folder, NAME, found, key=_place, kernels=[], table=table)


def _place(one: Outcome) -> tuple[int, str, int]:
    return list(PROOFS).index(one.proof), one.test, one.failed


def table(found: Sequence[Outcome]) -> str:
    """Return the table of what was tried."""
    rows = [
        (
            one.proof,
            f"`{one.test}`",
            ", ".join(f"{count:,} {what}" for what, count in one.tried.items()),
            f"{one.cases}" + (f" of {one.cases + one.skipped}" if one.skipped else ""),
            f"{one.seconds / 60:.1f}",
            f"{one.failed}",
        )
        for one in found
    ]
    return markdown.table(("proof", "test", "tried", "cases", "host, minutes", "failed"), rows, left=3)
