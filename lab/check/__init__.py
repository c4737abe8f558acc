# SPDX-License-Identifier: GPL-2.0
"""The series checked: what has to be true after each patch, and onto which kernels it weaves."""
