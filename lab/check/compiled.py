# SPDX-License-Identifier: GPL-2.0
"""Does a patch compile in a configuration, and without a new warning, also of the compiler's further ones?"""

from __future__ import annotations

from pathlib import Path

from lab.check import messages
from lab.check.configurations import FOLDERS
from lab.check.folder import Folder
from lab.check.messages import Messages
from lab.check.patches import CheckTree, Patch
from lab.tree import config, sparse
from lab.util.errors import LabError
from lab.util.process import output

# All warnings of the kernel that are not of a few compilers only, kernel-doc's among them; and sparse.
_STRICT = ("W=1", "C=1", sparse.CHECK)


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

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: the compiler is missing.
        """
        configuration = self._folder.configuration
        settings = config.text(configuration.requests())
        return [patch.key, repr(configuration), settings, configuration.compiler(), *FOLDERS]

    def before(self, patch: Patch) -> None:
        """Compile the tree as it is below a patch.

        Raises:
            LabError: it is the first patch, and the tree does not compile without it.
        """
        failures = self._folder.compile()
        if failures and patch.number == 1:
            raise LabError(
                f"before the first patch the tree does not compile for {self.name}, mend that first: "
                f"{failures[0]}"
            )
        self._before = self._folder.said()

    def after(self, patch: Patch) -> list[str]:
        """Compile the tree with the patch; return what is wrong."""
        return self._folder.compile() or messages.new(self._before, self._folder.said())


class Strict:
    """What a patch adds and changes draws no new warning of ``W=1``, nor of sparse."""

    name = "strict"

    def __init__(self, folder: Folder, tree: CheckTree) -> None:
        """Take the folder of the configuration with everything in it, and the tree."""
        self._folder = folder
        self._tree = tree
        self._compiled = Compiled(folder)
        self._before: Messages = {}

    def inputs(self, patch: Patch) -> list[str]:
        """Return what decides the outcome for a patch.

        Raises:
            LabError: the compiler or sparse is missing.
        """
        version = output(["sparse", "--version"])
        if not version:
            raise LabError(
                "sparse is missing, patches are checked with it: install the Debian package sparse, "
                f"or leave {self.name} out with --checks"
            )
        return [*self._compiled.inputs(patch), *_STRICT, version]

    def before(self, patch: Patch) -> None:
        """Check the files of a patch as they are below it."""
        self._compiled.before(patch)
        _, self._before = self._folder.make_with(_STRICT, self._objects(patch))

    def after(self, patch: Patch) -> list[str]:
        """Check the files of a patch; return what is wrong."""
        failures = self._folder.compile()
        if not failures:
            failures, said = self._folder.make_with(_STRICT, self._objects(patch))
        return failures or messages.new(self._before, said)

    def _objects(self, patch: Patch) -> list[str]:
        """Return those of a patch's objects that this configuration has, and the tree as it stands."""
        sources = [Path(name) for name in patch.files if name.endswith(".c")]
        objects = [source.with_suffix(".o") for source in sources if (self._tree.path / source).is_file()]
        return [str(path) for path in objects if (self._folder.objects / path).is_file()]
