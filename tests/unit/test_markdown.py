# SPDX-License-Identifier: GPL-2.0
"""Tables in Markdown, and as a mail shows them."""

from __future__ import annotations

from lab.util import markdown


def test_plain_table_has_columns() -> None:
    made = markdown.table(["fs", "`stock`"], [["[XFS](x.md)", "**1041**"], ["ext4", "7"]], left=1)
    assert markdown.plain(made) == "fs    stock\nXFS    1041\next4      7\n"
