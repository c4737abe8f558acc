# SPDX-License-Identifier: GPL-2.0
"""Whether the clock of the machine smp is right."""
