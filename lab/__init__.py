# SPDX-License-Identifier: GPL-2.0
"""The lab: fetch, weave, build, boot, measure and report parallel writeback."""
