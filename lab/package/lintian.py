# SPDX-License-Identifier: GPL-2.0
"""What Debian's own checker says about a package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lab.util.errors import LabError
from lab.util.process import stream


def check(package: Path, accepted: Sequence[str] = ()) -> None:
    """Have lintian look at a package.

    Args:
        package: the file.
        accepted: tags that are no fault of this package.

    Raises:
        LabError: lintian is missing, or it has found something, which is named.
    """
    said: list[str] = []
    command = ["lintian", "--allow-root", "--fail-on=error,warning", "--tag-display-limit=0"]
    if accepted:
        command.append(f"--suppress-tags={','.join(accepted)}")
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    if stream([*command, str(package)], Path.cwd(), environment, said.append) != 0:
        raise LabError(
            f"lintian expects other things of {package}, which can be installed all the same; it says:\n"
            + "".join(f"  {line}" for line in said)
        )
