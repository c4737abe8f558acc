# SPDX-License-Identifier: GPL-2.0
"""Kernel configuration: fragments merged into one request, and the proof that kconfig granted all of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

# The flavours of each machine, and what each is made of.
FRAGMENTS = {
    "uml": {
        "stock": ("common", "uml", "bench"),
        "parallel": ("common", "uml", "contexts", "hints", "bench"),
        "debug": ("common", "uml", "contexts", "hints", "stacked", "debug", "uml-debug"),
        "nocgroup": ("common", "uml", "contexts", "nocgroup"),
        "traced": ("common", "uml", "contexts", "hints", "bench", "traced"),
    },
    "smp": {
        "stock": ("common", "smp", "bench"),
        "prepared": ("common", "smp", "bench"),
        "parallel": ("common", "smp", "contexts", "hints", "bench"),
        "debug": ("common", "smp", "contexts", "hints", "stacked", "debug", "smp-debug"),
        "kcsan": ("common", "smp", "contexts", "hints", "stacked", "smp-debug", "kcsan"),
    },
}
# What the tests boot; the others are built where a command needs them.
TESTED = {
    "uml": ("debug", "nocgroup"),
    "smp": ("stock", "parallel", "debug"),
}

_SET = re.compile(r"(CONFIG_\w+)=(.+)")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")


@dataclass(frozen=True)
class Request:
    """One line of a fragment: a symbol and the value asked for, ``"n"`` for one that must be off."""

    symbol: str
    value: str
    fragment: Path
    line: int


def fragments(flavour: str, machine: str) -> list[Path]:
    """Return the fragments that a flavour for a machine is made of, the one that wins last.

    Raises:
        LabError: there is no such machine, or no such flavour for it.
    """
    if machine not in FRAGMENTS:
        raise unknown_name("machine", machine, FRAGMENTS)
    flavours = FRAGMENTS[machine]
    if flavour not in flavours:
        raise unknown_name(f"{machine} kernel", flavour, flavours)
    return [REPO / "config" / f"{name}.config" for name in flavours[flavour]]


def _parse(line: str) -> tuple[str, str] | None:
    """Split a line of a fragment or a ``.config`` into symbol and value; ``None`` for a comment."""
    found = _SET.fullmatch(line)
    if found:
        return found[1], found[2]
    found = _UNSET.fullmatch(line)
    return (found[1], "n") if found else None


def merge(paths: Sequence[Path]) -> list[Request]:
    """Read fragments; where two speak of one symbol the later one wins.

    Raises:
        LabError: a fragment is missing, or holds a line that is neither a setting nor a comment.
    """
    requests: dict[str, Request] = {}
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise LabError(f"kernel config fragment {path} is missing: restore it from git") from None
        for number, raw in enumerate(lines, 1):
            line = raw.strip()
            setting = _parse(line)
            if setting:
                requests[setting[0]] = Request(*setting, path, number)
            elif line and not line.startswith("#"):
                raise LabError(
                    f"{path.name} line {number}: {line!r} is no kernel setting; "
                    "expected CONFIG_NAME=value or '# CONFIG_NAME is not set'"
                )
    return list(requests.values())


def text(requests: Sequence[Request]) -> str:
    """Write requests in the form that ``KCONFIG_ALLCONFIG`` takes."""
    return "".join(f"{request.symbol}={request.value}\n" for request in requests)


def verify(requests: Sequence[Request], dotconfig: str) -> None:
    """Check that every request survived kconfig, which drops without a word what a dependency forbids.

    Args:
        requests: what was asked for.
        dotconfig: the text of the ``.config`` that kconfig made of it.

    Raises:
        LabError: names every lost symbol, what became of it, and the fragment and line that asked for it.
    """
    granted = dict(filter(None, map(_parse, dotconfig.splitlines())))
    lost = [
        f"  {request.symbol}={request.value} ({request.fragment.name} line {request.line}) "
        f"became {granted.get(request.symbol, 'absent')}"
        for request in requests
        if granted.get(request.symbol, "n") != request.value
    ]
    if lost:
        raise LabError(
            "this kernel does not grant every setting asked for; "
            "add what each depends on, or remove its line:\n" + "\n".join(lost)
        )
