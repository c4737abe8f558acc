# SPDX-License-Identifier: GPL-2.0
"""A result made of what ``./field`` has measured on a server: what a bench leaves, of its records."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lab.experiment.measure import figures
from lab.experiment.raw import Raw
from lab.experiment.schedule import CLIMB_S
from lab.experiment.setting import AUTO, Setting
from lab.field.campaign import QUIET_MIB_S
from lab.field.record import FORMAT, NAME, Record, Trial
from lab.result import page, results
from lab.result.provenance import SUMMARY
from lab.result.results import RAW, Key, Measured
from lab.util.errors import LabError

#: Seconds from when the job is at work until figures are taken, as for a job of a user's own on a bench.
RAMP_S = 4.0
_RECORD = TypeAdapter(Record)


def result_folders(path: Path, root: Path = results.RESULTS) -> list[Path]:
    """Return the results that a path means: itself, or those made of what a server has measured.

    Args:
        path: a folder of a result; or an archive of ``./field pack``, or a folder of its records: then a
            result is made for each job in it, with its page, in place of an earlier one of the same records.
        root: where such results go.

    Raises:
        LabError: an archive or a record that cannot be read, or with figures that cannot be worked out.
        OSError: ``root`` cannot be written.
    """
    if path.is_dir() and ((path / SUMMARY).exists() or not _texts(path)):
        return [path.resolve()]
    jobs: dict[str, list[Record]] = {}
    for name, text in _texts(path).items():
        one = _record(f"{path}: {name}", text)
        records = jobs.setdefault(one.job, [])
        if any(other.kind == one.kind for other in records):
            raise LabError(
                f"{path} has two records of job {one.job} on a {one.kind} kernel: expected one of each; "
                "leave the other out"
            )
        records.append(one)
    if not jobs:
        raise LabError(f"{path} has no records of ./field: expected an archive that ./field pack has made")
    return [_make(records, root) for records in jobs.values()]


def _texts(path: Path) -> dict[str, bytes]:
    """Return the records of a folder or of an archive, by their names; nothing is unpacked."""
    if path.is_dir():
        found = sorted(path.glob("*-stock.json")) + sorted(path.glob("*-parallel.json"))
        return {one.name: one.read_bytes() for one in found}
    try:
        with tarfile.open(path, "r:gz") as archive:
            members = [one for one in archive.getmembers() if one.isfile() and one.name.endswith(".json")]
            return {one.name: file.read() for one in members if (file := archive.extractfile(one))}
    except (tarfile.TarError, OSError, EOFError) as error:
        raise LabError(
            f"{path} cannot be read ({error}): expected a folder below results/, or an archive that "
            "./field pack has made"
        ) from None


def _record(name: str, text: bytes) -> Record:
    try:
        read = _RECORD.validate_json(text)
    except ValidationError as error:
        wrong = "; ".join(": ".join([*map(str, one["loc"]), one["msg"]]) for one in error.errors()[:3])
        raise LabError(f"{name} is no record of ./field: {wrong}") from None
    if read.format != FORMAT:
        raise LabError(
            f"{name} has format {read.format}: expected {FORMAT}; read it with the clone that made it"
        )
    return read


def _make(records: list[Record], root: Path) -> Path:
    """Write the result of a job and return its folder."""
    records.sort(key=lambda record: record.kind != "stock")
    first = records[0]
    began = min(record.date for record in records)
    folder = root / f"field-{first.job}-{re.sub(r'[^0-9]', '', began)[:14]}"
    new = root / f".{folder.name}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    measured = [one for record in records for one in _measured(record, _limit(record, records), new)]
    results.write(new, results.cells(first.job, measured), _meta(records, began))
    results.write_runs(new, measured)
    # What takes the place of an earlier result has all that the earlier one has.
    page.remake(new)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
    return folder


def _limit(record: Record, records: list[Record]) -> int:
    """Return the dirty limit of a record's cells: one for all with the same settings.

    What a share of the memory comes to differs a little from boot to boot, and is compared all the same.
    """
    return next(one for one in records if one.dirty_settings == record.dirty_settings).dirty_limit_mib


def _measured(record: Record, limit_mib: int, folder: Path) -> Iterable[Measured]:
    """Yield the figures of each run, and write its raw data."""
    for trial in _once(record):
        setting = Setting(
            variant=record.kind, contexts=trial.contexts if isinstance(trial.contexts, int) else None
        )
        key = Key(
            **dict(setting),
            machine="server",
            cpus=int(record.machine["cpus"]),
            device=_named(record.drive),
            fs=record.filesystem,
            dirty_limit_mib=limit_mib,
        )
        yield _run(record, trial, key, folder)


def _once(record: Record) -> list[Trial]:
    """Return the runs; of those with the same number of contexts in one round the first."""
    found: dict[tuple[int, int | str], Trial] = {}
    for trial in record.runs:
        found.setdefault((trial.round, trial.contexts), trial)
    return [*found.values()]


def _run(record: Record, trial: Trial, key: Key, folder: Path) -> Measured:
    home = folder / "raw" / f"{key.folder}-round{trial.round}"
    home.mkdir(parents=True)
    ramp_s = RAMP_S + (CLIMB_S if trial.contexts == AUTO else 0)
    try:
        raw = Raw.model_validate(trial.raw)
        [run] = raw.runs
        if not (NAME.fullmatch(run.fio_json) and run.fio_json.endswith(".fio.json")):
            raise LabError(f"fio_json is {run.fio_json[:99]!r}: expected the name of a file, *.fio.json")
        got = figures(raw, run, trial.fio, ramp_s=ramp_s, window_s=None)
    except (LabError, ValueError, KeyError) as error:
        raise LabError(f"{record.file_name}, round {trial.round}, {key.label}: {error}") from None
    (home / RAW).write_text(json.dumps(trial.raw, separators=(",", ":")), encoding="utf-8")
    (home / run.fio_json).write_text(json.dumps(trial.fio, separators=(",", ":")), encoding="utf-8")
    return Measured(key=key, round=trial.round, raw=f"raw/{home.name}/{run.fio_json}", figures=got)


def _named(drive: str) -> str:
    """Return the name of a drive for tables and files."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", drive).strip("-._") or "drive"


def _meta(records: list[Record], began: str) -> dict[str, Any]:
    """Collect what the cells were measured with."""
    first = records[0]
    return {
        "view": "cells",
        "command": f"./field run DIR --job {first.job}.fio",
        "date": began,
        "server": _server(first),
        "kernels": {
            record.kind: {
                "version": record.release,
                "release": record.release,
                "identity": record.version,
            }
            for record in records
        },
        "commit": first.commit,
        "fio": first.fio,
        "dirty_settings": {f"limit-{_limit(one, records)}": one.dirty_settings for one in records},
        "notes": list(_notes(records)),
        "scenario": {
            "name": f"field-{first.job.lower()}",
            "title": f"fio job {first.job} on a server with {first.drive}",
            "job": {"text": first.text},
        },
    }


def _server(record: Record) -> str:
    about = record.machine
    return (
        f"{about['cpus']} CPUs ({about['cpu_model']}), {about['memory_mib']} MiB of memory, "
        f"{record.filesystem} on {record.drive}"
    )


def _notes(records: list[Record]) -> Iterable[str]:
    """Say what makes the kernels' figures less comparable than they look."""
    first = records[0]
    for record in records:
        if more := len(record.runs) - len(_once(record)):
            yield f"{record.kind}: {more} runs are left out: their round has another with as many contexts"
        if record.bdi:
            said = ", ".join(f"{name} {value}" for name, value in record.bdi.items())
            yield f"{record.kind}: settings that were left as they were: {said}"
        if record.others_mib_s > QUIET_MIB_S:
            yield (
                f"{record.kind}: others wrote {record.others_mib_s:g} MiB/s to the device before the first "
                "run, and what they wrote during the runs is counted along"
            )
        if record.files_mib < 2 * record.dirty_limit_mib:
            yield (
                f"{record.kind}: dirty limit {record.dirty_limit_mib} MiB, more than half of the job's "
                "files: writers may never have been held at it"
            )
    for record in records[1:]:
        differing = {
            "version of Linux": record.release.split("-")[0] != first.release.split("-")[0],
            "machine": {**record.machine, "memory_mib": 0} != {**first.machine, "memory_mib": 0},
            "drive": record.drive != first.drive,
            "filesystem": record.filesystem != first.filesystem,
            "job": record.text != first.text,
            "dirty settings": record.dirty_settings != first.dirty_settings,
            "fio": record.fio != first.fio,
        }
        names = [name for name, differs in differing.items() if differs]
        if names:
            yield (
                f"{first.kind} and {record.kind} differ in {', '.join(names)} too: their ratio is of all that"
            )
