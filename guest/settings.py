# SPDX-License-Identifier: GPL-2.0
"""Kernel settings: when it writes back, by how many contexts. Python's standard library only."""

from __future__ import annotations

import re
from pathlib import Path

MIB = 1 << 20
VM = Path("/proc/sys/vm")


def set_dirty_limit(limit_mib: int, vm: Path = VM) -> dict[str, int]:
    """Set ``vm.dirty_bytes``, and ``vm.dirty_background_bytes`` to half; return all dirty settings."""
    (vm / "dirty_bytes").write_text(str(limit_mib * MIB))
    (vm / "dirty_background_bytes").write_text(str(limit_mib * MIB // 2))
    return dirty_settings(vm)


def dirty_settings(vm: Path = VM) -> dict[str, int]:
    """Return all settings of ``vm.dirty_*``."""
    return {path.name: int(path.read_text()) for path in sorted(vm.glob("dirty*"))}


def contexts_in_use(bdi: Path) -> int | None:
    """Return the number of writeback contexts, ``3`` or ``auto (3)``; None where the kernel has none."""
    number = bdi / "nwritebacks"
    found = re.search(r"\d+", number.read_text()) if number.exists() else None
    return int(found[0]) if found else None
