# SPDX-License-Identifier: GPL-2.0
"""How fast a device of the table is, by what its model says: how long it is measured, and what that takes."""

from __future__ import annotations

from lab.machine import devices
from lab.machine.devices import Device, LabBlk

_PAGE_MIB = 4096 / (1 << 20)
_SECOND_NS = 1_000_000_000
#: Eight CPUs write more than that even through a single flusher: a device that does not leaves them idle.
_IDLE_MIB_S = 250.0


def seeks(device: str) -> bool:
    """Say whether a device has a head.

    Args:
        device: its name in the table.

    Raises:
        LabError: there is no such device.
    """
    model = devices.load(device)
    return isinstance(model, LabBlk) and model.rpm > 0


def leaves_cpus_idle(device: str) -> bool:
    """Say whether tasks mostly wait for a device.

    Args:
        device: its name in the table.

    Raises:
        LabError: there is no such device.
    """
    model = devices.load(device)
    return model.makes_tasks_sleep or _most_mib_s(model) < _IDLE_MIB_S


def _most_mib_s(model: Device) -> float:
    """Return what the channels of a device can write; what has none is as fast as the CPUs."""
    if not isinstance(model, LabBlk) or not model.write_ns:
        return float("inf")
    return model.channels * _PAGE_MIB * _SECOND_NS / model.write_ns
