# SPDX-License-Identifier: GPL-2.0
"""What a result was measured with: kernels, host, time, commit, and the command that measures it again."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter

from lab.tree import change
from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.process import output

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    _Row = TypeVar("_Row", bound=DataclassInstance)

SUMMARY, META, TABLE = "summary.json", "meta.json", "table.md"
# Between commands that have each measured some rows of a result.
_THEN = " && "


def collect(
    view: str | None, kernels: Iterable[Kernel], releases: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what every ``meta.json`` has.

    Args:
        view: name of what makes a table of the result (:data:`lab.docs.measurements.VIEWS`); None: nothing.
        kernels: those that were booted.
        releases: ``uname -r`` of those that told it, by flavour.
    """
    told = releases or {}
    listed = list(kernels)
    are_mixed = len({kernel.machine for kernel in listed}) > 1
    return {
        "view": view,
        "command": _command(sys.argv[1:]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": {
            "cpus": len(os.sched_getaffinity(0)),
            "machine": platform.machine(),
            "kernel": platform.release(),
        },
        "change": _change(listed),
        "kernels": {
            f"{kernel.machine} {kernel.flavour}" if are_mixed else kernel.flavour: {
                "version": kernel.version,
                "release": told.get(kernel.flavour),
                "identity": kernel.identity,
                "config_sha256": hashlib.sha256(kernel.config.read_bytes()).hexdigest(),
            }
            for kernel in listed
        },
        "commit": change.commit(),
        "changed_files": len(output(["git", "-C", str(REPO), "status", "--porcelain"]).splitlines()),
    }


def _command(arguments: Sequence[str]) -> str:
    """Return the command line without where its result went, which is a path of this machine."""
    said = shlex.join(["./pwb", *arguments])
    return re.sub(r" --output[ =]\S+", "", said)


def _change(kernels: Iterable[Kernel]) -> str | None:
    """Return the change that kernels were built of, the clone's if there are none; None if they differ."""
    changes = {kernel.change for kernel in kernels} or {change.identity()}
    return changes.pop() if len(changes) == 1 else None


def write(
    folder: Path,
    view: str,
    rows: Iterable[object],
    kernels: Iterable[Kernel],
    *,
    table: str,
    has_earlier: bool = False,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a result: summary.json, meta.json and table.md.

    Args:
        folder: where to write, made if missing.
        view: name of what makes the table again, as for :func:`collect`.
        rows: of all runs, as JSON takes them.
        kernels: those that were booted.
        table: the table.
        has_earlier: whether there are rows among them that :func:`earlier_rows` returned; the commands that
            measured those are named then, too.
        about: what ``meta.json`` has beside what :func:`collect` returns, or in place of it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    meta = collect(view, kernels) | dict(about or {})
    if has_earlier:
        earlier = json.loads((folder / META).read_text(encoding="utf-8"))
        # Code that adds rows without a command line, as in a shell of Python, has none to name.
        added = [meta["command"]] if sys.argv[1:] else []
        meta["command"] = _THEN.join(dict.fromkeys([*earlier["command"].split(_THEN), *added]))
        meta["kernels"] = earlier.get("kernels", {}) | meta["kernels"]
    lines = ",\n".join(json.dumps(row) for row in rows)
    (folder / SUMMARY).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    (folder / META).write_text(json.dumps(meta, indent=1) + "\n", encoding="utf-8")
    (folder / TABLE).write_text(table, encoding="utf-8")


def earlier_rows(folder: Path, kernels: Iterable[Kernel]) -> list[Any]:
    """Return the rows of a result that is to be added to; none if it is of another change or Linux."""
    try:
        about = json.loads((folder / META).read_text(encoding="utf-8"))
        rows: list[Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    built = list(kernels)
    change = _change(built)
    is_of_it = change is not None and about["change"] == change
    versions = {one["version"] for one in about.get("kernels", {}).values()}
    return rows if is_of_it and versions <= ({kernel.version for kernel in built} or versions) else []


def add(
    folder: Path,
    view: str,
    found: Sequence[_Row],
    *,
    key: Callable[[_Row], Any],
    kernels: Iterable[Kernel],
    table: Callable[[Sequence[_Row]], str],
) -> None:
    """Add rows to a result; one replaces an earlier row of the same key.

    Args:
        folder: of the result; what it has of another change is left behind.
        view: as for :func:`collect`.
        found: at least one row, each a dataclass.
        key: what tells rows apart, and orders them.
        kernels: those that were booted.
        table: makes the table of all rows.
    """
    kind = TypeAdapter(type(found[0]))
    built = list(kernels)
    before = [kind.validate_python(row) for row in earlier_rows(folder, built)]
    every = {key(one): one for one in [*before, *found]}
    ordered = [every[name] for name in sorted(every)]
    has_earlier = len(ordered) > len(found)
    rows = [asdict(one) for one in ordered]
    write(folder, view, rows, built, table=table(ordered), has_earlier=has_earlier)
