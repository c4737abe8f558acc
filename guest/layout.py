# SPDX-License-Identifier: GPL-2.0
"""The files that the jobs of a plan write to. Python's standard library only."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import subprocess
from pathlib import Path

from guest import fio
from guest.extents import regular_files
from guest.plan import LoadError, Plan

MIB = 1 << 20
CHUNK_BYTES = 4 * MIB
# Inode numbers come in order, with gaps: a fitting one comes within a few times the modulus.
INODE_TRIES = 16
# AGs that the files of one directory are spread over, with the placement generic.
GENERIC_AGS = 4
# _IOWR('f', 135, struct fs_write_stream) of kernel/include/uapi/linux/write_stream.h, to set a stream.
WRITE_STREAM = 3 << 30 | 16 << 16 | ord("f") << 8 | 135
SET_STREAM = 1 << 2


def lay_out(plan: Plan, mounts: list[Path], results: Path) -> None:
    """Make the files that the jobs write to, spread over the devices."""
    mount = mounts[0]
    for directory in plan["directories"]:
        (mount / directory).mkdir(parents=True, exist_ok=True)
    paths = make_files(plan, mounts)
    if plan["placement"]:
        place(plan["placement"], paths, Path(os.environ["PWB_DEV"]))
    if plan["layout_job"]:
        output = results / "layout.json"
        done = fio.start([plan["fio"]], results / plan["layout_job"], output, mount, plan["runs"][0]["env"])
        words = done.communicate()[0]
        if done.returncode:
            fio.fail(words, output, "laying out its files")
        output.unlink(missing_ok=True)
        files = regular_files(mount)
        # A job that makes its files as it runs has none yet, which one device does not mind.
        if len(mounts) > 1 and len(files) < len(mounts):
            raise LoadError(f"{len(files)} files cannot be spread over {len(mounts)} devices")
        for index, path in enumerate(files):
            other = mounts[index % len(mounts)]
            if other != mount:
                move_behind_link(path, other / path.relative_to(mount))
    os.sync()
    if not plan["empty"]:
        fill_cache(paths)


def make_files(plan: Plan, mounts: list[Path]) -> list[Path]:
    """Make the plan's own files and return their paths."""
    mount = mounts[0]
    paths = [mount / name for name in plan["files"]]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
    for index, path in enumerate(paths):
        other = mounts[index % len(mounts)]
        if other != mount:
            target = other / path.relative_to(mount)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)
    if plan["inodes"] and plan["modulus"]:
        choose_inodes(paths, plan["modulus"], skewed=plan["inodes"] == "skewed")
    for path in paths:
        if plan["empty"]:
            path.touch()
            os.truncate(path, plan["size_mib"] * MIB)
        else:
            write_out(path, plan["size_mib"] * MIB)
    return paths


def write_out(path: Path, size: int) -> None:
    """Fill ``path`` with ``size`` bytes by large direct writes: every block allocated and written."""
    buffer = mmap.mmap(-1, CHUNK_BYTES)
    buffer.write(os.urandom(4096) * (CHUNK_BYTES // 4096))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o644)
    try:
        done = 0
        while done < size:
            done += os.write(fd, memoryview(buffer)[: min(CHUNK_BYTES, size - done)])
        os.fsync(fd)
    finally:
        os.close(fd)


def choose_inodes(paths: list[Path], modulus: int, *, skewed: bool) -> None:
    """Make empty files of which the inode number leaves a wanted remainder.

    Files are made, kept and looked at until a number fits; what did not fit is removed at the end, for a
    filesystem hands out a freed number again.

    Args:
        paths: files to make; their folders are there.
        modulus: what the inode numbers are divided by.
        skewed: every number leaves 0, all made in the folder of the first; else file i leaves i.
    """
    misfits: list[Path] = []
    for index, path in enumerate(paths):
        folder = paths[0].parent if skewed else path.parent
        wanted = 0 if skewed else index % modulus
        for _ in range(INODE_TRIES * modulus):
            made = folder / f"inode.{len(misfits)}"
            made.touch()
            if inode_number(made) % modulus == wanted:
                made.rename(path)
                break
            misfits.append(made)
        else:
            raise LoadError(f"{path}: found no inode number that leaves {wanted} divided by {modulus}")
    for misfit in misfits:
        misfit.unlink()


def inode_number(path: Path) -> int:
    """Return the number of a file's inode."""
    return path.stat().st_ino


def fill_cache(paths: list[Path]) -> None:
    """Read files into the page cache, all at once: a page that is there costs a writer nothing to make."""
    readers = [subprocess.Popen(["cat", str(path)], stdout=subprocess.DEVNULL) for path in paths]
    for reader, path in zip(readers, paths, strict=True):
        if reader.wait():
            raise LoadError(f"cannot read {path}: cat ended with status {reader.returncode}")


def move_behind_link(path: Path, target: Path) -> None:
    """Put a file on the other device, written, preallocated or sparse as it was, and link to it."""
    found = path.stat()
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source, target.open("wb") as copy:
        try:
            os.lseek(source.fileno(), 0, os.SEEK_DATA)
        except OSError:  # ENXIO: no data in it
            if found.st_blocks:
                os.posix_fallocate(copy.fileno(), 0, found.st_size)
            copy.truncate(found.st_size)
        else:
            source.seek(0)
            while block := source.read(CHUNK_BYTES):
                copy.write(block)
        copy.flush()
        os.fsync(copy.fileno())
    path.unlink()
    path.symlink_to(target)


def place(placement: str, paths: list[Path], device: Path, sysfs: Path = Path("/sys/fs/xfs")) -> None:
    """Say where XFS is to look for the blocks of files.

    Args:
        placement: ``base``: in the AG of the inode; ``generic``: in a window of AGs from that one on;
            ``stream``: each file in the AGs of a write stream of its own.
        paths: the files; with streams they stay open until the end, for a stream lasts as long as its inode.
        device: of the filesystem.
        sysfs: where mounted filesystems have their switches.
    """
    switches = sysfs / device.resolve().name / "write_streams"
    (switches / "generic_ags").write_text(str(GENERIC_AGS if placement == "generic" else 1))
    if placement != "stream":
        return
    (switches / "software").write_text(str(len(paths)))
    for stream, path in enumerate(paths, 1):
        fcntl.ioctl(os.open(path, os.O_WRONLY), WRITE_STREAM, struct.pack("=IIQ", SET_STREAM, stream, 0))
