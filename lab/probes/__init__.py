# SPDX-License-Identifier: GPL-2.0
"""Single questions with a measurement of their own: what runs in the guest, beside what is made of it."""
