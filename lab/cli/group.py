# SPDX-License-Identifier: GPL-2.0
"""The command that all others belong to."""

from __future__ import annotations

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Build stock and parallel-writeback Linux, and compare them on real fio jobs.

    Kernels run as User-mode Linux or in QEMU: ordinary programs, no root, no image.  What is fetched and
    built is kept in $PWB_CACHE, or else ~/.cache/pwb.
    """
