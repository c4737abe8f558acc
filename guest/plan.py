# SPDX-License-Identifier: GPL-2.0
"""What :mod:`guest.load` is told to do. Python's standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypedDict


class Run(TypedDict):
    """One fio run of ``job``, a file in the results folder; ``dirty_limit_mib`` None changes no limit.

    ``settings`` are files of each device's backing_dev_info and what to write to them. fio is stopped when
    ``stop_mib`` have reached the devices or ``stop_s`` have passed since they were first written to, unless
    that is None.
    """

    name: str
    job: str
    settings: dict[str, str]
    dirty_limit_mib: int | None
    stop_mib: int | None
    stop_s: float | None
    env: dict[str, str]


class Plan(TypedDict):
    """What to do in one boot.

    ``files`` are written out in full and read into the page cache first, or left sparse with ``empty``;
    without any, ``layout_job`` (fio with create_only) makes them. ``inodes`` is ``even`` or ``skewed`` where
    their inode numbers by ``modulus`` matter (:func:`guest.layout.choose_inodes`). ``placement`` is None, or
    where XFS is to look for blocks: ``base``, ``generic`` or ``stream`` (:func:`guest.layout.place`).
    ``prepare`` is a shell script to run in the filesystem before every run.
    ``devices`` is how many there are: file i lies on device i modulo that, behind a symbolic link unless it
    is the first.
    """

    fio: str
    filefrag: str
    sample_s: float
    directories: list[str]
    files: list[str]
    size_mib: int
    empty: bool
    inodes: str | None
    modulus: int | None
    placement: str | None
    layout_job: str | None
    prepare: str | None
    devices: int
    runs: list[Run]


class LoadError(Exception):
    """The plan cannot be carried out; the text says why."""


class Disk(NamedTuple):
    """A device under test: its node, the folder of its backing_dev_info, and where it is mounted."""

    node: str
    bdi: Path
    mount: Path

    @property
    def sysfs(self) -> Path:
        """Return its folder in sysfs."""
        return Path("/sys/block") / Path(self.node).resolve().name
