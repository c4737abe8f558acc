# SPDX-License-Identifier: GPL-2.0
"""The library that gives RocksDB's files write streams, with a program that gives hints as RocksDB does."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lab.probes.amplification.probe import LIBRARY
from lab.tree.build import Kernel
from lab.util.paths import REPO
from tests.guest.output import output_of

pytestmark = pytest.mark.guest

# Python's own fcntl() is another symbol of the C library than RocksDB's. Hint 0 is "not set", 1 is "none".
PROGRAM = """
import ctypes, fcntl, os, struct
from pathlib import Path
from guest.layout import WRITE_STREAM
GET_RW_HINT, SET_RW_HINT, GET_STREAM = 1035, 1036, 2
libc = ctypes.CDLL(None)
for name in ("rocksdb:high0", "rocksdb:low0"):
    Path("/proc/self/comm").write_text(name)
    for hint in range(6):
        fd = os.open(f"{name}.{hint}", os.O_RDWR | os.O_CREAT)
        word = ctypes.c_uint64(hint)
        assert libc.fcntl(fd, SET_RW_HINT, ctypes.byref(word)) == 0
        assert libc.fcntl(fd, GET_RW_HINT, ctypes.byref(word)) == 0 and word.value == hint
        stream = fcntl.ioctl(fd, WRITE_STREAM, struct.pack("=IIQ", GET_STREAM, 0, 0))
        print(struct.unpack("=IIQ", stream)[1], end=" ")
"""


def test_each_kind_of_file_gets_a_stream(debug_kernel: Kernel, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(LIBRARY), f"OUT={tmp_path}"], check=True)
    environment = f"LD_PRELOAD={tmp_path}/rocksdb-streams.so PYTHONPATH={REPO}"
    script = f"{environment} {sys.executable} -c {shlex.quote(PROGRAM)}"
    assert output_of(debug_kernel, script, fs="xfs", device="flash").split() == [*"001245", *"001345"]
