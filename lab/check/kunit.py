# SPDX-License-Identifier: GPL-2.0
"""The KUnit suites of a kernel, run in a guest when something is written to their file in debugfs."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from lab.check.compiled import Compiled
from lab.check.folder import Folder
from lab.check.patches import Patch
from lab.machine import guest
from lab.util.errors import LabError

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


class KUnit:
    """The suites that there are after a patch pass, on User-mode Linux."""

    name = "kunit"

    def __init__(self, folder: Folder) -> None:
        """Take the folder of the configuration that is linked and booted."""
        self._folder = folder
        self._compiled = Compiled(folder)

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: the compiler is missing.
        """
        return self._compiled.inputs(patch)

    def before(self, patch: Patch) -> None:
        """Need nothing of the tree below."""

    def after(self, patch: Patch) -> list[str]:
        """Link a kernel and run its suites; return what is wrong."""
        if failures := self._folder.make(("linux",)):
            return failures
        said = io.StringIO()
        try:
            command = ["sh", "-c", script()]
            done = guest.run(self._folder.objects / "linux", command, fs="none", stream=said, timeout_s=600)
        except LabError as error:
            return [" ".join(str(error).split())]
        if done.status != 0:
            return [f"the suites could not be run, status {done.status}"]
        return failed(said.getvalue()) or ([] if suites(said.getvalue()) else ["there is no suite"])
