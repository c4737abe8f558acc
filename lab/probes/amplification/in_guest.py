# SPDX-License-Identifier: GPL-2.0
"""Run in the guest, with RECORDS OPERATIONS: what does flash write for RocksDB?

Workload A of YCSB: RECORDS records of 1000 bytes are loaded in random order; then OPERATIONS operations, half
of them reads and half updates of whole records, choose records by YCSB's Zipfian distribution. The device
``$PWB_DEV`` is labblk flash, mounted at ``$PWB_MNT``. Its counters are noted after the load, and now and then
from then on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from rocksdict import DBCompressionType, Options, Rdict

from guest.record import leave

VALUE_BYTES = 1000
# The exponent of the Zipfian distribution, as YCSB's ZipfianGenerator has it.
ZIPFIAN = 0.99
SAMPLES = 40
# RocksDB's defaults divided by 64, as large next to the device as they are next to one of 32 GiB.
TABLE_BYTES = 1 << 20
LEVEL_1_BYTES = 4 << 20
# What waits for compaction takes space: the writer is slowed down before there is much of it.
LEVEL_0_TABLES = 6


def options() -> Options:
    """Return the options of the database: its levels are fixed, and what is written is not compressed."""
    chosen = Options(raw_mode=True)
    chosen.create_if_missing(True)
    chosen.set_write_buffer_size(TABLE_BYTES)
    chosen.set_target_file_size_base(TABLE_BYTES)
    chosen.set_max_bytes_for_level_base(LEVEL_1_BYTES)
    chosen.set_level_zero_slowdown_writes_trigger(LEVEL_0_TABLES)
    chosen.set_level_zero_stop_writes_trigger(2 * LEVEL_0_TABLES)
    chosen.set_level_compaction_dynamic_level_bytes(False)
    chosen.set_compression_type(DBCompressionType.none())
    # One thread flushes, one compacts.
    chosen.set_max_background_jobs(2)
    return chosen


def key(number: int) -> bytes:
    """Return the key of a record."""
    return b"user%012d" % number


def zipfian(choose: np.random.Generator, records: int, count: int) -> list[int]:
    """Return ``count`` records, popular ones often; which are popular has nothing to do with their order."""
    ranks = np.arange(1, records + 1, dtype=float)
    cumulative = np.cumsum(ranks**-ZIPFIAN)
    drawn = np.searchsorted(cumulative, choose.random(count) * cumulative[-1])
    numbers: list[int] = choose.permutation(records)[drawn].tolist()
    return numbers


def counters() -> tuple[int, int]:
    """Return the pages that the host has written, and those that the media have."""
    folder = Path("/sys/kernel/config/labblk", Path(os.environ["PWB_DEV"]).resolve().name)
    return int((folder / "host_pages").read_text()), int((folder / "media_pages").read_text())


def main(records: int, operations: int) -> None:
    """Load, operate, and tell what the device has counted."""
    choose = np.random.default_rng(1)
    database = Rdict(str(Path(os.environ["PWB_MNT"], "database")), options=options())
    for number in choose.permutation(records).tolist():
        database[key(number)] = choose.bytes(VALUE_BYTES)
    samples = [(0, *counters())]
    numbers = zipfian(choose, records, operations)
    updates = (choose.random(operations) < 0.5).tolist()
    begin = time.monotonic()
    for done, (number, update) in enumerate(zip(numbers, updates, strict=True), 1):
        if update:
            database[key(number)] = choose.bytes(VALUE_BYTES)
        elif database.get(key(number)) is None:
            sys.exit(f"record {number} is gone")
        if done % (operations // SAMPLES) == 0:
            samples.append((done, *counters()))
    seconds = time.monotonic() - begin
    levels = database.property_value("rocksdb.levelstats")
    database.close()
    leave({"samples": samples, "seconds": seconds, "levels": levels})


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
