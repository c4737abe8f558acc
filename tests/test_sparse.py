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
    "fs/inode.o",
    "fs/ioctl.o",
    "fs/iomap/direct-io.o",
    "fs/iomap/ioend.o",
    "fs/xfs/libxfs/xfs_alloc.o",
    "fs/xfs/libxfs/xfs_bmap.o",
    "fs/xfs/xfs_aops.o",
    "fs/xfs/xfs_iomap.o",
    "fs/xfs/xfs_iops.o",
    "fs/xfs/xfs_super.o",
    "fs/xfs/xfs_sysfs.o",
    "mm/backing-dev.o",
    "mm/page-writeback.o",
]
LABBLK = [f"drivers/block/labblk/{name}.o" for name in ("configfs", "ftl", "main", "media", "timing")]
AGWB = [f"fs/xfs/xfs_agwb_{name}.o" for name in ("hint", "pass", "sysfs")]
STREAMS = [f"fs/{name}.o" for name in ("write_stream", "xfs/xfs_ag_set", "xfs/xfs_write_stream")]
OURS = [
    "mm/bdi-wb-affinity.o",
    "mm/bdi-writeback-ctx.o",
    "fs/xfs/xfs_write_stream_sysfs.o",
    *AGWB,
    *STREAMS,
    *LABBLK,
]


def test_no_new_warning(stock_kernel: Kernel, parallel_kernel: Kernel, kernel_source: Source) -> None:
    stock = sparse.warnings("stock", kernel_source, TOUCHED)
    parallel = sparse.warnings("parallel", kernel_source, [*TOUCHED, *OURS])
    assert not parallel - stock
