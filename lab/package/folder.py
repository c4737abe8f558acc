# SPDX-License-Identifier: GPL-2.0
"""The folder that packages lie in: the newest of each, and a manifest that says what they were made of."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from lab.util.errors import LabError
from lab.util.lock import in_turn

MANIFEST = "manifest.json"

_OURS = re.compile(r"(?:(wbctl)|linux-image-.+-pwb-(stock|parallel))_[^_]+_[^_]+\.deb")


class Package(BaseModel):
    """A package that ``pwb deb`` has made.

    Attributes:
        file: its name, ``NAME_VERSION_ARCHITECTURE.deb``.
        sha256: of its content, in hex.
        change: identity of the change in its kernel (:func:`lab.tree.change.identity`); None: it has none.
        commit: that the clone was at when it was made; empty if not known.
    """

    file: str
    sha256: str
    change: str | None
    commit: str


_PACKAGES = TypeAdapter(list[Package])


def kind(file: str) -> str | None:
    """Return ``wbctl``, ``stock`` or ``parallel`` for the name of a package of ours, None for another one."""
    found = _OURS.fullmatch(file)
    return (found[1] or found[2]) if found else None


def put(made: Path, folder: Path, *, change: str | None, commit: str) -> Path:
    """Copy a package into a folder, whole or not at all, in place of an older one of the same name.

    Args:
        made: the package, named as Debian names packages.
        folder: for packages; it has to exist.
        change: see :class:`Package`.
        commit: see :class:`Package`.

    Returns:
        The package in the folder.
    """
    target, new = folder / made.name, folder / f".{made.name}.new"
    with in_turn(folder / ".lock"):
        try:
            shutil.copyfile(made, new)
            package = Package(file=made.name, sha256=_sha256(new), change=change, commit=commit)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)
        for older in folder.glob(f"{made.name.partition('_')[0]}_*.deb"):
            if older != target:
                older.unlink()
        others = [one for one in _noted(folder) if one.file != target.name and (folder / one.file).exists()]
        _write(folder, sorted([*others, package], key=lambda one: one.file))
    return target


def ours(packages: Sequence[Path]) -> list[Package]:
    """Return what those packages were made of that are of a :func:`kind` of ours.

    Raises:
        LabError: the manifest beside one of them does not have it, or with another content.
    """
    found = []
    for path in packages:
        if not kind(path.name):
            continue
        noted = {one.file: one for one in _noted(path.parent)}.get(path.name)
        if noted is None or noted.sha256 != _sha256(path):
            raise LabError(
                f"what {path} was made of is not known: expected it, with this content, in "
                f"{path.parent / MANIFEST}; make the packages again with: ./pwb deb"
            )
        found.append(noted)
    return found


def _noted(folder: Path) -> list[Package]:
    """Return what a folder's manifest says; nothing where there is none that can be read."""
    try:
        return _PACKAGES.validate_json((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValidationError):
        return []


def _write(folder: Path, packages: list[Package]) -> None:
    new = folder / f".{MANIFEST}.new"
    new.write_bytes(_PACKAGES.dump_json(packages, indent=1) + b"\n")
    new.replace(folder / MANIFEST)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
