# SPDX-License-Identifier: GPL-2.0
"""The functions by which the probe of waits knows what a flusher waits for are those of the kernel."""

from __future__ import annotations

import re

from lab.probes.waits.probe import REASONS
from lab.tree.source import Source
from lab.util.paths import REPO

FOLDERS = ("block", "fs", "fs/ext4", "fs/f2fs", "fs/jbd2", "fs/xfs", "fs/xfs/libxfs", "mm")
# A name that begins a line, or has only its type before it; a declaration ends in a semicolon.
DEFINITION = re.compile(r"^(?:[a-z][\w *]*[ *])?(\w+)\((?!.*;$)", re.MULTILINE)


def test_every_function_of_a_reason_is_in_the_kernel(kernel_source: Source) -> None:
    folders = [*(kernel_source.path / name for name in FOLDERS), REPO / "kernel/drivers/block/labblk"]
    sources = [path for folder in folders for path in folder.glob("*.c")]
    defined = {name for path in sources for name in DEFINITION.findall(path.read_text(errors="replace"))}
    assert [name for _, functions in REASONS for name in functions if name not in defined] == []
