# SPDX-License-Identifier: GPL-2.0
"""Where XFS puts files that are written side by side."""
