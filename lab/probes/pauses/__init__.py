# SPDX-License-Identifier: GPL-2.0
"""Dirty pages and the pauses of throttled writers over time."""
