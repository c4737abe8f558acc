# SPDX-License-Identifier: GPL-2.0
"""Find in a guest kernel's console what must fail a run: oops, WARN, lockdep, KASAN, hung task and others."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_REPORT_LINES = 80
#: Kinds of report that tests ask for.
LEAK, CORRUPTION = "memory leak", "filesystem corruption"

# The formats of printk in the kernel's own reporting code: lib/bug.c, kernel/panic.c, kernel/hung_task.c,
# kernel/locking/lockdep.c, kernel/rcu/tree_stall.h, mm/kasan/report.c, mm/oom_kill.c, lib/ubsan.c, fs/.
# The first that matches names the kind, so the more telling come first.
_KINDS = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("KASAN report", r"BUG: KASAN: "),
        ("data race", r"BUG: KCSAN: "),
        ("UBSAN report", r"UBSAN: "),
        (
            "lockdep report",
            r"WARNING: (possible (circular|recursive|irq lock)|inconsistent lock state"
            r"|bad unlock balance|suspicious RCU usage|Nested lock|held lock freed|lock held when returning"
            r"|\S+-safe -> \S+-unsafe lock order)|BUG: (held lock freed|Invalid wait context)"
            r"|INFO: trying to register non-static key|turning off the locking correctness validator",
        ),
        ("hung task", r"INFO: task .* blocked (in I/O wait )?for more than "),
        ("stall", r"INFO: \w+ (self-)?detected (expedited )?stall|BUG: (soft|workqueue) lockup"),
        ("debugging that gave up", r"ODEBUG disabled"),
        ("WARN", r"WARNING: "),
        ("kernel BUG", r"kernel BUG at |BUG: "),
        ("oops", r"\bOops\b|general protection fault|Unable to handle kernel|Kernel mode fault at "),
        ("panic", r"Kernel panic - not syncing"),
        ("out of memory", r"(?<!cgroup )[Oo]ut of memory: Killed process"),
        (LEAK, r"kmemleak: \d+ new suspected memory leaks"),
        (
            CORRUPTION,
            r"XFS \(\S+\): (Metadata (CRC error|corruption) detected|Corruption|Internal error)"
            r"|EXT4-fs error|EXT4-fs \(\S+\): .*Data will be lost"
            r"|F2FS-fs \(\S+\): .*([Ii]nconsistent|[Cc]orrupt|[Rr]un fsck)",
        ),
    )
]
_RULE = re.compile(r"^(\[[ .\d]+\] ?)?={20,}$")
_END = re.compile(r"---\[ end ")
_BREAKPOINT = re.compile(r"Oops: int3: ")
_STALE_MAP = re.compile(r"^qemu-system-\S+ \S+:\d+: iotlb_to_section: Assertion ", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """One report of the kernel about itself.

    Attributes:
        kind: what it is, such as ``"lockdep report"``.
        lines: the report's lines as the kernel printed them.
    """

    kind: str
    lines: list[str]


def kind_of(line: str) -> str | None:
    """Return the kind of report that a console line starts, None for an ordinary line."""
    return next((kind for kind, pattern in _KINDS if pattern.search(line)), None)


def findings(console: str) -> list[Finding]:
    """Return every report in a console, in order.

    A report reaches from the line that names it to its end mark, at most 80 lines. Lines inside that
    would start a report by themselves belong to it.
    """
    lines = console.splitlines()
    found: list[Finding] = []
    at = 0
    while at < len(lines):
        kind = kind_of(lines[at])
        if kind is None:
            at += 1
            continue
        end = _end_of_report(lines, at)
        found.append(Finding(kind, lines[at:end]))
        at = end
    return found


def _end_of_report(lines: list[str], start: int) -> int:
    """Return the index after the last line of the report that starts at ``start``."""
    limit = min(start + MAX_REPORT_LINES, len(lines))
    ruled = start > 0 and bool(_RULE.search(lines[start - 1]))
    for at in range(start + 1, limit):
        # A report that a rule opens ends with one, too.
        if _END.search(lines[at]) or (ruled and _RULE.search(lines[at])):
            return at + 1
    return limit


def is_stale_code(finding: Finding) -> bool:
    """Tell whether a report says that the emulator ran code which memory no longer has.

    The kernel changes its own code while other CPUs run it: it puts a breakpoint there first (INT3, cc), and
    takes that for its own until every CPU has seen the new code. QEMU throws away what it has translated
    ahead of the store, and a CPU that translates the place in between keeps the old byte, so it can meet a
    breakpoint that is gone, see docs/guest.md.

    Args:
        finding: a report; RIP in its line ``Code:`` is marked, and after a breakpoint points behind it.
    """
    code = next((line for line in finding.lines if "] Code: " in line), "")
    before = re.search(r" ([0-9a-f]{2}) <", code)
    return _BREAKPOINT.search(finding.lines[0]) is not None and before is not None and before[1] != "cc"


def has_stale_map(console: str) -> bool:
    """Tell whether QEMU ended itself because a CPU looked up a device's memory in a map that was gone.

    The guest moves devices' memory while it looks for them. QEMU makes a new map then, and tells its other
    CPUs later: one that asks in between has a number out of one map and looks it up in the other.

    Args:
        console: all that the guest and QEMU printed.
    """
    return _STALE_MAP.search(console) is not None


def tail(console: str, lines: int = 20) -> str:
    """Return the last lines of a console, for errors that the kernel did not explain by a report."""
    return "\n".join(console.splitlines()[-lines:])
