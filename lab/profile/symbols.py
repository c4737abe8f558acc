# SPDX-License-Identifier: GPL-2.0
"""Names of kernel functions by address, from a System.map."""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection
from pathlib import Path

from lab.util.errors import LabError

UNKNOWN = "[unknown]"
USER = "user space"
# Where user space ends on x86-64 with four levels of page tables.
USER_END = 1 << 47
_FUNCTION_KINDS = "tTwW"
# What the compiler appends to the name of a part or a variant of a function.
_VARIANT = re.compile(r"\.(isra|constprop|part|cold|llvm)\b.*")
# No code runs so far behind the start of the last function.
_LAST_BYTES = 1 << 20


class Symbols:
    """The functions of one kernel, which was linked at fixed addresses and booted with ``nokaslr``."""

    def __init__(self, path: Path) -> None:
        """Read a System.map.

        Raises:
            LabError: there is none, or it has no functions.
        """
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise LabError(f"{path}: expected the System.map of the kernel that ran ({error})") from None
        at: dict[int, str] = {}
        for line in lines:
            fields = line.split()
            if len(fields) < 3 or fields[1] not in _FUNCTION_KINDS or fields[2].startswith("__pfx_"):
                continue
            address, name = int(fields[0], 16), _VARIANT.sub("", fields[2])
            # Of several names at an address the plainest one.
            if address >= USER_END and (address not in at or _plainness(name) < _plainness(at[address])):
                at[address] = name
        if not at:
            raise LabError(f"{path}: expected the System.map of a kernel, found no function in it")
        self._starts = sorted(at)
        self._names = [at[start] for start in self._starts]
        self._known: dict[int, str] = {}

    def name(self, address: int) -> str:
        """Return the function that an address lies in, :data:`USER` or :data:`UNKNOWN`."""
        found = self._known.get(address)
        if found is None:
            found = self._known[address] = self._look_up(address)
        return found

    def is_start(self, address: int) -> bool:
        """Tell whether an address is that of a function's first instruction."""
        number = bisect.bisect_left(self._starts, address)
        return number < len(self._starts) and self._starts[number] == address

    def ranges(self, names: Collection[str]) -> list[tuple[int, int]]:
        """Return where functions of these names, and their parts and variants, start and end; the last never.

        Args:
            names: without what the compiler appends; one may be that of several functions, or of none.
        """
        ends = [*self._starts[1:], self._starts[-1]]
        each = zip(self._starts, ends, self._names, strict=True)
        return [(start, end) for start, end, name in each if name in names]

    def starts(self, pattern: re.Pattern[str]) -> list[int]:
        """Return where the functions start whose whole name a pattern matches."""
        each = zip(self._starts, self._names, strict=True)
        return [start for start, name in each if pattern.fullmatch(name)]

    def _look_up(self, address: int) -> str:
        if address < USER_END:
            return USER
        number = bisect.bisect_right(self._starts, address) - 1
        if number < 0 or address >= self._starts[-1] + _LAST_BYTES:
            return UNKNOWN
        return self._names[number]


def _plainness(name: str) -> tuple[int, int, str]:
    return len(name) - len(name.lstrip("_")), len(name), name
