# SPDX-License-Identifier: GPL-2.0
"""Errors that are the user's to mend: one clear sentence, no traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHORT = 4


class LabError(Exception):
    """Something the user can mend; ``str()`` names the thing, what was expected and how to mend it."""


class GuestError(LabError):
    """The guest kernel misbehaved: a report on its console, a time-out or an early exit."""


def unknown_name(kind: str, name: str, choices: Iterable[str]) -> LabError:
    """Make the error for a name that is not among the known ones.

    Args:
        kind: what the name stands for, such as ``"device"``.
        name: what the user gave.
        choices: every name that would have been taken.

    Returns:
        An error to raise, naming the nearest known names, or all of them where none is near.
    """
    known = sorted(choices)
    # A short list says more than a guess.
    cutoff = 0.5 if len(known) > _SHORT else 0.6
    near = difflib.get_close_matches(name, known, n=3, cutoff=cutoff) or known
    expected = " or ".join([*([", ".join(near[:-1])] if near[:-1] else []), *near[-1:]])
    return LabError(f"unknown {kind} {name!r}: expected {expected or f'none, there are no {kind}s'}")
