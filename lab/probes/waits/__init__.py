# SPDX-License-Identifier: GPL-2.0
"""Where the flushers spend their time, and what they wait for."""
