# SPDX-License-Identifier: GPL-2.0
"""Measurements as they run: boots as tasks, their cache, who runs them, the search, a result in the end."""
