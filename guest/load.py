# SPDX-License-Identifier: GPL-2.0
"""Run fio inside the guest and note, at intervals, what reaches the device and what the flushers cost.

Started as ``python -m guest.load PLAN``: a JSON file written by lab/bench/boot_task.py, with the keys of
:class:`guest.plan.Plan`.
For every run of the plan it makes the settings, sets the dirty limits, starts fio with the filesystem under
test as working directory, samples while fio and then the final ``sync`` run, and counts extents. Everything
goes to ``$PWB_RESULTS/raw.json`` as it was read: lab/experiment/measure.py makes the figures. Python's
standard library only: this runs on the host's Python, seen from the guest.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from guest import fio, layout
from guest.extents import count_extents
from guest.plan import Disk, LoadError, Plan, Run
from guest.sampler import Sampler, pages_written_kib
from guest.settings import contexts_in_use, set_dirty_limit


def prepare(script: str, mount: Path, said: Path) -> int:
    """Run a shell script with ``mount`` as its working directory, and its words in the file ``said``.

    Returns:
        The process group, in which the script may have left something running.
    """
    with said.open("w", encoding="utf-8") as words:
        process = subprocess.Popen(
            ["sh", "-ec", script], cwd=mount, stdout=words, stderr=words, start_new_session=True
        )
    if status := process.wait():
        raise LoadError(f"the scenario's prepare ended with status {status}: {said.read_text().strip()}")
    return process.pid


def save_ag_counters(output: Path, debugfs: Path = Path("/sys/kernel/debug")) -> None:
    """Save what XFS's AG-aware writeback has counted, where there is any, in the file ``output``."""
    counted = "".join(path.read_text() for path in sorted(debugfs.glob("xfs/*/writeback")))
    if counted:
        output.write_text(counted, encoding="utf-8")


def is_enough(run: Run, sampler: Sampler) -> bool:
    """Say whether the jobs have done what the run is about."""
    if run["stop_mib"] is not None and sampler.written_mib() > run["stop_mib"]:
        return True
    return run["stop_s"] is not None and sampler.writing_s() > run["stop_s"]


def measure(plan: Plan, run: Run, results: Path, disks: list[Disk]) -> dict[str, Any]:
    """Do one run and return what was read during it."""
    mount = disks[0].mount
    for name, value in run["settings"].items():
        for disk in disks:
            (disk.bdi / name).write_text(value)
    settings = {}
    if run["dirty_limit_mib"]:
        settings = set_dirty_limit(run["dirty_limit_mib"])
    else:
        # Direct I/O over cached pages would pay for throwing them out.
        Path("/proc/sys/vm/drop_caches").write_text("1")
    before = [pages_written_kib(disk.bdi) for disk in disks]
    group = prepare(plan["prepare"], mount, results / "prepare.txt") if plan["prepare"] else None
    output = results / f"{run['name']}.fio.json"
    sampler = Sampler([disk.sysfs for disk in disks])
    sampler.sample()
    process = fio.start([plan["fio"]], results / run["job"], output, mount, run["env"])
    failure = fio.watch(process, sampler, plan["sample_s"], lambda: is_enough(run, sampler))
    fio_s = sampler.samples[-1]["t"]
    if failure is not None:
        fio.fail(failure, output, f"run {run['name']}")
    contexts = contexts_in_use(disks[0].bdi)
    begin = time.monotonic()
    os.sync()
    sync_s = time.monotonic() - begin
    sampler.sample()
    sampler.close()
    save_ag_counters(results / f"{run['name']}.writeback.txt")
    if group is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)
    return {
        "name": run["name"],
        "dirty_settings": settings,
        "fio_json": output.name,
        "fio_s": fio_s,
        "sync_s": round(sync_s, 4),
        "contexts": contexts,
        "samples": sampler.samples,
        "written_kib": [pages_written_kib(disk.bdi) - kib for disk, kib in zip(disks, before, strict=True)],
        "extents": count_extents(plan["filefrag"], mount),
    }


def main(arguments: list[str]) -> int:
    """Carry out the plan named by the only argument."""
    results = os.environ.get("PWB_RESULTS")
    mount = os.environ.get("PWB_MNT")
    if not results or not mount or not os.path.ismount(mount):
        print(
            "load.py: PWB_RESULTS and PWB_MNT are not those of a guest: it changes sysctls, "
            "run it there only",
            file=sys.stderr,
        )
        return 2
    plan: Plan = json.loads(Path(arguments[0]).read_text())
    disks = [
        Disk(os.environ[f"PWB_DEV{n}"], Path(os.environ[f"PWB_BDI{n}"]), Path(os.environ[f"PWB_MNT{n}"]))
        for n in ["", *range(2, plan["devices"] + 1)]
    ]
    raw: dict[str, Any] = {
        "kernel": os.uname().release,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "cpus": os.cpu_count(),
        "runs": [],
        "failure": None,
    }
    try:
        begin = time.monotonic()
        layout.lay_out(plan, [disk.mount for disk in disks], Path(results))
        raw["layout_s"] = round(time.monotonic() - begin, 4)
        raw["extents_before"] = count_extents(plan["filefrag"], Path(mount))
        for run in plan["runs"]:
            raw["runs"].append(measure(plan, run, Path(results), disks))
    except (LoadError, OSError) as error:
        raw["failure"] = str(error)
    (Path(results) / "raw.json").write_text(json.dumps(raw, separators=(",", ":")))
    return 1 if raw["failure"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
