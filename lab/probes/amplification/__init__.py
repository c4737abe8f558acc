# SPDX-License-Identifier: GPL-2.0
"""What RocksDB makes flash write."""
