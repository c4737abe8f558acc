# SPDX-License-Identifier: GPL-2.0
"""fio job files: refuse what cannot run in the guest, and derive the job that measures a bound."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

from lab.util.errors import LabError

MOUNT = PurePosixPath("/mnt/test")
#: Engines that write files, through the page cache unless the job says direct=1.
ENGINES = ("io_uring", "libaio", "mmap", "posixaio", "psync", "pvsync", "pvsync2", "sync", "vsync")
# What a filesystem of our size leaves for files, at least.
ROOM = 0.9
_SETTING = re.compile(r"^\s*(\w+)\s*=\s*(.*?)\s*$")
_INCLUDE = re.compile(r"^\s*include\s+(\S.*?)\s*$")
_CACHE_OPTION = re.compile(r"^\s*(direct|buffered|odirect)\s*(=.*)?$")


def check(name: str, text: str, folder: Path) -> None:
    """Check that fio takes the job and that it stays on the filesystem under test.

    Args:
        name: what to call the job in an error.
        text: the job file's text.
        folder: where files that the job includes are looked for.

    Raises:
        LabError: fio refuses the job (with fio's own words), there is no section that makes load, or a path
            in it lies outside the filesystem under test.
    """
    _run_parser(name, text, folder)
    body = inlined(name, text, folder)
    if not any(_section(line) not in (None, "global") for line in body.splitlines()):
        raise LabError(f"job {name}: fio finds no job in it, expected a [section] besides [global]")
    for key, value in _settings(body):
        if key not in ("directory", "filename", "filename_format", "opendir"):
            continue
        for part in re.split(r"(?<!\\):", value):
            if not _on_test_filesystem(part):
                raise LabError(
                    f"job {name}: {key}={part} lies outside the filesystem under test; a job runs"
                    " with that filesystem as its working directory, so drop the line or give a relative path"
                    f" or one below {MOUNT}"
                )


def check_buffered(name: str, text: str, folder: Path) -> None:
    """Check that some section of a job goes through the page cache.

    Raises:
        LabError: every section has ``direct=1`` (or ``buffered=0``), so nothing is ever written back.
    """
    default, sections = False, []
    for line in inlined(name, text, folder).splitlines():
        section = _section(line)
        if section not in (None, "global"):
            sections.append(default)
        found = _CACHE_OPTION.match(line)
        if found:
            is_set = (found[2] or "=1").lstrip("= ").strip() not in ("0", "false")
            is_direct = is_set != (found[1] == "buffered")
            if sections:
                sections[-1] = is_direct
            else:
                default = is_direct
    if sections and all(sections):
        raise LabError(
            f"job {name}: every section has direct=1, which goes around the page cache, so nothing is "
            "written back and contexts change nothing: expected buffered writes, drop the line"
        )


def check_room(name: str, text: str, folder: Path, device_mib: int) -> None:
    """Check that the job's files fit on the device, as far as it gives their sizes.

    Raises:
        LabError: they do not, or leave less than a tenth for the filesystem.
    """
    needed = sum(file_sizes(inlined(name, text, folder)).values())
    if needed > ROOM * device_mib:
        most = f"{ROOM * device_mib:.0f} MiB"
        raise LabError(
            f"job {name}: its files take {needed:.0f} MiB, and the device has {device_mib}: expected at most "
            f"{most}; lower size= in the job, or raise --memory, of which the device gets five eighths"
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
        match = _INCLUDE.match(line)
        if match is None:
            lines.append(line)
            continue
        path = folder / match[1]
        try:
            lines.append(inlined(name, path.read_text(encoding="utf-8"), path.parent, depth + 1).rstrip("\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise LabError(f"job {name}: cannot read the included {path}: {error}") from error
    return "\n".join(lines) + "\n"


def directories(text: str) -> list[str]:
    """Return the relative directories that the job expects to exist: fio makes files, not directories."""
    found: list[str] = []
    for key, value in _settings(text):
        parts = re.split(r"(?<!\\):", value)
        if key == "filename":
            parts = [str(PurePosixPath(part).parent) for part in parts]
        elif key != "directory":
            continue
        for part in parts:
            path = PurePosixPath(part)
            relative = str(path.relative_to(MOUNT) if path.is_absolute() else path)
            if relative != "." and relative not in found:
                found.append(relative)
    return found


def direct(text: str) -> str:
    """Return the same job around the page cache: its own choice of buffered or direct is replaced."""
    kept = [line for line in text.splitlines() if not _CACHE_OPTION.match(line)]
    return "[global]\ndirect=1\n" + "\n".join(kept) + "\n"


def layout_only(text: str) -> str:
    """Return the same job reduced to the making of its files."""
    return "[global]\ncreate_only=1\n" + text


def sections(text: str) -> list[dict[str, str]]:
    """Return the options of each section of a job, with those of [global], as fio reads them.

    Each has the ``name`` of its section; an option without a value has an empty one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "job.fio"
        copy.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["fio", "--showcmd", str(copy)], capture_output=True, text=True, check=False, cwd=scratch
        )
    names = {one.strip() for line in text.splitlines() if (one := _section(line)) and one != "global"}
    common: dict[str, str] = {}
    found: list[dict[str, str]] = []
    # The name of a section may have blanks in it.
    for word in re.split(r"\s+--", done.stdout.strip())[1:]:
        key, _, value = word.partition("=")
        if key == "name" and value in names:
            found.append(dict(common))
        (found[-1] if found else common)[key] = value
    return found


def check_globals(name: str, text: str) -> None:
    """Check that there is one [global] at most, ahead of all sections.

    Raises:
        LabError: there is another one, whose options fio shows as those of the section before it.
    """
    listed = [one for line in text.splitlines() if (one := _section(line))]
    if "global" in listed[1:]:
        raise LabError(
            f"job {name}: a [global] after other sections is for those behind it only: expected one, at the "
            "top; write its options into the sections"
        )


def file_sizes(text: str) -> dict[str, float]:
    """Return the MiB of the files that a job makes, by its sections as fio reads them.

    Several files of one section, and its ``numjobs``, count together; 0 where it gives no number of bytes.
    """
    sizes: dict[str, float] = {}
    for number, options in enumerate(sections(text)):
        size, shared = _mib(options.get("size", "")), options.get("filename")
        if "filesize" in options:
            # It is that of each file; size is what they share.
            files = len(re.split(r"(?<!\\):", shared)) if shared else _number(options.get("nrfiles", "1"))
            size = _mib(options["filesize"]) * files
        file = f"{options.get('directory', '')}/{shared or number}"
        sizes[file] = max(
            sizes.get(file, 0.0), size * (1 if shared else _number(options.get("numjobs", "1")))
        )
    return sizes


def most_files(text: str) -> int:
    """Return how many files a job can have, by its sections as fio reads them."""
    shared: set[str] = set()
    own = 0.0
    for options in sections(text):
        if "filename" in options:
            folder = options.get("directory", "")
            shared |= {f"{folder}/{one}" for one in re.split(r"(?<!\\):", options["filename"])}
        else:
            own += _number(options.get("nrfiles", "1")) * _number(options.get("numjobs", "1"))
    return len(shared) + round(own)


def _number(text: str) -> float:
    return _mib(text) * (1 << 20)


def _mib(text: str) -> float:
    """Read a size as fio writes it; what is no number of bytes, as a share of the device, counts nothing."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.lower())
    if not found:
        return 0.0
    return float(found[1]) * 1024.0 ** ("kmgt".find(found[2]) + 1 if found[2] else 0) / (1 << 20)


def _run_parser(name: str, text: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "job.fio"
        copy.write_text(inlined(name, text, folder), encoding="utf-8")
        try:
            done = subprocess.run(
                ["fio", "--parse-only", str(copy)],
                capture_output=True, text=True, timeout=60, cwd=scratch, check=False,
                env=os.environ | {"RAMP_S": "1", "WINDOW_S": "1", "CPUS": "1", "FILE_MIB": "1"},
            )  # fmt: skip
        except FileNotFoundError as error:
            raise LabError("fio is not installed: install the Debian package fio") from error
    if done.returncode != 0:
        words = "; ".join(line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip())
        raise LabError(f"job {name}: fio refuses it: {words.replace(str(copy), name)}")


def _section(line: str) -> str | None:
    match = re.match(r"^\s*\[(.+)\]\s*$", re.sub("[;#].*", "", line))
    return match[1] if match else None


def _settings(text: str) -> list[tuple[str, str]]:
    found = [match for match in map(_SETTING.match, text.splitlines()) if match]
    return [(match[1], match[2]) for match in found]


def _on_test_filesystem(part: str) -> bool:
    if ".." in PurePosixPath(part).parts:
        return False
    return not part.startswith("/") or PurePosixPath(part).is_relative_to(MOUNT)
