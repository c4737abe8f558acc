# SPDX-License-Identifier: GPL-2.0
"""What a result was measured with: kernels, host, time, commit, and the command that measures it again."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from lab.tree import change
from lab.tree.build import Kernel
from lab.util.paths import REPO
from lab.util.process import output


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
    return {
        "view": view,
        "command": shlex.join(["./pwb", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": {
            "cpus": len(os.sched_getaffinity(0)),
            "machine": platform.machine(),
            "kernel": platform.release(),
        },
        "change": change.identity(),
        "kernels": {
            kernel.flavour: {
                "version": kernel.version,
                "release": told.get(kernel.flavour),
                "identity": kernel.identity,
                "config_sha256": hashlib.sha256(kernel.config.read_bytes()).hexdigest(),
            }
            for kernel in kernels
        },
        "commit": output(["git", "-C", str(REPO), "rev-parse", "--verify", "--quiet", "HEAD"]),
        "changed_files": len(output(["git", "-C", str(REPO), "status", "--porcelain"]).splitlines()),
    }
