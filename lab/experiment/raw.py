# SPDX-License-Identifier: GPL-2.0
"""What guest/load.py read in one boot, as it was read."""

from __future__ import annotations

from pydantic import BaseModel


class Sample(BaseModel):
    """What guest/load.py read at one moment.

    ``t`` is in seconds since just before fio was started; ``sectors`` are those written, one number per
    device, or one for all where they keep no statistics; ``dirty`` and ``writeback`` are pages; ``idle_s`` is
    the idle time of all CPUs together, None in old results; ``kworkers`` is pid -> (is it flushing now, ns on
    a CPU or None).
    """

    t: float
    sectors: list[int]
    dirty: int
    writeback: int
    idle_s: float | None = None
    kworkers: dict[str, tuple[bool, int | None]]


class RawRun(BaseModel):
    """One fio run as guest/load.py saw it.

    The last sample is the one after the final sync. ``written_kib`` is how much of its page cache each device
    was written.
    """

    name: str
    dirty_settings: dict[str, int]
    fio_json: str
    fio_s: float
    sync_s: float
    contexts: int | None = None
    samples: list[Sample]
    written_kib: list[int] = []
    extents: dict[str, int]


class Raw(BaseModel):
    """Everything guest/load.py wrote in one boot."""

    kernel: str
    page_bytes: int
    cpus: int | None = None
    layout_s: float = 0
    extents_before: dict[str, int] = {}
    runs: list[RawRun] = []
    failure: str | None = None
