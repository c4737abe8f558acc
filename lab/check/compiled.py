# SPDX-License-Identifier: GPL-2.0
"""Does a patch compile in a configuration, and without a new warning?"""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

from lab.check import messages
from lab.check.configurations import FOLDERS
from lab.check.folder import Folder
from lab.check.messages import Messages
from lab.check.patches import Patch
from lab.tree import config
from lab.util.errors import LabError

_DIVISION = re.compile(r" __u?(div|mod|divmod)di[34]$")


class Compiled:
    """The folders that use writeback compile in a configuration, and say nothing new.

    Attributes:
        name: of the configuration.
    """

    def __init__(self, folder: Folder) -> None:
        """Take the configuration's folder."""
        self.name = folder.configuration.name
        self._folder = folder
        self._before: Messages = {}
        self._last: int | None = None

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: the compiler is missing.
        """
        return [patch.key, *self._of_every_patch]

    @functools.cached_property
    def _of_every_patch(self) -> list[str]:
        configuration = self._folder.configuration
        settings = config.text(configuration.requests())
        return [repr(configuration), settings, configuration.compiler(), *FOLDERS]

    def before(self, patch: Patch) -> None:
        """Compile the tree as it is below a patch.

        Raises:
            LabError: it does not compile, and it was not told of the patch below.
        """
        failures = self._folder.compile()
        if failures and self._last != patch.number - 1:
            mend = f"check those below it first, with --patches ..{patch.number - 1}"
            if patch.number == 1:
                mend = "mend that first"
            raise LabError(
                f"below {patch} the tree does not compile for {self.name} already, {mend}: {failures[0]}"
            )
        self._before = self._folder.said()

    def compile(self, patch: Patch) -> list[str]:
        """Compile the tree with the patch; return why it does not."""
        self._last = patch.number
        return self._folder.compile()

    def after(self, patch: Patch) -> list[str]:
        """Compile the tree with the patch; return what is wrong."""
        failures = self.compile(patch) or messages.new(self._before, self._folder.said())
        return failures or (self._divisions(patch) if self._folder.configuration.arch == "i386" else [])

    def _divisions(self, patch: Patch) -> list[str]:
        """Name what divides 64 bits by a function that the kernel has not, as only a link would tell."""
        objects = [Path(name).with_suffix(".o") for name in patch.files if name.endswith(".c")]
        made = [str(path) for path in objects if (self._folder.objects / path).is_file()]
        if not made:
            return []
        command = ["nm", "--undefined-only", "--print-file-name", *made]
        done = subprocess.run(command, cwd=self._folder.objects, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"nm failed, which tells 64-bit divisions: {done.stderr.strip()}")
        return [line.strip() for line in done.stdout.splitlines() if _DIVISION.search(line)]
