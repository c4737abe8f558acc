# SPDX-License-Identifier: GPL-2.0
"""The number of contexts that the kernel finds while the load changes."""
