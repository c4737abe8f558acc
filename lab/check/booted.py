# SPDX-License-Identifier: GPL-2.0
"""Checks that link a kernel of a patch, boot it as User-mode Linux, and run something in it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from lab.check.compiled import Compiled
from lab.check.folder import Folder
from lab.check.patches import Patch
from lab.machine import guest
from lab.util.errors import GuestError

_TIMEOUT_S = 600


@dataclass(frozen=True)
class Done:
    """What came of a command in the guest.

    Attributes:
        failures: why it did not end well, a line each; none: it did.
        said: its output.
    """

    failures: list[str]
    said: str = ""


class Booted:
    """A check that boots each patch, and needs nothing of the tree below."""

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

    def _run(self, command: Sequence[str]) -> Done:
        """Link a kernel of the tree as it stands, boot it with a bare device, and run a command in it.

        Args:
            command: program and arguments; its status should be 0, and its last line tell why it is not.
        """
        if failures := self._folder.make(("linux",)):
            return Done(failures)
        said = io.StringIO()
        try:
            kernel = self._folder.objects / "linux"
            done = guest.run(kernel, [*command], fs="none", stream=said, timeout_s=_TIMEOUT_S)
        except GuestError as error:
            return Done([" ".join(str(error).split())], said.getvalue())
        if done.status != 0:
            lines = said.getvalue().strip().splitlines() or ["it says nothing"]
            return Done([f"status {done.status}: {lines[-1]}"], said.getvalue())
        return Done([], said.getvalue())
