# SPDX-License-Identifier: GPL-2.0
"""How often locks were found taken, from the kernel's statistics."""

from __future__ import annotations

from guest.list_lock import counts

STATISTICS = """\
lock_stat version 0.4
-----------------------------------------------------------------------------------------------------------
                              class name    con-bounces    contentions   waittime-min   waittime-max
-----------------------------------------------------------------------------------------------------------

                        &wb->list_lock:            17             19           0.00       10000.00       20000.00        1052.63            700           1500           0.00       10000.00      130000.00          86.67
                        --------------
                        &wb->list_lock             12          [<000000006015a0c0>] writeback_sb_inodes+0x1a0/0x5a0

               &sb->s_type->i_mutex_key#13-W:             0              0           0.00           0.00           0.00           0.00              1              3           0.00           0.00           0.00           0.00
"""  # noqa: E501


def test_counts() -> None:
    assert counts(STATISTICS.splitlines()) == {
        "&wb->list_lock": (1500, 19),
        "&sb->s_type->i_mutex_key#13-W": (3, 0),
    }
