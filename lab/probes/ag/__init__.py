# SPDX-License-Identifier: GPL-2.0
"""What AG-aware writeback of XFS costs, and what it does to extents."""
