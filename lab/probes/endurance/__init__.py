# SPDX-License-Identifier: GPL-2.0
"""What the kernel holds, and how fast it is, while a load goes on for hours."""
