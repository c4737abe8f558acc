# SPDX-License-Identifier: GPL-2.0
"""What contexts cost where they bring nothing."""
