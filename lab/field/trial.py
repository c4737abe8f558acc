# SPDX-License-Identifier: GPL-2.0
"""One run of the job: fresh files, fio and the counters while it runs, the final sync, extents."""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from guest import fio
from guest.extents import count_extents
from guest.sampler import Sampler
from guest.settings import contexts_in_use, dirty_settings
from lab.experiment import fiojob
from lab.field.job import Job
from lab.field.place import Place, System
from lab.util.errors import LabError
from lab.util.process import end_group

NAME = "run"
SAMPLE_S = 0.5
# For what the drive and the filesystem still do about the files of the run before.
SETTLE_S = 3.0
# fio ends with us, also when we are killed.
_FIO = ["setpriv", "--pdeathsig", "TERM", "fio"]


def measure(
    place: Place, work: Path, job: Job, system: System, most_s: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the job once, on files of its own, which are removed.

    Args:
        place: what ``work`` lies on.
        work: folder to write to.
        job: the job.
        system: where the kernel shows its counters.
        most_s: seconds after which the job is ended, unless it has ended by itself.

    Returns:
        What guest/load.py leaves of a boot, and what fio wrote.

    Raises:
        LabError: the disk has become too full, it cannot be synced, or fio has left no figures.
        guest.plan.LoadError: fio failed.
    """
    files = work / "files"
    files.mkdir()
    for folder in fiojob.directories(job.text):
        (files / folder).mkdir(parents=True, exist_ok=True)
    _sync(files)
    time.sleep(SETTLE_S)
    begin = time.monotonic()
    run_fio = functools.partial(_run_fio, place, files, system=system)
    # Files that are not whole are not those that the job is about.
    run_fio(fiojob.layout_only(job.text), job=work / "layout", most_s=math.inf).close()
    _sync(files)
    layout_s = time.monotonic() - begin
    before = _extents(files)

    sampler = run_fio(job.text, job=work / NAME, most_s=most_s)
    fio_s = sampler.samples[-1]["t"]
    contexts = contexts_in_use(place.bdi)
    begin = time.monotonic()
    _sync(files)
    sync_s = time.monotonic() - begin
    sampler.sample()
    sampler.close()
    run = {
        "name": NAME,
        "dirty_settings": dirty_settings(system.vm),
        "fio_json": _output(work / NAME).name,
        "fio_s": fio_s,
        "sync_s": round(sync_s, 4),
        "contexts": contexts,
        "samples": sampler.samples,
        "extents": _extents(files),
    }
    raw = {
        "kernel": os.uname().release,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "cpus": os.cpu_count(),
        "layout_s": round(layout_s, 4),
        "extents_before": before,
        "runs": [run],
    }
    figures = _figures(_output(work / NAME))
    shutil.rmtree(files)
    return raw, figures


def _run_fio(place: Place, files: Path, text: str, *, job: Path, system: System, most_s: float) -> Sampler:
    """Run fio to its end, or until it has had its time or the disk is too full; it ends with this call."""
    job.write_text(text, encoding="utf-8")
    sampler = Sampler([place.sysfs], system.proc)
    sampler.sample()
    process = fio.start(_FIO, job, _output(job), files, {})
    try:
        failure = fio.watch(
            process, sampler, SAMPLE_S, lambda: sampler.samples[-1]["t"] > most_s or place.is_full
        )
    finally:
        if process.poll() is None:
            # Settings are put back after this, whatever the disk does.
            end_group(process, patient=False)
        fio.end_jobs(process)
    if place.is_full:
        raise LabError(
            f"the job has left {place.free_mib:.0f} MiB free on {place.device}: expected a fortieth of it; "
            "lower size= in the job"
        )
    if failure is not None:
        fio.fail(failure, _output(job), f"its {job.name}")
    return sampler


def _output(job: Path) -> Path:
    return job.with_name(f"{job.name}.fio.json")


def _figures(output: Path) -> dict[str, Any]:
    """Return what fio has written, but for the notes that it may put ahead."""
    text = output.read_text(encoding="utf-8", errors="replace")
    try:
        found: dict[str, Any] = json.loads(text[text.index("{") :])
    except ValueError:
        raise LabError(
            f"fio has left no figures: expected JSON, as fio 3 writes it; look at the job, for it wrote "
            f"{text[:99]!r}"
        ) from None
    return found


def _extents(files: Path) -> dict[str, int]:
    """Return extents by file name; none where filefrag is missing."""
    filefrag = shutil.which("filefrag", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    return count_extents(filefrag, files) if filefrag else {}


def _sync(files: Path) -> None:
    """Write back what is dirty on the filesystem of the files, and on no other."""
    process = subprocess.Popen(["sync", "--file-system", str(files)], stderr=subprocess.PIPE, text=True)
    try:
        _, words = process.communicate()
    except BaseException:
        # Not waited for: it ends when all is written, and settings are put back before that.
        process.kill()
        raise
    if process.returncode:
        raise LabError(
            f"{files} cannot be synced ({words.strip()}): expected everything to reach the disk; look at the "
            "kernel's log"
        )
