# SPDX-License-Identifier: GPL-2.0
"""What became of a measurement: on disk, as tables, plots and verdicts."""
