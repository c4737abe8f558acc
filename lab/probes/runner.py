# SPDX-License-Identifier: GPL-2.0
"""Runs a probe: alone on the machine, guest by guest, and leaves a result with its raw data."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from guest import record as records
from lab.experiment.setting import AUTO
from lab.machine import guest, guest_memory, host_idle
from lab.machine.hardware import Hardware, check_contexts
from lab.probes.probe import Boot, Probe, R
from lab.result import provenance
from lab.tree.build import Kernel
from lab.util.errors import LabError
from lab.util.lock import whole_machine
from lab.util.paths import REPO
from lab.util.progress import Progress

RAW = "raw"
INCOMPLETE = f"{RAW}.incomplete"
# Of what a script said, as much as an error shows.
_SAID = 2000


def check(probe: Probe[R]) -> None:
    """Check ahead of a build what a guest of the probe would refuse.

    Raises:
        LabError: there is no such filesystem, device or machine, its kernel takes not so many contexts, or
            the host has not the memory.
    """
    size = ("mem_mib", "cpus", "possible_cpus")
    made = ("device", "device_size_mib")
    for boot in probe.boots():
        hardware = Hardware(
            machine=probe.machine, **{name: boot.options[name] for name in size if name in boot.options}
        )
        asked = {"fs": "xfs", "device": "nolat"} | {
            name: boot.options[name] for name in ("fs", *made) if name in boot.options
        }
        contexts = boot.options.get("settings", {}).get("nwritebacks", AUTO)
        if contexts != AUTO:
            check_contexts(probe.name, int(contexts), hardware.possible_cpus or hardware.cpus)
        guest.check(hardware, **asked)


def measure(probe: Probe[R], kernel_of: Callable[[str], Kernel], folder: Path) -> pd.DataFrame:
    """Boot all guests of a probe and write the result: summary.json, meta.json, table.md, pictures, raw/.

    Args:
        probe: the probe.
        kernel_of: returns a kernel by its flavour.
        folder: where to write, made if missing.

    Returns:
        The table of all runs.

    Raises:
        LabError: something is being measured already, or a guest or what ran in it failed. What was recorded
            until then is in ``raw.incomplete/``; an earlier result in the folder stays as it is. Or the
            result is whole, and what it shows must not be.
    """
    boots = probe.boots()
    raw = folder / INCOMPLETE
    found = {}
    with whole_machine(f"measuring {probe.name}"):
        kernels = {flavour: kernel_of(flavour) for flavour in dict.fromkeys(boot.kernel for boot in boots)}
        probe.prepare()
        shutil.rmtree(raw, ignore_errors=True)
        with _quiet_host(probe, boots) as options, Progress(probe.name) as progress:
            for number, boot in enumerate(boots, 1):
                progress.step(f"{boot.name}, {number} of {len(boots)}")
                found[boot.name] = record(probe, boot, kernels[boot.kernel], raw / boot.name, options)
    rows = [boot.axes | row for boot in boots for row in probe.rows(boot, found[boot.name])]
    runs = pd.DataFrame(rows)
    table = probe.table(runs)
    shutil.rmtree(folder / RAW, ignore_errors=True)
    raw.rename(folder / RAW)
    provenance.write(folder, probe.name, rows, kernels.values(), table=table)
    probe.draw(runs, found, folder)
    if wrong := probe.objections(found):
        raise LabError(f"{probe.name}: {'; '.join(wrong)} (the result is in {folder})")
    return runs


@contextmanager
def _quiet_host(probe: Probe[R], boots: Sequence[Boot]) -> Iterator[dict[str, Any]]:
    """Take from the host what would be in the figures of guests that it times, until the block ends.

    Yields:
        Further options of :func:`lab.machine.guest.run`.
    """
    sizes = {boot.options.get("mem_mib") for boot in boots}
    mib = sizes.pop()
    if probe.machine != "uml" or mib is None or sizes:
        yield {}
        return
    with guest_memory.filled(mib) as memory, host_idle.awake():
        yield {"memory": memory}


def record(
    probe: Probe[R], boot: Boot, kernel: Kernel, folder: Path, options: Mapping[str, Any] | None = None
) -> R:
    """Boot one guest of a probe and return the record that it leaves.

    Args:
        probe: the probe.
        boot: one of its guests.
        kernel: the kernel that it names.
        folder: where the record goes, and what else the guest leaves.
        options: further ones of the guest.

    Raises:
        LabError: the guest failed, or its script.
    """
    folder.mkdir(parents=True, exist_ok=True)
    left = folder / records.NAME
    left.unlink(missing_ok=True)
    variables = {"PYTHONPATH": str(REPO)} | boot.environment
    done = guest.run(
        kernel.path,
        [
            *("env", *(f"{name}={value}" for name, value in variables.items())),
            *(sys.executable, "-m", boot.script, *boot.arguments),
        ],
        machine=kernel.machine,
        results=folder,
        **boot.options | dict(options or {}),
    )
    if done.status:
        raise LabError(
            f"{probe.name}, {boot.name}: {boot.script} failed with status {done.status}: "
            f"{done.output.strip()[-_SAID:]}"
        )
    return probe.record.model_validate_json(left.read_bytes())
