# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: is a filesystem sound, by its own tools? Standard library only."""

from __future__ import annotations

from tests.guest.lab_device import quietly

# Look, and mend nothing.
CHECK = {"xfs": ["xfs_repair", "-n"], "ext4": ["e2fsck", "-fn"], "f2fs": ["fsck.f2fs", "--dry-run"]}


def check(fs: str, node: str) -> None:
    """Fail if a filesystem is not sound that is not mounted."""
    quietly(*CHECK[fs], node)
