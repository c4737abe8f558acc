# SPDX-License-Identifier: GPL-2.0
"""What the docs show of measurements: results that are kept in git, and parts of pages made of them."""
