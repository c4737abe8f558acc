# SPDX-License-Identifier: GPL-2.0
"""Kernels for tests that run side by side."""

from __future__ import annotations

from lab.tree.build import Kernel, build
from lab.tree.source import Source
from lab.util.lock import in_turn
from lab.util.paths import cache_dir


def built(flavour: str, source: Source, machine: str = "uml") -> Kernel:
    """Build a kernel, or find it built.

    Who needs one that another process of the tests builds waits for it: a build refuses a second of its kind.

    Args:
        flavour: as for :func:`lab.tree.build.build`, like those below.
        source: what to build.
        machine: what for.

    Raises:
        LabError: the kernel does not build.
    """
    with in_turn(cache_dir() / "test-build.lock"):
        return build(flavour, source, machine)
