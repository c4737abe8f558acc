# SPDX-License-Identifier: GPL-2.0
"""Debian packages to install on real machines: of both kernels and of ``wbctl``."""
