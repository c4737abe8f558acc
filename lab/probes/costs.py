# SPDX-License-Identifier: GPL-2.0
"""What our change costs where it has nothing to bring: memory, and CPU time of pages and syncs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, TypeAdapter

from lab.machine import guest
from lab.machine.hardware import Hardware
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.paths import REPO

GUEST = REPO / "guest"
JSON = "costs.json"
TABLE = "costs.md"
MEM_MIB = 4096
DEVICE_MIB = 1024
#: Seconds of the host, a guard only.
TIMEOUT_S = 1800
OTHER_FILES = 64


@dataclass(frozen=True)
class Probe:
    """A script that runs in the guest and prints its figures.

    Attributes:
        script: its name in ``guest/``.
        unit: of all its figures.
        arguments: its arguments; ``{contexts}`` stands for the number of contexts.
        fs: filesystem under test, ``none`` where the script makes its own devices.
    """

    script: str
    unit: str
    arguments: tuple[str, ...] = ()
    fs: str = "xfs"


PROBES = (
    Probe("cost_device.py", "bytes", fs="none"),
    Probe("cost_cgroup.py", "bytes"),
    Probe("cost_sync.py", "us", ("{contexts}",), fs="none"),
    Probe("cost_page.py", "us", ("0",)),
    Probe("cost_page.py", "us", (str(OTHER_FILES),)),
)


class Cost(BaseModel):
    """One figure, with stock and with numbers of contexts.

    Attributes:
        what: what it is of.
        unit: ``bytes`` or ``us``.
        stock: with the stock kernel.
        contexts: with the parallel kernel, by the number of contexts.
    """

    what: str
    unit: str
    stock: float
    contexts: dict[int, float]


class Run(Protocol):
    """What runs a script in a guest and returns what it printed, so that a test can stand in for it."""

    def __call__(self, kernel: Kernel, probe: Probe, contexts: int | None) -> str: ...  # noqa: D102


def in_guest(cpus: int, possible_cpus: int | None) -> Run:
    """Return what boots a guest in virtual time for each script."""

    def run(kernel: Kernel, probe: Probe, contexts: int | None) -> str:
        settings = {}
        if contexts is not None and probe.fs != "none":
            settings = {"nwritebacks": str(contexts), "wb_affinity": "rotor"}
        words = [word.replace("{contexts}", str(contexts or 1)) for word in probe.arguments]
        done = guest.run(
            kernel.path,
            [sys.executable, str(GUEST / probe.script), *words],
            machine="smp",
            cpus=cpus,
            possible_cpus=possible_cpus,
            fs=probe.fs,
            device="brd",
            device_size_mib=DEVICE_MIB,
            mem_mib=MEM_MIB,
            settings=settings,
            timeout_s=TIMEOUT_S,
        )
        if done.status:
            raise LabError(f"{probe.script} failed on the {kernel.flavour} kernel: {done.output.strip()}")
        return done.output

    return run


def check(cpus: int, possible_cpus: int | None) -> None:
    """Refuse ahead of a build what no guest can be given.

    Raises:
        LabError: too many CPUs, or the host has not the memory.
    """
    hardware = Hardware("smp", mem_mib=MEM_MIB, cpus=cpus, possible_cpus=possible_cpus)
    guest.check(hardware, fs="xfs", device="brd", device_size_mib=DEVICE_MIB)


def measure(stock: Kernel, parallel: Kernel, contexts: Sequence[int], run: Run) -> list[Cost]:
    """Run every script on stock, and on the parallel kernel with each number of contexts.

    Raises:
        LabError: a script or a guest failed.
    """
    found = []
    for probe in PROBES:
        base = _figures(run(stock, probe, None))
        ours = {number: _figures(run(parallel, probe, number)) for number in contexts}
        found += [
            Cost(
                what=what,
                unit=probe.unit,
                stock=value,
                contexts={number: figures[what] for number, figures in ours.items()},
            )
            for what, value in base.items()
        ]
    return found


def _figures(text: str) -> dict[str, float]:
    """Read the last line of a script, which has its figures."""
    found: dict[str, float] = json.loads(text.strip().splitlines()[-1])
    return found


def keep(found: Sequence[Cost], folder: Path) -> None:
    """Write the table and the figures behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JSON).write_bytes(TypeAdapter(list[Cost]).dump_json(list(found), indent=1) + b"\n")
    (folder / TABLE).write_text(table(found), encoding="utf-8")


def table(found: Sequence[Cost]) -> str:
    """Return the table, with each figure as a multiple of stock's."""
    numbers = list(found[0].contexts)
    heads = [f"{number} context{'s' if number != 1 else ''}" for number in numbers]
    lines = [f"| | unit | stock | {' | '.join(heads)} |", f"|---|---|---:|{'---:|' * len(numbers)}"]
    for cost in found:
        form = ",.0f" if cost.unit == "bytes" else ",.2f"
        ours = [f"{cost.contexts[n]:{form}} ({cost.contexts[n] / cost.stock:.2f} x)" for n in numbers]
        unit = "µs" if cost.unit == "us" else cost.unit
        lines.append(f"| {cost.what} | {unit} | {cost.stock:{form}} | {' | '.join(ours)} |")
    return "\n".join(lines) + "\n"
