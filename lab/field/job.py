# SPDX-License-Identifier: GPL-2.0
"""A fio job for a server: taken only if it stays in the directory that it is given, and fits into it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lab.experiment import fiojob, ownjob
from lab.util.errors import LabError

#: Size of all files of a job that asks for ``${FILE_MIB}``; each has at least LEAST_MIB.
TOTAL_MIB = 4096
LEAST_MIB = 64
# They run programs, change what is not the job's, or write without end or to places named elsewhere.
_REFUSED = (
    "cgroup",
    "cgroup_nodelete",
    "cgroup_weight",
    "exec_postrun",
    "exec_prerun",
    "file_append",
    "fill_device",
    "fill_fs",
    "ioscheduler",
    "opendir",
    "read_iolog",
)
# Beside the size, what files take is worked out of these.
_COUNTED = ("nrfiles", "numjobs", "offset", "offset_increment")
_NUMBER = re.compile(r"\d+(?:[kmgt]i?b?)?", re.IGNORECASE)
_OPTION = re.compile(r"^([\w-]+)\s*(?:=\s*(.*))?$")
_SECTION = re.compile(r"^\[(.+)\]$")
# fio reads a longer line in pieces, each as a line.
_WIDEST = 4094


@dataclass(frozen=True)
class Job:
    """A job as it runs.

    Attributes:
        name: of its file, without ``.fio``.
        text: what fio is given; without comments.
        files_mib: what its files take.
    """

    name: str
    text: str
    files_mib: float


def load(path: Path, cpus: int) -> Job:
    """Read a job file, and look whether it can run.

    Args:
        path: the file; ``${CPUS}`` and ``${FILE_MIB}`` in it are replaced.
        cpus: of the machine.

    Raises:
        LabError: it cannot be read, fio refuses it, it would write elsewhere or run a program, it writes
            nothing or around the page cache, fio would tell no figures of writes, or it does not say how
            large its files are.
    """
    try:
        text = fiojob.inlined(path.name, path.read_text(encoding="utf-8"), path.parent)
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"job file {path}: cannot be read as text: {error}") from error
    # As fio does, wherever they stand: all that follows sees what fio sees.
    text = fiojob.COMMENT.sub("", text)
    known = {"CPUS": cpus, "FILE_MIB": max(LEAST_MIB, TOTAL_MIB // cpus)}
    for name, value in known.items():
        text = text.replace(f"${{{name}}}", str(value))
    check_confined(path.name, text)
    fiojob.check(path.name, text, path.parent)
    fiojob.check_buffered(path.name, text, path.parent)
    fiojob.check_globals(path.name, text)
    ownjob.check(path.name, text, stopped_after_s=None)
    _check_counted(path.name, text)
    sizes = fiojob.file_sizes(text)
    if not sizes or not all(sizes.values()):
        raise LabError(
            f"job {path.name}: a section does not say how large its files are, so they might fill the disk: "
            "expected size= with a number, such as size=1g"
        )
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._") or "job"
    return Job(name, fiojob.with_whole_latencies(text), sum(sizes.values()))


def check_confined(name: str, text: str) -> None:
    """Check that a job writes nowhere but below its working directory, and changes nothing else.

    Args:
        name: what to call the job in an error.
        text: of the job, with what it includes and without comments.

    Raises:
        LabError: naming the line.
    """
    for line in filter(None, map(str.strip, text.splitlines())):
        section, option = _SECTION.match(line), _OPTION.match(line)
        is_plain = line.replace("\t", " ").isprintable() and len(line.encode()) <= _WIDEST
        # An include that is left has fio read a file that nobody has looked at.
        if not is_plain or not (section or option) or line.startswith("include"):
            raise LabError(
                f"job {name}: {line[:99]!r} may mean something else to fio: expected [section], option, "
                f"option=value or include FILE, at most {_WIDEST} bytes; mend the line"
            )
        if option and option[1] == "ioengine" and option[2] not in fiojob.ENGINES:
            raise LabError(
                f"job {name}: {line} does something else than write files through the page cache: expected "
                f"one of {', '.join(fiojob.ENGINES)}; drop the line"
            )
        if option and option[1] in _REFUSED:
            raise LabError(
                f"job {name}: {line} reaches beyond the job's own files: expected a job without "
                f"{option[1]}; drop the line"
            )
        value = section[1] if section else (option[2] or "") if option else ""
        if "${" in value:
            raise LabError(
                f"job {name}: {line} takes a value from the environment: expected only ${{CPUS}} and "
                "${FILE_MIB}; write the value itself"
            )
        if (section and "/" in value) or not all(_is_below(part) for part in re.split(r"(?<!\\):", value)):
            raise LabError(
                f"job {name}: {line} leads out of the directory that it is given, in which it runs: "
                "expected a relative path without ..; drop the line or the path"
            )


def _check_counted(name: str, text: str) -> None:
    for section in fiojob.sections(text):
        for option in _COUNTED:
            if option in section and not _NUMBER.fullmatch(section[option]):
                raise LabError(
                    f"job {name}: section [{section['name']}] has {option}={section[option]}, which does not "
                    "tell what its files take, so they might fill the disk: expected a plain number, such as "
                    f"{option}=4 or {option}=1g"
                )


def _is_below(part: str) -> bool:
    path = PurePosixPath(part.strip().strip("\"'"))
    return not path.is_absolute() and ".." not in path.parts
