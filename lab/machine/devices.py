# SPDX-License-Identifier: GPL-2.0
"""The device table: emulated block devices as data, and the plan by which the guest makes them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from lab.util.errors import LabError, unknown_name
from lab.util.paths import REPO

DEVICES = REPO / "devices"
_SECOND_NS = 1_000_000_000


class DevicePlan(BaseModel):
    """One block device for the guest to make.

    Attributes:
        driver: kernel driver, ``null_blk``, ``brd`` or ``labblk``.
        name: node under ``/dev``.
        attributes: configfs files of the device and what to write to them, in this order.
    """

    driver: str
    name: str
    attributes: dict[str, str] = {}


class _Base(BaseModel):
    """What every device has.

    Attributes:
        description: one line for lists of devices.
        size_mib: size of each device unless the caller asks for another.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    description: str
    size_mib: int = Field(ge=16)

    @property
    def makes_tasks_sleep(self) -> bool:
        """Say whether tasks mostly sleep for it, so that it leaves the CPUs idle."""
        return False


class NullBlk(_Base):
    """A ``null_blk`` device whose blocks live in guest memory (Documentation/block/null_blk.rst).

    Attributes:
        irqmode: 0 completes in the submitting context, 2 by a timer after ``completion_nsec``.
        completion_nsec: latency of one command, for ``irqmode`` 2.
        submit_queues: hardware queues.
        hw_queue_depth: commands in flight in each hardware queue.
        blocksize: logical block size in bytes.
    """

    driver: Literal["null_blk"]
    irqmode: Literal[0, 2]
    completion_nsec: int = Field(default=0, ge=0)
    submit_queues: int = Field(default=1, ge=1)
    hw_queue_depth: int = Field(default=64, ge=1)
    blocksize: Literal[512, 1024, 2048, 4096] = 4096

    @model_validator(mode="after")
    def _latency_needs_timer(self) -> NullBlk:
        if (self.irqmode == 2) != (self.completion_nsec > 0):
            raise ValueError("completion_nsec goes with irqmode = 2 and only with it")
        return self

    def kernel_arguments(self, count: int, size_mib: int) -> list[str]:
        """Return the kernel arguments the device needs: none."""
        del count, size_mib
        return []

    def plan(self, count: int, size_mib: int) -> list[DevicePlan]:
        """Return ``count`` devices of ``size_mib`` MiB each."""
        attributes = {
            "memory_backed": 1,
            "size": size_mib,
            "blocksize": self.blocksize,
            "irqmode": self.irqmode,
            "completion_nsec": self.completion_nsec,
            "submit_queues": self.submit_queues,
            "hw_queue_depth": self.hw_queue_depth,
        }
        text = {name: str(value) for name, value in attributes.items()}
        return [DevicePlan(driver="null_blk", name=f"nullb{i}", attributes=text) for i in range(count)]


class Brd(_Base):
    """The RAM disk ``brd``."""

    driver: Literal["brd"]

    def kernel_arguments(self, count: int, size_mib: int) -> list[str]:
        """Return the kernel arguments by which brd makes ``count`` disks of ``size_mib`` MiB."""
        return [f"brd.rd_nr={count}", f"brd.rd_size={size_mib * 1024}"]

    def plan(self, count: int, size_mib: int) -> list[DevicePlan]:
        """Return ``count`` devices; their size was set by the kernel arguments."""
        del size_mib
        return [DevicePlan(driver="brd", name=f"ram{i}") for i in range(count)]


class LabBlk(_Base):
    """Our own ``labblk``, a device whose commands take time (docs/labblk.md).

    Attributes:
        queues: hardware queues; the kernel makes no more than the guest has CPUs.
        queue_depth: commands in flight in each hardware queue.
        channels: what works side by side in the device; each serves one 4 KiB page after the other.
        stripe_kib: how much of the device follows each other on one channel.
        read_ns: time that a channel takes to read a page.
        write_ns: time that a channel takes to write a page.
        submit_ns: time for which the submitting task sleeps, for each command.
        cache: whether there is a volatile write cache.
        cache_ns: time that a channel takes to put a page into the cache. A write is in flight until then,
            and a power cut may lose it; 0: it takes no time but ``submit_ns``, and is never in flight.
        flush_ns: time that a flush of the cache takes.
        seed: decides what a power cut leaves of the cache.
        max_write_streams: greatest write stream.
        write_hints: whether a write that names no stream goes to the one that has the number of its
            ``RWH_WRITE_LIFE_*`` hint.
        unit_kib: size of a reclaim unit of flash; 0: the device is not flash, and counts nothing.
        op_percent: over-provisioning of flash, in percent of ``size_mib``.
        rpm: revolutions per minute of a rotating disk, which has no channels; 0: it is none.
        track_kib: size of a track of a rotating disk.
        seek_min_ns: what a seek takes at least, however short.
        seek_max_ns: time that its head takes across all tracks.
    """

    driver: Literal["labblk"]
    queues: int = Field(default=1, ge=1, le=1024)
    queue_depth: int = Field(default=64, ge=1, le=10240)
    channels: int = Field(default=1, ge=1, le=1024)
    stripe_kib: int = Field(default=4, ge=4, le=1 << 20, multiple_of=4)
    read_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    write_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    submit_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    cache: bool = False
    cache_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    flush_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    seed: int = Field(default=0, ge=0, lt=1 << 64)
    max_write_streams: int = Field(default=0, ge=0, le=255)
    write_hints: bool = False
    unit_kib: int = Field(default=0, ge=0, le=1 << 20, multiple_of=4)
    op_percent: int = Field(default=7, ge=1, le=100)
    rpm: int = Field(default=0, ge=0, le=100_000)
    track_kib: int = Field(default=1024, ge=4, le=1 << 20, multiple_of=4)
    seek_min_ns: int = Field(default=0, ge=0, le=_SECOND_NS)
    seek_max_ns: int = Field(default=0, ge=0, le=_SECOND_NS)

    @model_validator(mode="after")
    def _times_of_the_cache_need_one(self) -> LabBlk:
        for name, time_ns in (("flush_ns", self.flush_ns), ("cache_ns", self.cache_ns)):
            if time_ns and not self.cache:
                raise ValueError(f"{name} goes with cache = true: without a cache nothing is flushed")
        return self

    @model_validator(mode="after")
    def _disk_has_a_head_and_no_channels(self) -> LabBlk:
        if self.rpm and (self.read_ns or self.write_ns):
            raise ValueError("read_ns and write_ns are of channels: a rotating disk has rpm and seek times")
        if self.seek_max_ns < self.seek_min_ns:
            raise ValueError("seek_max_ns is at least seek_min_ns")
        return self

    @property
    def makes_tasks_sleep(self) -> bool:
        """Say whether tasks mostly sleep for it, so that it leaves the CPUs idle."""
        return self.submit_ns > 0 or self.rpm > 0

    def kernel_arguments(self, count: int, size_mib: int) -> list[str]:
        """Return the kernel arguments the device needs: none."""
        del count, size_mib
        return []

    def plan(self, count: int, size_mib: int) -> list[DevicePlan]:
        """Return ``count`` devices of ``size_mib`` MiB each."""
        attributes = self.model_dump(exclude={"driver", "description"}) | {"size_mib": size_mib}
        text = {name: str(int(value)) for name, value in attributes.items()}
        return [DevicePlan(driver="labblk", name=f"labblk{i}", attributes=text) for i in range(count)]


Device = NullBlk | Brd | LabBlk
_DRIVERS = ("null_blk", "brd", "labblk")
_ADAPTER: TypeAdapter[Device] = TypeAdapter(Annotated[Device, Field(discriminator="driver")])


def names(directory: Path = DEVICES) -> list[str]:
    """Return the names of all devices of the table, sorted."""
    return sorted(path.stem for path in directory.glob("*.toml"))


def load(name: str, directory: Path = DEVICES) -> Device:
    """Read one device of the table.

    Args:
        name: file name in ``directory`` without ``.toml``.
        directory: the table.

    Raises:
        LabError: there is no such device, or its file is not as the model wants it.
    """
    known = names(directory)
    if name not in known:
        raise unknown_name("device", name, known)
    path = directory / f"{name}.toml"
    return parsed(path.read_text(), f"device file {path}")


def parsed(text: str, what: str) -> Device:
    """Read the text of a device file.

    Args:
        text: TOML.
        what: names it in an error.

    Raises:
        LabError: it is not as the model wants it.
    """
    try:
        return _ADAPTER.validate_python(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{what} is not TOML: {error}") from None
    except ValidationError as error:
        raise LabError(f"{what}: {_complaints(error)}") from None


def _complaints(error: ValidationError) -> str:
    found = []
    for item in error.errors():
        # The first part of the place is the discriminator's value, which is no key of the file.
        place = ".".join(str(part) for part in item["loc"] if part not in _DRIVERS)
        found.append(f"{place}: {item['msg']}" if place else item["msg"])
    return "; ".join(found)
