# SPDX-License-Identifier: GPL-2.0
"""The warnings that make has to be asked for, W=1, sparse and kernel-doc: a patch draws no new one."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lab.check import messages
from lab.check.compiled import Compiled
from lab.check.configurations import FOLDERS
from lab.check.folder import Folder
from lab.check.messages import Messages
from lab.check.patches import CheckTree, Patch
from lab.tree import sparse
from lab.util.errors import LabError
from lab.util.process import output

# All warnings of the kernel that are not of a few compilers only, kernel-doc's of .c files among them; and
# sparse.
_STRICT = ("W=1", "C=1", sparse.CHECK)
# Of headers: make asks kernel-doc of .c files only.
_KERNEL_DOC = ("scripts/kernel-doc", "-none", "-Wall")
# Thousands of objects include some headers; this many are compiled for each.
_USERS = 4
_MAKES_EVENTS = "#define CREATE_TRACE_POINTS"


class Strict:
    """The check of a patch's C files, of its headers, and of a few objects that include those."""

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
        return [*self._compiled.inputs(patch), *_STRICT, version, *_KERNEL_DOC, str(_USERS)]

    def before(self, patch: Patch) -> None:
        """Check the files of a patch as they are below it."""
        self._compiled.before(patch)
        _, said = self._folder.make_with(_STRICT, [*self._own(patch), *self._users(patch)])
        self._before = said | self._documented(patch)

    def after(self, patch: Patch) -> list[str]:
        """Check the files of a patch; return what is wrong."""
        if failures := self._compiled.compile(patch):
            return failures
        own = self._own(patch)
        failures, said = self._folder.make_with(_STRICT, [*own, *self._users(patch)])
        return (
            failures
            or _unchecked(own, said)
            or messages.new(self._before, _of(patch, own, said) | self._documented(patch))
        )

    def _own(self, patch: Patch) -> list[str]:
        """Return those of a patch's objects that this configuration has, and the tree as it stands."""
        sources = [Path(name) for name in patch.files if name.endswith(".c")]
        objects = [source.with_suffix(".o") for source in sources if (self._tree.path / source).is_file()]
        return [str(path) for path in objects if (self._folder.objects / path).is_file()]

    def _users(self, patch: Patch) -> list[str]:
        """Return a few objects for each header of a patch that were compiled with it."""
        users: dict[str, list[Path]] = {name: [] for name in _headers(patch)}
        folders = [self._folder.objects / name for name in FOLDERS if users]
        for command in sorted(path for folder in folders for path in folder.rglob(".*.o.cmd")):
            source = command.relative_to(self._folder.objects).with_name(command.name[1:-6] + ".c")
            text = command.read_text(errors="replace")
            if (self._tree.path / source).is_file():
                for header in (header for header in users if f" ../{header} " in text):
                    users[header].append(source)
        chosen = [
            source
            for header, sources in users.items()
            for source in sorted(sources, key=lambda source: self._rank(source, header))[:_USERS]
        ]
        return list(dict.fromkeys(str(source.with_suffix(".o")) for source in chosen))

    def _rank(self, source: Path, header: str) -> tuple[bool, bool]:
        """Order the users of a header by how much they tell: first the one that its trace events are made in.

        Then come those that include it themselves.
        """
        text = (self._tree.path / source).read_text(errors="replace")
        names = f"<{header.removeprefix('include/').removeprefix('uapi/')}>", f'"{Path(header).name}"'
        is_direct = any(f"#include {name}" in text for name in names)
        return not (is_direct and _MAKES_EVENTS in text), not is_direct

    def _documented(self, patch: Patch) -> Messages:
        """Return what kernel-doc says of the headers of a patch that the tree has as it stands."""
        headers = [name for name in _headers(patch) if (self._tree.path / name).is_file()]
        program, *options = _KERNEL_DOC
        said: Counter[str] = Counter()
        if headers:
            done = subprocess.run(
                [str(self._tree.path / program), *options, *headers],
                cwd=self._tree.path,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            said = sum(messages.parse(done.stderr.splitlines()).values(), Counter())
            if done.returncode != 0 and not said:
                last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                raise LabError(f"{program} of the kernel failed: {last}")
        return {program: said}


def _headers(patch: Patch) -> list[str]:
    return [name for name in patch.files if name.endswith(".h")]


def _unchecked(own: Sequence[str], said: Messages) -> list[str]:
    """Name what sparse did not look at: make goes on without a sparse that it does not take."""
    looked_at = {target.removeprefix("../") for target in said}
    return [f"sparse did not look at {name[:-2]}.c" for name in own if f"{name[:-2]}.c" not in looked_at]


def _of(patch: Patch, own: Sequence[str], said: Messages) -> Messages:
    """Leave out what objects that only include a header of a patch say of files that are not the patch's.

    Which objects those are may differ below the patch, so that an old warning of theirs would look new.
    """
    stems = {Path(name).with_suffix("") for name in own}
    return {
        target: Counter(
            {
                text: count
                for text, count in texts.items()
                if Path(target.removeprefix("../")).with_suffix("") in stems
                or text.partition(": ")[0] in patch.files
            }
        )
        for target, texts in said.items()
    }
