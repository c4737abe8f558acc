# SPDX-License-Identifier: GPL-2.0
"""From kernel source to a kernel: fetch, weave, configure, build, and the patch series."""
