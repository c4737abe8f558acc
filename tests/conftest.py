# SPDX-License-Identifier: GPL-2.0
"""Fixtures for tests that boot a guest; such tests carry the mark ``guest``."""

from __future__ import annotations

import pytest

from lab.build import Kernel, build
from lab.source import Source, fetch


@pytest.fixture(scope="session")
def kernel_source() -> Source:
    return fetch()


@pytest.fixture(scope="session")
def stock_kernel(kernel_source: Source) -> Kernel:
    return build("stock", kernel_source)


@pytest.fixture(scope="session")
def parallel_kernel(kernel_source: Source) -> Kernel:
    return build("parallel", kernel_source)


@pytest.fixture(scope="session")
def debug_kernel(kernel_source: Source) -> Kernel:
    return build("debug", kernel_source)
