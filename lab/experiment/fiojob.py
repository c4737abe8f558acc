# SPDX-License-Identifier: GPL-2.0
"""fio job files, as fio reads them: what cannot run in the guest, their files, jobs that measure bounds."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lab.util import fionumber
from lab.util.errors import LabError

MOUNT = PurePosixPath("/mnt/test")
#: Engines that write files, through the page cache unless the job says direct=1.
ENGINES = ("io_uring", "libaio", "mmap", "posixaio", "psync", "pvsync", "pvsync2", "sync", "vsync")
_SUBMITTING = ("io_uring", "libaio", "posixaio")
#: What fio takes a comment for, wherever it stands in a line.
COMMENT = re.compile(r"[;#].*")
_INCLUDE = re.compile(r"^\s*include\s+(\S.*?)\s*$")
_CACHE_OPTION = re.compile(r"^\s*(direct|buffered)\s*(=.*)?$")
# Between the options that fio shows; where a job has it itself, something else stands in for it.
_BETWEEN = " --"
_STAND_IN = " \x1f"
# fio's values of rw that write.
_WRITING = ("write", "rw")
# Variables of a scenario's job, which has its values in the guest only.
_VARIABLES = {"RAMP_S": "1", "WINDOW_S": "1", "CPUS": "1", "FILE_MIB": "1", "FILES": "1"}


def check(name: str, text: str, folder: Path) -> None:
    """Check that fio takes the job and that it stays on the filesystem under test.

    Args:
        name: what to call the job in an error.
        text: the job file's text.
        folder: where files that the job includes are looked for.

    Raises:
        LabError: as :func:`check_taken` and :func:`check_paths`.
    """
    check_taken(name, text, folder)
    check_paths(name, text, folder)


def check_taken(name: str, text: str, folder: Path) -> None:
    """Check that fio takes the job.

    Raises:
        LabError: fio refuses it (with fio's own words), or there is no section that makes load.
    """
    body = inlined(name, text, folder)
    done = _ask_fio(body)
    if done.returncode != 0:
        words = "; ".join(line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip())
        raise LabError(f"job {name}: fio refuses it: {words}")
    if not sections(body):
        raise LabError(f"job {name}: fio finds no job in it, expected a [section] besides [global]")


def check_paths(name: str, text: str, folder: Path) -> None:
    """Check that a job that fio takes stays on the filesystem under test.

    Raises:
        LabError: a path in it lies outside.
    """
    listed = sections(inlined(name, text, folder))
    for key in ("directory", "filename", "filename_format", "opendir"):
        for part in [part for one in listed for part in _paths(one.get(key, ""))]:
            if not _on_test_filesystem(part):
                raise LabError(
                    f"job {name}: {key}={part} lies outside the filesystem under test; a job runs"
                    " with that filesystem as its working directory, so drop the line or give a relative path"
                    f" or one below {MOUNT}"
                )


def check_buffered(name: str, text: str, folder: Path) -> None:
    """Check that some section of a job writes through the page cache, if any writes.

    Raises:
        LabError: every section that writes has ``direct=1`` (or ``buffered=0``), so nothing is ever written
            back.
    """
    writing = [one for one in sections(inlined(name, text, folder)) if writes(one)]
    if writing and all(_is_direct(one) for one in writing):
        raise LabError(
            f"job {name}: every section that writes has direct=1, which goes around the page cache, so "
            "nothing is written back and contexts change nothing: expected buffered writes, drop the line"
        )


def inlined(name: str, text: str, folder: Path, depth: int = 0) -> str:
    """Return the job with the files that it includes in their places, so that it can run from any folder.

    Raises:
        LabError: an included file cannot be read.
    """
    if depth > 8:
        raise LabError(f"job {name}: include goes deeper than 8 files, expected no loop")
    lines: list[str] = []
    for line in text.splitlines():
        match = _INCLUDE.match(COMMENT.sub("", line))
        if match is None:
            lines.append(line)
            continue
        path = folder / match[1]
        try:
            lines.append(inlined(name, path.read_text(encoding="utf-8"), path.parent, depth + 1).rstrip("\n"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise LabError(
                f"job {name}: cannot read the included {path} ({why}): expected a text file, named as "
                "seen from the folder of the job"
            ) from error
    return "\n".join(lines) + "\n"


def for_the_guest(name: str, text: str, folder: Path) -> str:
    """Return the job as it runs: from any folder, and with latencies that have all of a write in them.

    Raises:
        LabError: as :func:`inlined`.
    """
    return with_whole_latencies(inlined(name, text, folder))


def with_whole_latencies(text: str) -> str:
    """Have fio count latencies from submission on, where an engine submits and does not wait.

    A buffered write is throttled within its submission, by io_submit() or io_uring_enter(), which fio counts
    apart from the time to completion.
    """
    submits = any(options.get("ioengine") in _SUBMITTING for options in sections(text))
    return f"[global]\nlat_percentiles=1\n{text}" if submits else text


def directories(text: str) -> list[str]:
    """Return the relative directories that the job expects to exist: fio makes files, not directories."""
    found: list[str] = []
    for options in sections(text):
        parents = [str(PurePosixPath(part).parent) for part in _paths(options.get("filename", ""))]
        for part in [*_paths(options.get("directory", "")), *parents]:
            path = PurePosixPath(part)
            relative = str(path.relative_to(MOUNT) if path.is_absolute() else path)
            if relative != "." and relative not in found:
                found.append(relative)
    return found


def direct(text: str) -> str:
    """Return the same job around the page cache: its own choice of buffered or direct is replaced."""
    kept = [line for line in text.splitlines() if not _CACHE_OPTION.match(line)]
    return "[global]\ndirect=1\n" + "\n".join(kept) + "\n"


def makes_files_as_it_runs(text: str) -> bool:
    """Return whether no file of the job is there before its first write."""
    return all(options.get("create_on_open", "0") == "1" for options in sections(text))


def layout_only(text: str) -> str:
    """Return the same job reduced to the making of its files."""
    return "[global]\ncreate_only=1\n" + text


def sections(text: str) -> list[dict[str, str]]:
    """Return the options of each section of a job that fio takes, with those of [global], as fio reads them.

    Each has the ``name`` of its section; an option without a value has an empty one. Of the names that fio
    has for an option there is the first.
    """
    names = {one.strip() for line in text.splitlines() if (one := heading(line)) and one != "global"}
    common: dict[str, str] = {}
    found: list[dict[str, str]] = []
    shown = _ask_fio(text.replace(_BETWEEN, _STAND_IN)).stdout.split(_BETWEEN)[1:]
    for word in shown:
        key, _, value = (part.strip() for part in word.replace(_STAND_IN, _BETWEEN).partition("="))
        if key == "name" and value in names:
            found.append(dict(common))
        options = found[-1] if found else common
        # In the order in which fio takes them.
        options.pop(key, None)
        options[key] = value
    return found


def writes(options: Mapping[str, str]) -> bool:
    """Say whether a section writes, by its options."""
    return any(word in options.get("rw", "read") for word in _WRITING)


def check_globals(name: str, text: str) -> None:
    """Check that each [global] is ahead of all sections.

    Raises:
        LabError: one is not, and fio shows its options as those of the section before it.
    """
    # To fio, [globalwrites] is one, too.
    listed = [one.startswith("global") for line in text.splitlines() if (one := heading(line))]
    if any(itertools.dropwhile(bool, listed)):
        raise LabError(
            f"job {name}: a [global] after other sections is for those behind it only: expected it at the "
            "top; write its options into the sections"
        )


def file_sizes(text: str) -> dict[str, float]:
    """Return the MiB of the files that a job makes, by what they are called.

    Several files of one section, and its ``numjobs``, count together. A file begins at 0, so that what
    ``offset`` leaves out in front counts, too. 0 where a number of bytes is missing.
    """
    found: dict[str, float] = {}
    for name, files in _files(text):
        found[name] = max(found.get(name, 0.0), files.mib)
    return found


def written_files(text: str) -> int:
    """Return how many files the sections of a job that write can have."""
    found: dict[str, int] = {}
    for name, files in _files(text):
        if files.is_written:
            found[name] = max(found.get(name, 0), files.count)
    return sum(found.values())


@dataclass(frozen=True)
class _Files:
    """Files that a section has under one name, or names that differ by numbers only."""

    count: int
    mib: float
    is_written: bool


def _files(text: str) -> list[tuple[str, _Files]]:
    return [file for options in sections(text) for file in _files_of(options)]


def _files_of(options: Mapping[str, str]) -> list[tuple[str, _Files]]:
    """Name the files of a section as fio does (its filename, directory and filename_format)."""
    jobs = fionumber.count(options, "numjobs")
    names = _paths(options.get("filename", ""))
    form = options.get("filename_format", "$jobname.$jobnum.$filenum").replace("$jobname", options["name"])
    of_each = len(names) or fionumber.count(options, "nrfiles")
    made = of_each if "$filenum" in form and not names else 1
    folders = _paths(options.get("directory", "")) or [""]
    if "$jobnum" in form and not names:
        made *= jobs
        folders = [":".join(folders)]
        # Offsets grow by the same from job to job: on average they are that of the one in the middle.
        job = (jobs - 1) / 2
    else:
        # Each job has one of them in turn, and all the first one for files that have their names.
        folders = folders[: 1 if names else jobs]
        job = jobs - 1
    one = _Files(made, made * _mib_of_file(options, of_each, job), writes(options))
    return [(str(PurePosixPath(folder) / name), one) for folder in folders for name in names or [form]]


def _mib_of_file(options: Mapping[str, str], of_each: int, job: float) -> float:
    """Return the size of a file of a job of a section, by the job's number; 0 where it cannot be told."""
    if "filesize" in options:
        # It is that of the whole file, or between which sizes it is.
        ends = [_mib(end) for end in ends_of(options["filesize"])]
        return max(end or 0.0 for end in ends) if None not in ends else 0.0
    size, offset, increment = (
        _mib(options.get(name, usual))
        for name, usual in (("size", ""), ("offset", "0"), ("offset_increment", "0"))
    )
    if not size or offset is None or increment is None:
        return 0.0
    # What jobs share they divide among their files.
    return size / of_each + offset + job * increment


def ends_of(size: str) -> list[str]:
    """Return the ends of a range of sizes, or the one size."""
    return re.split("[-:,]", size)


def _mib(text: str) -> float | None:
    """Return a size in MiB; None for what is no number of bytes, as a share of the device."""
    size = fionumber.number(text)
    return None if size is None else size / (1 << 20)


def _is_direct(options: Mapping[str, str]) -> bool:
    """Say whether a section goes around the page cache; the last option that says so counts."""
    is_direct = False
    for name, value in options.items():
        if name in ("direct", "buffered", "atomic"):
            is_set = value.lstrip("0x") != ""
            is_direct = is_set != (name == "buffered")
    return is_direct


def _ask_fio(text: str) -> subprocess.CompletedProcess[str]:
    """Have fio read a job and print its options, or what is wrong with it, and run nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "job.fio").write_text(text, encoding="utf-8")
        try:
            return subprocess.run(
                ["fio", "--parse-only", "--showcmd", "job.fio"],
                capture_output=True, text=True, timeout=60, cwd=scratch, check=False,
                env=os.environ | _VARIABLES,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise LabError("fio is not installed: install the Debian package fio") from error


def heading(line: str) -> str | None:
    """Return the name of the section that begins with a line; None: none does."""
    match = re.match(r"^\s*\[(.+)\]\s*$", COMMENT.sub("", line))
    return match[1] if match else None


def _paths(value: str) -> list[str]:
    """Return the paths of an option's value."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", value) if part]


def _on_test_filesystem(part: str) -> bool:
    if ".." in PurePosixPath(part).parts:
        return False
    return not part.startswith("/") or PurePosixPath(part).is_relative_to(MOUNT)
