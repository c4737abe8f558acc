# SPDX-License-Identifier: GPL-2.0
"""The command ``./field`` of the archive: check, run, restore, pack.

Exit status: 0 done, 1 an error that a sentence on standard error names, 2 wrong usage, 128 + signal.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import sys
import tarfile
from pathlib import Path
from typing import get_args

from guest.plan import LoadError
from lab.field import job, place, record, signals
from lab.field.campaign import AUTO, QUIET_MIB_S, BusyError, Campaign, Options, alone, clean
from lab.field.place import System
from lab.field.undo import CONTEXTS, Work
from lab.util.errors import LabError

RESULTS = "results"
COMMIT = "commit"
PACKED = "pwb-field-results.tar.gz"
# Programs beside Python, and the Debian packages that have them.
_NEEDED = {"fio": "fio", "setpriv": "util-linux", "sync": "coreutils"}


def main(arguments: list[str], home: Path, system: System | None = None) -> int:
    """Run the command and return its exit status.

    Args:
        arguments: without the program's name.
        home: the unpacked archive.
        system: where the kernel shows itself; None: where it always does.
    """
    asked = _parser().parse_args(arguments)
    signals.raise_on_signals()
    try:
        return int(asked.act(asked, home, system or System()))
    except (LabError, LoadError, OSError) as error:
        print(f"field: error: {error}", file=sys.stderr)
        # What went wrong first, where putting things back went wrong, too.
        if isinstance(error.__context__, (LabError, LoadError)):
            print(f"field: error before that: {error.__context__}", file=sys.stderr)
        return 1
    except signals.Signalled as signalled:
        print("field: interrupted; the runs that had ended are kept", file=sys.stderr)
        return signalled.status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./field", description="Measure parallel writeback on this server.")
    commands = parser.add_subparsers(required=True, metavar="check|run|restore|pack")
    for name, act, what in (
        ("check", _check, "say what a run would touch; change nothing"),
        ("run", _run, "measure on the kernel that runs, and put everything back"),
    ):
        command = commands.add_parser(name, help=what, description=what)
        command.set_defaults(act=act)
        command.add_argument(
            "folder", metavar="DIR", type=Path, help="directory on the filesystem to measure"
        )
        command.add_argument("--job", type=Path, metavar="FILE.fio", help="job  [default: the one in jobs/]")
        command.add_argument(
            "--budget", type=_positive, default=30.0, metavar="MINUTES", help="[default: 30]"
        )
        command.add_argument(
            "--rounds", type=_count, default=5, metavar="N", help="at most so many  [default: 5]"
        )
        command.add_argument(
            "--contexts",
            type=_contexts,
            metavar="LIST",
            help="on the parallel kernel  [default: 1,2,4 and so on up to the CPUs, and auto]",
        )
        command.add_argument(
            "--dirty-limit-mib",
            type=_count,
            metavar="MIB",
            help="set vm.dirty_bytes, for the whole machine, during the run  [default: leave vm.dirty_*]",
        )
        command.add_argument("--output", type=Path, metavar="FOLDER", help="for results  [default: results/]")
    restore = commands.add_parser("restore", help="put back what a run that was killed has left")
    restore.set_defaults(act=_restore)
    restore.add_argument("folder", metavar="DIR", type=Path, help="directory of that run")
    pack = commands.add_parser("pack", help=f"put all results into {PACKED}")
    pack.set_defaults(act=_pack)
    pack.add_argument(
        "--output", type=Path, metavar="FOLDER", help="where the results are  [default: results/]"
    )
    return parser


def _check(asked: argparse.Namespace, home: Path, system: System) -> int:
    campaign = _prepared(asked, home, system)
    for line in _overview(campaign):
        print(line)
    try:
        with alone(system):
            is_left = Work(campaign.place, system).is_left()
    except BusyError as error:
        print(f"running       {error}")
        is_left = False
    if is_left:
        named = shlex.quote(str(asked.folder))
        print(f"left          a run was killed here; ./field restore {named} puts everything back")
    campaign.check()
    return 0


def _run(asked: argparse.Namespace, home: Path, system: System) -> int:
    campaign = _prepared(asked, home, system)
    campaign.results.mkdir(parents=True, exist_ok=True)
    for line in _overview(campaign):
        _say(line)
    print(f"{campaign.run()}: then the same on the other kernel, and ./field pack")
    return 0


def _restore(asked: argparse.Namespace, home: Path, system: System) -> int:
    where = place.find(asked.folder, system, to_write=False)
    with alone(system):
        clean(where, system, _say)
    return 0


def _pack(asked: argparse.Namespace, home: Path, system: System) -> int:
    folder = asked.output or home / RESULTS
    # Nothing else that may lie in the folder leaves the server.
    records = (path for kind in get_args(record.Kind) for path in folder.glob(f"[!.]*-{kind}.json"))
    found = sorted(path for path in records if path.is_file() and not path.is_symlink())
    if not found:
        raise LabError(f"{folder} has no results: expected those of ./field run DIR")
    path = folder / PACKED
    with record.replacing(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for one in found:
            archive.add(one, arcname=one.name, filter=_anonymous)
    print(f"{path}: for ./pwb report; it has {', '.join(one.name for one in found)}")
    return 0


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _prepared(asked: argparse.Namespace, home: Path, system: System) -> Campaign:
    """Read what the command line names, and refuse what is wrong with it."""
    for program, package in _NEEDED.items():
        if shutil.which(program) is None:
            raise LabError(
                f"{program} is missing: install it as root with: apt-get install {package} (without a "
                f"network: on another machine of the same Debian apt-get download {package} and what it "
                "depends on, and here apt-get install ./*.deb)"
            )
    where = place.find(asked.folder, system)
    # fio and what looks at a job run in other folders.
    results: Path = (asked.output or home / RESULTS).resolve()
    there = next(one for one in (results, *results.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise LabError(f"{there} cannot be written: expected a place for results; name another by --output")
    about = home / COMMIT
    return Campaign(
        place=where,
        job=job.load(asked.job or _only_job(home), os.cpu_count() or 1),
        options=Options(asked.contexts, asked.rounds, 60 * asked.budget, asked.dirty_limit_mib),
        system=system,
        results=results,
        commit=about.read_text(encoding="utf-8").strip() if about.exists() else "",
        say=_say,
    )


def _only_job(home: Path) -> Path:
    found = sorted((home / "jobs").glob("*.fio"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise LabError(f"{home / 'jobs'} has {names}: expected one job; choose one by --job")
    return found[0]


def _overview(campaign: Campaign) -> list[str]:
    """Say what a run would touch."""
    where, options, limit = campaign.place, campaign.options, campaign.dirty_limit_mib
    machine = place.machine(campaign.system)
    work = Work(where, campaign.system)
    kernel, contexts = "stock: it has no contexts", "stock"
    if where.is_parallel:
        kernel = f"parallel, nwritebacks is {(where.bdi / CONTEXTS).read_text().strip()}"
        contexts = f"contexts {', '.join(map(str, campaign.settings))}, in random order"
    now = work.settings(limits=campaign.sets_limits)
    put_back = ", ".join(f"{name} to {value}" for name, value in now.items())
    lines = [
        f"machine       {machine['cpus']} CPUs, {machine['cpu_model']}, {machine['memory_mib']} MiB",
        f"kernel        {os.uname().release}, {kernel}",
        f"directory     {where.folder}: {where.filesystem} on {where.device}, "
        f"{where.free_mib:.0f} of {where.size_mib:.0f} MiB free",
        f"drive         {where.drive}; its settings are in {where.bdi}",
        f"job           {campaign.job.name}, files of {campaign.job.files_mib:.0f} MiB, new in each run",
        f"runs          {contexts}; at most {options.rounds} rounds and {options.budget_s / 60:g} minutes, "
        f"each run at most {campaign.most_s:.0f} s, not counting layout and final sync, which have no "
        "bound",
        f"dirty limit   {limit} MiB, "
        + ("set for the whole machine" if campaign.sets_limits else "as it is"),
        f"writes to     {work.folder}, which goes at the end, and {campaign.results}",
        f"sets          {'and puts back: ' + put_back if put_back else 'nothing'}",
    ]
    if campaign.job.files_mib < 2 * limit:
        lines.append(
            "note          the files are less than twice the dirty limit: writers may never be held at it, "
            "and contexts bring nothing then; larger files, or --dirty-limit-mib 128, tell more"
        )
    others = campaign.written_by_others_mib_s()
    if others > QUIET_MIB_S:
        lines.append(
            f"note          others write {others:.0f} MiB/s to {where.device}, which is measured along"
        )
    return lines


def _say(line: str) -> None:
    print(line, flush=True)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1")
    return int(text)


def _contexts(text: str) -> list[int | str]:
    found: list[int | str] = []
    for part in text.split(","):
        if part != AUTO and not (part.isascii() and part.isdigit() and int(part)):
            raise argparse.ArgumentTypeError(
                f"{text}: expected whole numbers, or auto, with commas between them"
            )
        found.append(part if part == AUTO else int(part))
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{text}: expected each number once")
    return found
