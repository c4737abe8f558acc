# SPDX-License-Identifier: GPL-2.0
"""The KUnit suites of a kernel, run in a guest when something is written to their file in debugfs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.check.booted import Booted
from lab.check.patches import Patch

_FAILED = re.compile(r"^\s*not ok .*$", re.MULTILINE)
_SUITE = re.compile(r"^(?:not )?ok \d+ (\w+)", re.MULTILINE)


def script(chosen: Sequence[str] = ()) -> str:
    """Return the shell script that runs suites, all that the kernel has unless named, and prints results."""
    return f"""
        cd /sys/kernel/debug/kunit || exit 1
        for suite in {" ".join(chosen) or "*"}; do echo 1 > $suite/run; cat $suite/results; done
    """


def failed(report: str) -> list[str]:
    """Return the lines of results that name a test that failed, the innermost first."""
    return [line.strip() for line in _FAILED.findall(report)]


def suites(report: str) -> list[str]:
    """Return the names of the suites that results are of."""
    return _SUITE.findall(report)


class KUnit(Booted):
    """The suites that there are after a patch pass, on User-mode Linux."""

    name = "kunit"

    def after(self, patch: Patch) -> list[str]:
        """Link a kernel and run its suites; return what is wrong."""
        done = self._run(["sh", "-c", script()])
        return done.failures or failed(done.said) or ([] if suites(done.said) else ["there is no suite"])
