# SPDX-License-Identifier: GPL-2.0
"""What the archive of ``pwb field`` runs on a server: Python's standard library only, and fio."""
