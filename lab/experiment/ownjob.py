# SPDX-License-Identifier: GPL-2.0
"""What is asked of a user's own fio job so that a verdict about it means something."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lab.experiment import fiojob
from lab.util import fionumber
from lab.util.errors import LabError

#: What a filesystem of our size leaves for files, at least.
ROOM = 0.9
#: fio's own, where a section names none.
_USUAL_ENGINE = "psync"
#: What makes a section begin later than the first one.
_LATER = ("stonewall", "wait_for", "startdelay")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_NCPUS = "$ncpus"


def expanded(name: str, text: str, environment: Mapping[str, str], cpus: int) -> str:
    """Replace ``${NAME}`` and ``$ncpus``, as fio does: the guest has another environment, and other CPUs.

    Args:
        name: what to call the job in an error.
        text: the job.
        environment: the variables.
        cpus: the guest's CPUs.

    Raises:
        LabError: a variable is not set, where fio takes an empty word, or ``$ncpus`` is calculated with.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise LabError(f"job {name}: ${{{found[1]}}} is not set: export {found[1]}, or write its value")
        return environment[found[1]]

    def line_of(line: str) -> str:
        # fio replaces nothing there.
        if fiojob.heading(line):
            return line
        # fio does not read what is in a comment.
        read = fiojob.COMMENT.sub("", line)
        if _NCPUS in read and re.search("[-+*/]", read):
            raise LabError(
                f"job {name}: {read.strip()} calculates with the number of CPUs: expected {_NCPUS} alone; "
                f"write what comes out for the guest's {cpus}"
            )
        return _VARIABLE.sub(value, read).replace(_NCPUS, str(cpus)) + line[len(read) :]

    return "\n".join(map(line_of, text.split("\n")))


def check(name: str, text: str, *, stopped_after_s: float | None) -> None:
    """Check that a job writes through the page cache, and all of it at once where it is stopped soon.

    Args:
        name: what to call the job in an error.
        text: the job with what it includes, which fio takes.
        stopped_after_s: seconds after its first write that it is stopped; None: it runs to its end.

    Raises:
        LabError: no section writes, one that does has another engine, or phases follow each other although
            the job is stopped soon.
    """
    sections = fiojob.sections(text)
    writing = [one for one in sections if fiojob.writes(one)]
    if not writing:
        raise LabError(
            f"job {name}: no section writes (fio reads where rw= is missing): expected rw=write, randwrite, "
            "rw or randrw"
        )
    for one in writing:
        engine = one.get("ioengine", _USUAL_ENGINE)
        if engine not in fiojob.ENGINES:
            raise LabError(
                f"job {name}: section [{one['name']}] has ioengine={engine}, which does not write files "
                f"through the page cache: expected one of {', '.join(fiojob.ENGINES)}"
            )
    for one in sections:
        if one.get("unified_rw_reporting", "none") not in ("none", "0"):
            raise LabError(
                f"job {name}: section [{one['name']}] has unified_rw_reporting, with which fio tells no "
                "latency of writes: drop the line"
            )
    if stopped_after_s is not None:
        _check_begins_at_once(name, sections, stopped_after_s)


def check_sizes(name: str, text: str) -> None:
    """Check that each section that has files says how large they are: none is there before the job.

    Args:
        name: what to call the job in an error.
        text: the job with what it includes, which fio takes.

    Raises:
        LabError: one does not: fio would fail in the guest, or read another number.
    """
    for one in fiojob.sections(text):
        if one.get("ioengine", _USUAL_ENGINE) in fiojob.ENGINES and not _is_sized(one):
            given = [f"{option}={one[option]}" for option in ("size", "filesize") if option in one]
            raise LabError(
                f"job {name}: section [{one['name']}] has {' and '.join(given) or 'no size='}, from which "
                "fio cannot tell how large to make its files: expected a whole number with a unit, such as "
                "size=7680m; write one"
            )


def _is_sized(options: Mapping[str, str]) -> bool:
    """Say whether fio can tell from a section how large files are that are not there yet."""
    size = options.get("size", "")
    if "filesize" in options:
        # With it size may be missing, or a share of it.
        needed = fiojob.ends_of(options["filesize"]) + ([] if re.fullmatch(r"|\d+%", size) else [size])
        return all(map(fionumber.number, needed))
    # Without any they may grow until the device is full.
    return bool(fionumber.number(size or options.get("fill_device", "0")))


def check_room(name: str, text: str, device_mib: int) -> None:
    """Check that a job's files fit on the device, as far as it gives their sizes.

    Args:
        name: what to call the job in an error.
        text: the job with what it includes, which fio takes.
        device_mib: size of the device.

    Raises:
        LabError: they do not, or leave less than a tenth for the filesystem.
    """
    needed = sum(fiojob.file_sizes(text).values())
    if needed > ROOM * device_mib:
        raise LabError(
            f"job {name}: its files take {needed:.0f} MiB, and the device has {device_mib}: expected at most "
            f"{ROOM * device_mib:.0f} MiB; lower size= or offset= in the job, or raise --memory, of which "
            "the device gets five eighths"
        )


def _check_begins_at_once(name: str, sections: Sequence[Mapping[str, str]], stopped_after_s: float) -> None:
    stopped = (
        f"on the machine smp the job is stopped {stopped_after_s:.1f} s of the guest after its first write"
    )
    for number, one in enumerate(sections):
        # Nothing precedes the first section that it could wait for.
        for option in _LATER if number else ("startdelay",):
            if one.get(option, "0") not in ("0", "0s"):
                raise LabError(
                    f"job {name}: section [{one['name']}] has {option}, but {stopped}: expected all sections "
                    "to write from the start; drop the line, or add --machine uml"
                )
        if one.get("ramp_time", "0") not in ("0", "0s"):
            raise LabError(
                f"job {name}: section [{one['name']}] has ramp_time, in which fio keeps no latencies, but "
                f"{stopped}: drop the line, as figures leave a ramp out by themselves, or add --machine uml"
            )
