# SPDX-License-Identifier: GPL-2.0
"""Our change adds no warning of sparse."""

from __future__ import annotations

import pytest

from lab.tree import sparse
from lab.tree.build import Kernel
from lab.tree.source import Source
from tests.touched import ours, touched

pytestmark = pytest.mark.guest


def test_no_new_warning(stock_kernel: Kernel, parallel_kernel: Kernel, kernel_source: Source) -> None:
    objects = touched(kernel_source)
    stock = sparse.warnings("stock", kernel_source, objects)
    parallel = sparse.warnings("parallel", kernel_source, [*objects, *ours()])
    assert not parallel - stock
