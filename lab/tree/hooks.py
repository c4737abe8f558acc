# SPDX-License-Identifier: GPL-2.0
"""The format of ``hooks/`` and ``kernel/``: patches and the hooks of each; see ``docs/weave.md``."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

from lab.util.errors import LabError

# Options that change what spatch reads or how it lays out code; the second set takes a value.
_OPTIONS = {
    "--all-includes",
    "--allow-inconsistent-paths",
    "--disable-worth-trying-opt",
    "--include-headers-for-types",
    "--linux-spacing",
    "--local-includes",
    "--no-includes",
    "--no-loops",
    "--recursive-includes",
}
_OPTIONS_WITH_VALUE = {"--indent", "--macro-file-builtins", "--max-width"}

_DIRECTIVE = re.compile(r"^(?P<key>files|places|options)(?:\[(?P<series>[0-9.]+)\])?:\s*(?P<value>.*)$")
_PLACE = re.compile(r"^(?P<file>\S+)\s+(?P<count>\d+)$")
_VARIANT = re.compile(r"^(?P<stem>.+?)(?:\.(?P<series>\d+\.\d+))?\.(?P<kind>cocci|diff)$")


@dataclass(frozen=True)
class Hook:
    """One hook file as it holds for one kernel series.

    Attributes:
        path: the file.
        name: ``patch/file`` for messages.
        reads: further files that spatch parses along and that must stay as they are.
        places: how many places must change, by file.
        options: spatch's options.
        body: the semantic patch or the diff, with its header.
    """

    path: Path
    name: str
    reads: tuple[str, ...]
    places: Mapping[str, int]
    options: tuple[str, ...]
    body: str

    @property
    def files(self) -> list[str]:
        """Every file the hook is run over."""
        return [*self.places, *self.reads]


@dataclass(frozen=True)
class Patch:
    """One patch of a system: one commit of the woven tree.

    A system is one step of the change, and sent as one series: the patches with the same first letter.

    Attributes:
        name: its directory under ``hooks/``.
        title: the commit's subject.
        message: the commit's body.
        files: destination of each of its own files in the kernel tree, to the file under ``kernel/``.
        hooks: in the order they apply.
        lab: a means of measuring, in every kernel, stock too; not part of the change that is proposed.
    """

    name: str
    title: str
    message: str
    files: Mapping[str, Path]
    hooks: tuple[Hook, ...]
    lab: bool


def read_text(path: Path) -> str:
    """Read a file so that :func:`to_bytes` gives back its exact bytes, whatever its encoding."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Undo :func:`read_text`."""
    return text.encode("utf-8", "surrogateescape")


def load_patches(hooks: Path, kernel: Path, series: str) -> list[Patch]:
    """Read ``hooks/`` and ``kernel/`` for one kernel series.

    Args:
        hooks: directory with one directory per patch.
        kernel: directory laid out like the kernel tree.
        series: kernel series such as ``7.3``.

    Returns:
        The patches in the order of their names.

    Raises:
        LabError: a malformed hook or ``series.toml``, a file of ours that belongs to no patch or to several,
            or a patch of the lab after one of the change.
    """
    ours = {path.relative_to(kernel).as_posix(): path for path in own_files(kernel)}
    patches = [
        _load_patch(directory, ours, series)
        for directory in sorted(hooks.iterdir() if hooks.is_dir() else [])
        if directory.is_dir() and not directory.name.startswith(".")
    ]
    for path in ours:
        owners = [patch.name for patch in patches if path in patch.files]
        if len(owners) != 1:
            raise LabError(
                f"kernel/{path} belongs to {' and '.join(owners) or 'no patch'}, expected exactly one: "
                f"mend the kernel list in hooks/*/series.toml"
            )
    for before, after in pairwise(patches):
        if after.lab and not before.lab:
            raise LabError(
                f"hooks/{after.name} is part of the lab and comes after hooks/{before.name}, which is not: "
                f"patches of the lab come first, for stock has nothing else; rename it"
            )
    return patches


def own_files(directory: Path) -> list[Path]:
    """List the files under a directory of ours, without hidden ones and editors' backups."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file()
        and not path.name.endswith("~")
        and not any(
            part.startswith(".") or part == "__pycache__" for part in path.relative_to(directory).parts
        )
    )


def _load_patch(directory: Path, ours: Mapping[str, Path], series: str) -> Patch:
    manifest = directory / "series.toml"
    where = f"hooks/{directory.name}/series.toml"
    try:
        data = tomllib.loads(manifest.read_text())
    except FileNotFoundError:
        raise LabError(
            f"{where} is missing: expected title, message and kernel (a list of globs) there"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{where} is not TOML: {error}") from None
    title, message, globs = data.get("title"), data.get("message"), data.get("kernel", [])
    if not (isinstance(title, str) and title.strip() and isinstance(message, str) and message.strip()):
        raise LabError(
            f"{where}: expected title and message as strings, they become the commit's subject and body"
        )
    if not (isinstance(globs, list) and all(isinstance(glob, str) for glob in globs)):
        raise LabError(f"{where}: expected kernel as a list of globs under kernel/")
    lab = data.get("lab", False)
    if not isinstance(lab, bool):
        raise LabError(f"{where}: expected lab as true or false")
    for glob in globs:
        if not any(fnmatchcase(path, glob) for path in ours):
            raise LabError(f"{where}: no file under kernel/ matches {glob!r}: mend or drop the glob")
    return Patch(
        name=directory.name,
        title=title.strip(),
        message=message.strip(),
        files={path: file for path, file in ours.items() if any(fnmatchcase(path, glob) for glob in globs)},
        hooks=tuple(_load_hooks(directory, series)),
        lab=lab,
    )


def _load_hooks(directory: Path, series: str) -> Iterator[Hook]:
    chosen: dict[tuple[str, str], tuple[bool, Path]] = {}
    for path in own_files(directory):
        match = _VARIANT.match(path.name)
        if match is None or path.parent != directory:
            if path.name != "series.toml" and path.suffix != ".h":
                raise LabError(
                    f"hooks/{path.relative_to(directory.parent)} is not a hook: expected NN-name.cocci, "
                    f"NN-name.diff, a variant of one kernel series such as NN-name.7.2.diff, "
                    f"or a header of macros (.h)"
                )
            continue
        own = match["series"] is not None
        if own and match["series"] != series:
            continue
        key = (match["stem"], match["kind"])
        if key not in chosen or own:
            chosen[key] = (own, path)
    for _, path in sorted(chosen.values(), key=lambda entry: entry[1].name):
        hook = parse_hook(path, series)
        if hook.places:
            yield hook


def parse_hook(path: Path, series: str) -> Hook:
    """Read one hook.

    Args:
        path: a ``.cocci`` or ``.diff`` file.
        series: kernel series whose counts to take.

    Returns:
        The hook; without places where its header says ``none`` for this series.

    Raises:
        LabError: the header does not say what the hook changes.
    """
    name = f"{path.parent.name}/{path.name}"
    body = read_text(path)
    files: list[str] = []
    options: list[str] = []
    places: dict[str, int] = {}
    special: dict[str, int] = {}
    skipped = False
    for key, wanted, value in _directives(body, "//" if path.suffix == ".cocci" else "#"):
        if wanted not in (None, series):
            continue
        if key == "files":
            files += value.replace(",", " ").split()
        elif key == "options":
            options += shlex.split(value)
        elif value.strip() == "none":
            skipped = True
        else:
            (places if wanted is None else special).update(_parse_places(name, value))
    places |= special
    if skipped:
        places = {}
    elif not places:
        raise LabError(
            f"hook {name} does not say how many places it changes: expected 'places: FILE COUNT, ...' in it"
        )
    _check_options(name, options)
    return Hook(path, name, tuple(file for file in files if file not in places), places, tuple(options), body)


def _directives(body: str, comment: str) -> Iterator[tuple[str, str | None, str]]:
    for line in body.splitlines():
        if line.strip() and not line.startswith(comment):
            return
        if match := _DIRECTIVE.match(line.removeprefix(comment).strip()):
            yield match["key"], match["series"], match["value"]


def _parse_places(name: str, value: str) -> dict[str, int]:
    places = {}
    for entry in value.rstrip(", ").split(","):
        match = _PLACE.match(entry.strip())
        if match is None:
            raise LabError(f"hook {name}: {entry.strip()!r} is not a place: expected a file and a count")
        places[match["file"]] = int(match["count"])
    return places


def _check_options(name: str, options: list[str]) -> None:
    values = iter(options)
    for option in values:
        if option in _OPTIONS_WITH_VALUE and next(values, None) is not None:
            continue
        if option not in _OPTIONS:
            known = ", ".join(sorted(_OPTIONS | _OPTIONS_WITH_VALUE))
            raise LabError(f"hook {name}: option {option!r} is not among those a hook may set: {known}")
