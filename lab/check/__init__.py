# SPDX-License-Identifier: GPL-2.0
"""The series, patch by patch: what has to be true after each, and which one fails."""
