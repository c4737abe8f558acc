# SPDX-License-Identifier: GPL-2.0
"""Our change adds no warning of sparse."""

from __future__ import annotations

import pytest

from lab.tree import sparse
from lab.tree.build import Kernel
from lab.tree.source import Source
from tests.touched import ours, touched

pytestmark = pytest.mark.guest


def test_no_new_warning(smp_stock_kernel: Kernel, smp_parallel_kernel: Kernel, kernel_source: Source) -> None:
    objects = touched(kernel_source)
    stock = sparse.warnings(smp_stock_kernel, kernel_source, objects)
    parallel = sparse.warnings(smp_parallel_kernel, kernel_source, [*objects, *ours()])
    assert not parallel - stock
