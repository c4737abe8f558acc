# SPDX-License-Identifier: GPL-2.0
"""What was measured on a server: a JSON file for each job and kernel, of which ``pwb report`` makes a result.

No name of the machine or of its directories is in it, and no serial number.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from lab.util.errors import LabError

FORMAT = 1
#: What has to be the same for runs of one kernel to be added to earlier ones.
SAME = (
    "format",
    "release",
    "version",
    "commit",
    "machine",
    "drive",
    "filesystem",
    "bdi",
    "text",
    "dirty_settings",
    "fio",
)

#: What may become a part of the name of a file, wherever a record is read.
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")

Kind = Literal["stock", "parallel"]


@dataclass(frozen=True)
class Trial:
    """One run of the job.

    Attributes:
        round: its number, from 1.
        contexts: number of writeback contexts, or ``auto``; 1 on a stock kernel.
        raw: what guest/load.py reads in one boot, with one run.
        fio: what fio wrote about it.
    """

    round: int
    contexts: int | str
    raw: dict[str, Any]
    fio: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise ValueError where the contexts are no number of them."""
        if self.contexts != "auto" and not (isinstance(self.contexts, int) and self.contexts > 0):
            raise ValueError(f"contexts is {self.contexts!r}: expected a whole number from 1, or auto")


@dataclass
class Record:
    """All runs of one job on one kernel, and where they ran.

    Attributes:
        kind: the kernel: whether it has contexts.
        release: ``uname -r``.
        version: ``uname -v``.
        machine: CPUs, their model, memory in MiB.
        drive: what the disk is.
        filesystem: name of its type.
        job: name of the job.
        text: what fio was given.
        files_mib: what its files take.
        fio: its version.
        dirty_settings: ``vm.dirty_*`` during the runs.
        dirty_limit_mib: what they come to on this machine.
        bdi: other settings of the device's contexts, which stayed as they were.
        date: of the first run, ISO 8601, UTC.
        others_mib_s: what others wrote to the device before the first run, per second.
        commit: that the archive's kernel with contexts was made at, or else the archive.
        runs: in the order in which they ran.
        format: of this record.
    """

    kind: Kind
    release: str
    version: str
    machine: dict[str, str | int]
    drive: str
    filesystem: str
    job: str
    text: str
    files_mib: float
    fio: str
    dirty_settings: dict[str, int]
    dirty_limit_mib: int
    bdi: dict[str, str]
    date: str
    others_mib_s: float
    commit: str
    runs: list[Trial] = field(default_factory=list)
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Raise ValueError where a name could lead a file out of its folder."""
        for name in ("job", "filesystem"):
            if not NAME.fullmatch(getattr(self, name)):
                raise ValueError(
                    f"{name} is {getattr(self, name)[:99]!r}: expected letters and digits, with . _ - between"
                )

    @property
    def file_name(self) -> str:
        """Return the name of its file."""
        return f"{self.job}-{self.kind}.json"

    @property
    def rounds(self) -> int:
        """Return how many rounds there are."""
        return max((run.round for run in self.runs), default=0)


def resume(record: Record, folder: Path) -> Record:
    """Return a record with the runs that an earlier call has measured, or as it is where there are none.

    Args:
        record: of what is about to run.
        folder: where records are.

    Raises:
        LabError: the earlier runs are not of the same kind.
    """
    path = folder / record.file_name
    if not path.exists():
        return record
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        other = [name for name in SAME if _of_a_kind(earlier, name) != _of_a_kind(asdict(record), name)]
        runs = [Trial(**run) for run in earlier["runs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(
            f"{path} cannot be read ({error}): move it away, or name another folder by --output"
        ) from None
    if other:
        raise LabError(
            f"{path} has earlier runs with another {', '.join(other)}: expected the same, to add to them; "
            "move it away, or name another folder by --output"
        )
    record.runs = runs
    record.date = earlier["date"]
    return record


def _of_a_kind(record: dict[str, Any], name: str) -> Any:
    """Return what is to be the same; not the size of memory, which is not quite the same after each boot."""
    return record[name] | {"memory_mib": 0} if name == "machine" else record[name]


def save(record: Record, folder: Path) -> Path:
    """Write a record into a folder, in one step, and return its path."""
    path = folder / record.file_name
    text = json.dumps(asdict(record), separators=(",", ":"))
    with replacing(path) as file:
        file.write(f"{text}\n".encode())
    return path


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, which takes the place of another when it is whole; an error leaves the other.

    Another account may be able to write to the folder: a link that lies there is replaced, never followed.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        with new.open("xb") as file:
            yield file
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)
