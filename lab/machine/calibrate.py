# SPDX-License-Identifier: GPL-2.0
"""A device file for a drive that fio has measured, and how well the model fits it.

``labblk`` has C channels, each of which takes s for a page. N pages in flight that lie anywhere are a closed
network of C equal stations, which does N C / (s (N + C - 1)) pages a second where service times scatter
(Reiser and Lavenberg 1980, mean value analysis of a balanced network): 1 / s for one page alone, C / s for
very many. Reads and writes share the channels and have times of their own.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lab.machine import devices
from lab.util import fionumber
from lab.util.errors import LabError

Kind = Literal["read", "write"]
KINDS: dict[str, Kind] = {"randread": "read", "randwrite": "write"}
MOST_CHANNELS = 1024
PAGE_BYTES = 4096
JOB = "devices/calibrate.fio"
QUEUEING = ("libaio", "io_uring", "io_uring_cmd", "posixaio")
# Here iodepth means nothing: each command is waited for. What others do with it is not known here.
WAITING = ("psync", "sync", "pvsync", "pvsync2", "vsync")


@dataclass(frozen=True)
class Point:
    """One section of the job: pages in flight, and how many of them the drive did a second."""

    kind: Kind
    depth: int
    pages_s: float


@dataclass(frozen=True)
class Fit:
    """The model that is nearest to the points.

    Attributes:
        channels: what works side by side.
        page_ns: time that a channel takes for a page, by what it does.
    """

    channels: int
    page_ns: dict[Kind, float]

    def pages_s(self, point: Point) -> float:
        """Return what the model does where a point was measured."""
        return _unit_rate(point.depth, self.channels) / (self.page_ns[point.kind] / 1e9)

    def off(self, point: Point) -> float:
        """Return by what part the model is off there."""
        return self.pages_s(point) / point.pages_s - 1


def _unit_rate(depth: int, channels: int) -> float:
    """Return pages per service time."""
    return depth * channels / (depth + channels - 1)


def read(path: Path) -> list[Point]:
    """Read what fio measured.

    Args:
        path: fio's JSON of a run of :data:`JOB`, or of a job like it.

    Raises:
        LabError: it is not fio's JSON, went through the page cache, or lacks what the fit needs.
    """
    try:
        text = path.read_text(encoding="utf-8")
        # fio may put notes ahead of it.
        whole = json.loads(text[text.index("{") :])
        found = _points(path, whole["jobs"], whole.get("global options", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise LabError(
            f"{path} is not what fio writes with --output-format=json: run fio so on {JOB}"
        ) from None
    for kind in ("read", "write"):
        depths = {point.depth for point in found if point.kind == kind}
        if 1 not in depths or len(depths) < 2:
            raise LabError(
                f"{path} has {kind}s at the depths {sorted(depths) or 'none'}: expected random 4k {kind}s "
                f"with iodepth=1 and with some more, as in {JOB}"
            )
    return found


def _points(path: Path, jobs: list[dict[str, Any]], common: dict[str, str]) -> list[Point]:
    """Return the points of all sections that are about pages anywhere."""
    sections: dict[tuple[str, int], list[dict[str, Any]]] = {}
    together: dict[int, set[str]] = {}
    for job in jobs:
        group = job.get("groupid", 0)
        sections.setdefault((job["jobname"], group), []).append(job)
        together.setdefault(group, set()).add(job["jobname"])
    found = []
    for (name, group), alike in sections.items():
        if point := _point(path, name, common, alike):
            found.append(point)
            if others := sorted(together[group] - {name}):
                raise LabError(
                    f"{path}: sections {name} and {others[0]} ran at the same time: expected each alone; put "
                    f"a line stonewall into each, as in {JOB}"
                )
    return found


def _point(path: Path, name: str, common: dict[str, str], jobs: list[dict[str, Any]]) -> Point | None:
    """Return the point of a section; None for one that is not about pages anywhere."""
    own = {**common, **jobs[0].get("job options", {}), "name": name}
    kind = KINDS.get(own.get("rw", ""))
    if kind is None or fionumber.number(own.get("bs", "4k")) != PAGE_BYTES:
        return None
    for option in ("bsrange", "bssplit"):
        if option in own:
            raise LabError(f"{path}: section {name} has {option}: expected bs=4k alone, as in {JOB}")
    if failed := next((job["error"] for job in jobs if job.get("error")), None):
        raise LabError(
            f"{path}: section {name} failed, {os.strerror(failed)}: expected a run without an error; mend "
            "that, and measure again"
        )
    if own.get("direct", "0") not in ("1", ""):
        raise LabError(f"{path}: section {name} went through the page cache: expected direct=1, as in {JOB}")
    pages_s = sum(job[kind]["iops"] for job in jobs)
    if pages_s <= 0:
        raise LabError(f"{path}: section {name} did nothing: expected it to run for some seconds")
    engine = own.get("ioengine", "psync")
    if engine not in (*QUEUEING, *WAITING):
        raise LabError(
            f"{path}: section {name} has ioengine={engine}, of which is not known what it keeps in flight: "
            f"expected one of {', '.join((*QUEUEING, *WAITING))}"
        )
    each = fionumber.count(own, "iodepth") if engine in QUEUEING else 1
    return Point(kind, each * fionumber.count(own, "numjobs"), pages_s)


def fit(points: Sequence[Point]) -> Fit:
    """Return the fit with the least squares of the logarithms."""

    def times(channels: int) -> dict[Kind, float]:
        found: dict[Kind, float] = {}
        for kind in KINDS.values():
            logs = [
                math.log(_unit_rate(point.depth, channels) / point.pages_s)
                for point in points
                if point.kind == kind
            ]
            found[kind] = 1e9 * math.exp(sum(logs) / len(logs))
        return found

    def error(tried: Fit) -> float:
        return sum(math.log1p(tried.off(point)) ** 2 for point in points)

    return min((Fit(channels, times(channels)) for channels in range(1, MOST_CHANNELS + 1)), key=error)


def device_file(name: str, found: Fit, points: Sequence[Point]) -> str:
    """Return the text of a device file.

    Args:
        name: of the drive.
        found: the fit.
        points: what it was made from.
    """
    worst = max(abs(found.off(point)) for point in points)
    alone_us = found.page_ns["write"] / 1e3
    return (
        f"# Made by ./pwb calibrate: the model is off by {worst:.0%} at most where the drive was measured.\n"
        'driver = "labblk"\n'
        f'description = "{name}: {alone_us:.0f} us to write a page on {found.channels} channels"\n'
        "size_mib = 1024\n"
        "queues = 8\n"
        f"queue_depth = {max(64, *(point.depth for point in points))}\n"
        f"channels = {found.channels}\n"
        f"read_ns = {found.page_ns['read']:.0f}\n"
        f"write_ns = {found.page_ns['write']:.0f}\n"
    )


def table(found: Fit, points: Sequence[Point]) -> str:
    """Return a table of drive and model side by side."""
    lines = [
        f"{'':12} {'drive, pages/s':>15} {'us each':>9} {'model, pages/s':>15} {'us each':>9} {'off':>6}"
    ]
    for point in points:
        model = found.pages_s(point)
        lines.append(
            f"{point.kind + ' x ' + str(point.depth):12} {point.pages_s:15,.0f} "
            f"{point.depth / point.pages_s * 1e6:9.1f} {model:15,.0f} {point.depth / model * 1e6:9.1f} "
            f"{found.off(point):+6.0%}"
        )
    return "\n".join(lines)


def write(name: str, text: str, folder: Path = devices.DEVICES) -> Path:
    """Put a device file into the table.

    Raises:
        LabError: a name that no file can have, or one that is taken; the model does not take such a device.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise LabError(f"{name!r} cannot name a device: expected lower-case letters, digits and dashes")
    devices.parsed(text, f"what was made of these figures is no device ({name})")
    path = folder / f"{name}.toml"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise LabError(f"there is a device {name} already: choose another --name, or remove {path}") from None
    return path
