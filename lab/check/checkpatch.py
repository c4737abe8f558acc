# SPDX-License-Identifier: GPL-2.0
"""The kernel's checkpatch has nothing to say of a patch, its message included."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.check.patches import CheckTree, Patch
from lab.tree.source import Source
from lab.tree.weave import git
from lab.util.errors import LabError

# MISSING_SIGN_OFF: only a person can sign off, and does when the series is sent.
# FILE_PATH_CHANGES: asks for a MAINTAINERS entry for new files, which whoever takes them in decides on.
IGNORED = "MISSING_SIGN_OFF,FILE_PATH_CHANGES"
_OPTIONS = ("--strict", "--terse", "--show-types", "--no-summary", "--color=never", f"--ignore={IGNORED}")


def complaints(tree: Path, patches: Sequence[Path]) -> list[str]:
    """Return what checkpatch says of patches, a line each.

    Args:
        tree: the kernel tree whose checkpatch it is.
        patches: mails, as ``git format-patch`` writes them.

    Raises:
        LabError: it could not be run.
    """
    command = ["perl", str(tree / "scripts" / "checkpatch.pl"), f"--root={tree}", *_OPTIONS]
    with tempfile.TemporaryDirectory(prefix="pwb-checkpatch-") as empty:
        try:
            # It reads .checkpatch.conf in the folder where it runs: let there be none.
            done = subprocess.run(
                [*command, *map(str, patches)], cwd=empty, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise LabError("perl is missing, checkpatch needs it: install the Debian package perl") from None
    said = (done.stdout + done.stderr).splitlines()
    return said or ([] if done.returncode == 0 else [f"checkpatch ended with status {done.returncode}"])


class Checkpatch:
    """The check of the patches one by one."""

    name = "checkpatch"

    def __init__(self, source: Source, tree: CheckTree) -> None:
        """Take the tree that the patches are for, and the one with the patches in it."""
        self._source = source
        self._tree = tree

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch."""
        return [patch.commit, *_OPTIONS]

    def before(self, patch: Patch) -> None:
        """Need nothing of the tree below."""

    def after(self, patch: Patch) -> list[str]:
        """Return what checkpatch says."""
        with tempfile.TemporaryDirectory(prefix="pwb-patch-") as folder:
            git(self._tree.path, "format-patch", "--quiet", "-1", "-o", folder, patch.commit)
            [mail] = Path(folder).iterdir()
            return [line.removeprefix(f"{mail}:") for line in complaints(self._source.path, [mail])]
