# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: write many files in every way, sync, and compare every byte after a new mount.

Standard library only. What a file must hold follows from its number and its generation, so nothing is
remembered but the generation that was last written.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import subprocess
import sys
from multiprocessing import Process
from pathlib import Path

WRITERS = 4
FILES_PER_WRITER = 12
FILE_BYTES = 512 * 1024
BLOCK_BYTES = 4096
GENERATIONS = 3

MAKE = {"xfs": ["mkfs.xfs", "-q", "-f"], "ext4": ["mkfs.ext4", "-q", "-F"], "f2fs": ["mkfs.f2fs", "-q", "-f"]}
MOUNT = Path("/tmp/compared")
DEVICE = os.environ["PWB_DEV"]


def content(number: int, generation: int) -> bytes:
    """Return what a file holds after a generation: every second block is of the one before."""
    blocks = []
    for block in range(FILE_BYTES // BLOCK_BYTES):
        age = generation if generation == 0 or block % 2 == generation % 2 else generation - 1
        blocks.append(hashlib.sha256(b"%d %d %d" % (number, age, block)).digest() * (BLOCK_BYTES // 32))
    return b"".join(blocks)


def path_of(number: int) -> Path:
    """Return the path of a file; directories spread the inodes over allocation groups."""
    return MOUNT / f"dir{number % 5}" / f"file{number}"


def write(number: int, generation: int) -> None:
    """Write one generation of a file: whole at first, then every second block, by pwrite or mapped."""
    data = content(number, generation)
    path = path_of(number)
    if generation == 0:
        path.write_bytes(data)
        return
    offsets = range((generation % 2) * BLOCK_BYTES, FILE_BYTES, 2 * BLOCK_BYTES)
    with path.open("r+b") as file:
        if number % 3 == 0:
            with mmap.mmap(file.fileno(), FILE_BYTES) as mapping:
                # Twice with a system call between: store() of resize.py says what it mends.
                for _ in range(2):
                    for offset in offsets:
                        mapping[offset : offset + BLOCK_BYTES] = data[offset : offset + BLOCK_BYTES]
                    os.getppid()
        else:
            for offset in offsets:
                os.pwrite(file.fileno(), data[offset : offset + BLOCK_BYTES], offset)
        if number % 4 == 1:
            os.fsync(file.fileno())


def writer(first: int) -> None:
    """Write every generation of one writer's files, with a sync of the filesystem in the middle of it."""
    mine = range(first, WRITERS * FILES_PER_WRITER, WRITERS)
    for generation in range(GENERATIONS):
        for number in mine:
            write(number, generation)
        if generation == first % GENERATIONS:
            os.sync()


def wrong_files(generation: int) -> list[int]:
    """Return the numbers of the files whose bytes are not those of ``generation``."""
    return [
        number
        for number in range(WRITERS * FILES_PER_WRITER)
        if path_of(number).read_bytes() != content(number, generation)
    ]


def mount(filesystem: str) -> None:
    """Mount the device."""
    subprocess.run(["mount", "-t", filesystem, DEVICE, str(MOUNT)], check=True)


def remount(filesystem: str) -> None:
    """Unmount and mount again, so that what is read comes from the device."""
    subprocess.run(["umount", str(MOUNT)], check=True)
    mount(filesystem)


def main(filesystem: str) -> int:
    """Write, sync, remount and compare, twice: after ``sync`` and after a plain unmount of dirty files."""
    MOUNT.mkdir(exist_ok=True)
    subprocess.run([*MAKE[filesystem], DEVICE], check=True)
    mount(filesystem)
    for directory in range(5):
        (MOUNT / f"dir{directory}").mkdir()
    processes = [Process(target=writer, args=(first,)) for first in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode != 0 for process in processes):
        print("a writer failed")
        return 1

    os.sync()
    remount(filesystem)
    wrong = wrong_files(GENERATIONS - 1)
    for number in range(WRITERS * FILES_PER_WRITER):
        write(number, GENERATIONS)
    remount(filesystem)
    wrong += wrong_files(GENERATIONS)
    if wrong:
        print("differ from what was written:", *sorted(set(wrong)))
        return 1
    subprocess.run(["umount", str(MOUNT)], check=True)
    print("every byte is as written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
