# SPDX-License-Identifier: GPL-2.0
"""What is measured and how: scenarios, settings, schedules, figures."""
