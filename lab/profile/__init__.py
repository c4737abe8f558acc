# SPDX-License-Identifier: GPL-2.0
"""What a guest in virtual time did, from samples and context switches that its machine recorded."""
