# SPDX-License-Identifier: GPL-2.0
"""Proofs that take hours: that the tests catch what they are there for."""
