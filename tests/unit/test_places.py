# SPDX-License-Identifier: GPL-2.0
"""Where CPUs may stall: which functions are those of our code, and their addresses in a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.proof import places
from lab.tree.source import Source
from lab.util.errors import LabError

STYLES = """\
/* A call(of something) in a comment. */
#define MACRO(x) \\
{ }
static void declared(void);
static LIST_HEAD(list);

static int wb_one(struct a *a,
\t\t  struct b *b)
\t__must_hold(a->lock)
{
\tif (called(a)) {
\t}
}

STATIC struct c *
xfs_two(
\tstruct c\t*c)
{
}
"""
SYMBOLS = """\
ffffffff81000000 T _text
ffffffff81000010 t wb_one
ffffffff81000050 t __pfx_xfs_two.isra.0
ffffffff81000060 t xfs_two.isra.0
ffffffff81000090 T _raw_spin_lock
ffffffff810000a0 T _raw_spin_unlock_irqrestore
ffffffff810000b0 T raw_spin_locks
ffffffff810000c0 T mutex_lock_nested
ffffffff810000d0 t wb_one.cold
ffffffff810000e0 T _etext
"""


def test_functions_are_found_in_either_style() -> None:
    assert places.FUNCTION.findall(STYLES) == ["wb_one", "xfs_two"]


def test_file_has_our_functions_and_all_boundaries(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "functions", lambda source: {"wb_one", "xfs_two", "inlined"})
    (tmp_path / "System.map").write_text(SYMBOLS)
    places.write(tmp_path / "places", tmp_path / "System.map", source)
    assert (tmp_path / "places").read_text().splitlines() == [
        "code ffffffff81000010 ffffffff81000060",
        "code ffffffff81000060 ffffffff81000090",
        "code ffffffff810000d0 ffffffff810000e0",
        "boundary ffffffff81000090",
        "boundary ffffffff810000a0",
        "boundary ffffffff810000c0",
    ]


def test_our_files_and_those_that_hooks_change_count(source: Source) -> None:
    found = places.functions(source)
    # A file of ours, one that is included, and one of stock that hooks change; no device.
    assert {"bdi_create_wb_ctx", "inode_join_wb", "wake"} <= found
    assert not {name for name in found if name.startswith("labblk")}


def test_kernel_without_symbols_is_refused(tmp_path: Path, source: Source) -> None:
    with pytest.raises(LabError, match=r"System\.map"):
        places.write(tmp_path / "places", tmp_path / "System.map", source)
