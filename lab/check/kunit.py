# SPDX-License-Identifier: GPL-2.0
"""The KUnit suites of a kernel, run in a guest when something is written to their file in debugfs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.check.booted import Booted
from lab.check.folder import Folder
from lab.check.patches import CheckTree, Patch

_FAILED = re.compile(r"^\s*not ok .*$", re.MULTILINE)
_SUITE = re.compile(r"^(?:not )?ok \d+ (\w+)", re.MULTILINE)
# Of a suite: how many tests it has, and each that ran and passed. Also one that did not run is "ok".
_PLANNED = re.compile(r"^ {4}1\.\.(\d+)$", re.MULTILINE)
_PASSED = re.compile(r"^ {4}ok \d+ (?!.*# SKIP)", re.MULTILINE)
_NAMED = re.compile(r'struct kunit_suite \w+ = \{[^}]*?\.name = "(\w+)"')
_TESTS = "_kunit.c"


def script(chosen: Sequence[str] = ()) -> str:
    """Return the shell script that runs suites, all that the kernel has unless named, and prints results."""
    return f"""
        cd /sys/kernel/debug/kunit || exit 1
        for suite in {" ".join(chosen) or "*"}; do echo 1 > $suite/run || exit 1; cat $suite/results; done
    """


def failed(report: str) -> list[str]:
    """Return the lines of results that name a test that failed, the innermost first.

    A suite of which a test did not run is named, too.
    """
    return [line.strip() for line in _FAILED.findall(report)] or _left_out(report)


def _left_out(report: str) -> list[str]:
    """Return a line for each suite of which not all tests ran."""
    said = []
    begin = 0
    for end in _SUITE.finditer(report):
        of_suite = report[begin : end.end()]
        begin = end.end()
        planned, passed = sum(map(int, _PLANNED.findall(of_suite))), len(_PASSED.findall(of_suite))
        if not 0 < planned <= passed:
            said.append(f"of the suite {end[1]} {passed} of {planned} tests ran")
    return said


def suites(report: str) -> list[str]:
    """Return the names of the suites that results are of."""
    return _SUITE.findall(report)


class KUnit(Booted):
    """The suites that there are after a patch pass, on User-mode Linux."""

    name = "kunit"

    def __init__(self, folder: Folder, tree: CheckTree) -> None:
        """Take the folder of the configuration that is linked and booted, and the tree."""
        super().__init__(folder)
        self._tree = tree

    def after(self, patch: Patch) -> list[str]:
        """Link a kernel and run its suites; return what is wrong."""
        done = self._run(["sh", "-c", script()])
        missing = sorted(self._asked(patch) - {*suites(done.said)})
        return done.failures or failed(done.said) or [f"the suite {name} is not there" for name in missing]

    def _asked(self, patch: Patch) -> set[str]:
        """Return the names of the suites that patches up to this one bring."""
        names = {name for one in self._tree.patches[: patch.number] for name in one.files}
        files = (self._tree.path / name for name in sorted(names) if name.endswith(_TESTS))
        return {name for file in files if file.exists() for name in _NAMED.findall(file.read_text())}
