# SPDX-License-Identifier: GPL-2.0
"""Our change adds no warning of sparse."""

from __future__ import annotations

import pytest

from lab import sparse
from lab.build import Kernel
from lab.source import Source

pytestmark = pytest.mark.guest

TOUCHED = [
    "block/genhd.o",
    "fs/ext4/super.o",
    "fs/f2fs/data.o",
    "fs/f2fs/super.o",
    "fs/fs-writeback.o",
    "fs/xfs/xfs_super.o",
    "mm/backing-dev.o",
    "mm/page-writeback.o",
]
LABBLK = [f"drivers/block/labblk/{name}.o" for name in ("configfs", "main", "media", "timing")]
OURS = ["mm/bdi-wb-affinity.o", "mm/bdi-writeback-ctx.o", *LABBLK]


def test_no_new_warning(stock_kernel: Kernel, parallel_kernel: Kernel, kernel_source: Source) -> None:
    stock = sparse.warnings("stock", kernel_source, TOUCHED)
    parallel = sparse.warnings("parallel", kernel_source, [*TOUCHED, *OURS])
    assert not parallel - stock
