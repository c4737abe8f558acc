# SPDX-License-Identifier: GPL-2.0
"""Apply a unified diff without fuzz: every line must match, at one place only.

Where a hunk fits at several places, ``patch`` and ``git apply`` take the one nearest to its line number. A
hook must survive any move of lines and must never land at the wrong one of two like places: here a hunk has
to fit at one place only, or to be told apart by its exact line number or by its heading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HUNK = re.compile(r"^@@(?: -(?P<line>\d+)(?:,\d+)? \+\d+(?:,\d+)?)? @@(?: (?P<heading>.*))?$")


class PatchError(Exception):
    """A diff is malformed or a hunk does not fit; ``str()`` says which and why."""


@dataclass
class Hunk:
    """One hunk.

    Attributes:
        line: number of its first line before the change, where stated.
        heading: the text after the second ``@@``.
        before: the lines it expects.
        after: the lines it leaves in their place.
    """

    line: int | None
    heading: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def parse(diff: str) -> dict[str, list[Hunk]]:
    """Parse a unified diff with ``a/`` and ``b/`` prefixes.

    Args:
        diff: the text; the numbers of a ``@@`` line may be left out.

    Returns:
        The hunks of each file.

    Raises:
        PatchError: a line that has no place in a diff, a new, deleted or renamed file, or a hunk without old
            lines.
    """
    files: dict[str, list[Hunk]] = {}
    lines = iter(diff.rstrip("\n").split("\n"))
    hunks: list[Hunk] = []
    for line in lines:
        if line.startswith(("diff --git ", "index ")):
            continue
        if line.startswith("--- a/"):
            hunks = files.setdefault(_file(line, next(lines, "")), [])
        elif match := _HUNK.match(line):
            if not files:
                raise PatchError(f"hunk before the first file: {line!r}")
            hunks.append(Hunk(int(match["line"]) if match["line"] else None, match["heading"] or ""))
        elif hunks and line[:1] in ("", " ", "-", "+"):
            if line[:1] != "+":
                hunks[-1].before.append(line[1:])
            if line[:1] != "-":
                hunks[-1].after.append(line[1:])
        else:
            raise PatchError(f"not a line of a unified diff: {line!r}")
    for path, parsed in files.items():
        if not parsed or not all(hunk.before for hunk in parsed):
            raise PatchError(f"{path} has no hunk, or one without an old line: give it a line of context")
    return files


def _file(old: str, new: str) -> str:
    path = old.removeprefix("--- a/").split("\t")[0]
    if new.split("\t", maxsplit=1)[0] != f"+++ b/{path}":
        raise PatchError(f"expected '+++ b/{path}' after {old!r}, got {new!r}")
    return path


def apply(text: str, hunks: list[Hunk]) -> str:
    """Apply hunks in the order they stand, each below the one before it.

    A hunk fits where all its old lines stand in sequence. Where that is so at several places, the one at
    exactly the stated line number is taken; where none is there, those from a line that begins with the
    hunk's heading to the next line that begins with a closing brace.

    Args:
        text: the file before.
        hunks: what :func:`parse` returned for it.

    Returns:
        The file after.

    Raises:
        PatchError: a hunk fits nowhere or at several places.
    """
    lines = text.split("\n")
    floor = grown = 0
    for number, hunk in enumerate(hunks, start=1):
        start = _place(lines, hunk, number, floor, grown)
        lines[start : start + len(hunk.before)] = hunk.after
        floor = start + len(hunk.after)
        grown += len(hunk.after) - len(hunk.before)
    return "\n".join(lines)


def _place(lines: list[str], hunk: Hunk, number: int, floor: int, grown: int) -> int:
    found = _matches(lines, hunk.before, floor, len(lines))
    stated = None if hunk.line is None else hunk.line - 1 + grown
    if len(found) > 1 and stated in found:
        found = [stated]
    if len(found) > 1 and hunk.heading:
        headings = [at for at, line in enumerate(lines) if line.startswith(hunk.heading)]
        inside = (_matches(lines, hunk.before, max(at, floor), _end(lines, at)) for at in headings)
        found = sorted({at for places in inside for at in places}) or found
    if len(found) != 1:
        places = ", ".join(str(at + 1) for at in found)
        where = f"at {len(found)} places (lines {places})" if found else "nowhere"
        raise PatchError(f"hunk {number} ({_changed(hunk)!r}) fits {where}, expected exactly one place")
    return found[0]


def _matches(lines: list[str], wanted: list[str], start: int, stop: int) -> list[int]:
    size = len(wanted)
    return [
        at
        for at in range(start, stop - size + 1)
        if lines[at] == wanted[0] and lines[at : at + size] == wanted
    ]


def _end(lines: list[str], heading: int) -> int:
    closing = (at for at in range(heading + 1, len(lines)) if lines[at].startswith("}"))
    return next(closing, len(lines) - 1) + 1


def _changed(hunk: Hunk) -> str:
    """Return a line that shows a reader which hunk it is."""
    removed = [line for line in hunk.before if line not in hunk.after]
    added = [line for line in hunk.after if line not in hunk.before]
    return next((line.strip() for line in removed + added + hunk.before if line.strip()), "")
