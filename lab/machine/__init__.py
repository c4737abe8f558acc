# SPDX-License-Identifier: GPL-2.0
"""The machines that guests run on, their devices, and the host below them."""
