# SPDX-License-Identifier: GPL-2.0
"""What every other part uses: errors, locks, paths, processes, progress."""
