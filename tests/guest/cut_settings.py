# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: how the kernel writes back while the power is cut, see cuts.py.

Standard library only.
"""

from __future__ import annotations

import random
from pathlib import Path

WAYS = {
    "nwritebacks": ("1", "4", "8", "auto"),
    "wb_workers": ("1", "1", "2", "4"),
    "wb_affinity": ("fs", "ino", "rotor", "least-loaded"),
}
# In a quarter of the cuts XFS has no streams to offer.
STREAMS = {"hardware": ("0", "1"), "stream_ags": ("0", "1"), "generic_ags": ("1", "2", "4")}
MODES = ("off", "ag-hint", "rotor", "generic")
FLUSHING = (
    {"dirty_writeback_centisecs": 1, "dirty_expire_centisecs": 1, "dirty_background_bytes": 64 << 10},
    {"dirty_writeback_centisecs": 5, "dirty_expire_centisecs": 10, "dirty_background_bytes": 1 << 20},
    {"dirty_writeback_centisecs": 0, "dirty_expire_centisecs": 3000, "dirty_background_bytes": 256 << 20},
)


class Settings:
    """The settings of a device and its filesystem; what a kernel does not have is left out."""

    def __init__(self, bdi: Path, name: str, chosen: random.Random) -> None:
        """Have settings of the device of that name, and of its writeback."""
        self._bdi = bdi
        xfs = Path("/sys/fs/xfs", name)
        self._modes, self._streams = xfs / "writeback", xfs / "write_streams"
        self._chosen = chosen
        self._way: dict[str, str] = {}

    @property
    def has_streams(self) -> bool:
        """Whether files of the mounted filesystem can be given write streams."""
        return self._streams.exists()

    def choose(self) -> dict[str, str]:
        """Choose how to write back, and return what was chosen."""
        for name, number in self._chosen.choice(FLUSHING).items():
            Path("/proc/sys/vm", name).write_text(str(number))
        way = {}
        for folder, choices in ((self._bdi, WAYS), (self._streams, STREAMS)):
            for name, values in choices.items():
                value = self._chosen.choice(values)
                if (folder / name).exists():
                    (folder / name).write_text(value)
                    way[name] = value
        mode = self._chosen.choice(MODES)
        if self._modes.exists():
            self._set_mode(mode)
            way["mode"] = mode
        self._way = way
        return way

    def change(self) -> str:
        """Have another value of one setting, in half of the cases; return which."""
        known = [name for name in WAYS if (self._bdi / name).exists()]
        known += ["mode"] if self._modes.exists() else []
        name = self._chosen.choice(["nothing", *known, *["nothing"] * (len(known) - 1)])
        if name != "nothing":
            values = MODES if name == "mode" else WAYS[name]
            value = self._chosen.choice([value for value in values if value != self._way[name]])
            if name == "mode":
                self._set_mode(value)
            else:
                (self._bdi / name).write_text(value)
        return name

    def _set_mode(self, mode: str) -> None:
        for name in ("overwrite", "delalloc"):
            (self._modes / name).write_text(mode)
