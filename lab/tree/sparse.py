# SPDX-License-Identifier: GPL-2.0
"""What sparse, the kernel's semantic checker, says of a built tree."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Sequence

from lab.tree.build import Kernel, build_dir, make_variables
from lab.tree.source import Source
from lab.util.errors import LabError
from lab.util.paths import cache_dir

#: What make is told. kbuild refuses a sparse that does not know this keyword of C23; and sparse 0.6.4 does
#: not know the length of a literal as a constant, which each MODULE_LICENSE() asserts. It can check the rest.
CHECK = "CHECK=sparse -D__typeof_unqual__=__typeof__ '-D__builtin_strlen(s)=(sizeof(s)-1)'"
#: What make says where the kernel's script refuses the sparse that there is; it goes on without.
NOT_RUN = "is not available or not up to date"
_WARNING = re.compile(r"^(?P<path>[^\s:]+):\d+:\d+: (?P<text>(?:warning|error): .*)$")


def warnings(kernel: Kernel, source: Source, objects: Sequence[str]) -> Counter[str]:
    """Run sparse over some objects of a kernel that has been built.

    Args:
        kernel: what has been built here from ``source``.
        source: the pristine tree.
        objects: objects by their path in the tree, such as ``mm/backing-dev.o``.

    Returns:
        Each warning as ``file: text``, without its line, and how often it came.

    Raises:
        LabError: the kernel has not been built here, or make failed.
    """
    flavour, machine = kernel.flavour, kernel.machine
    tree = build_dir(flavour, source, machine) / "tree"
    if not (tree / "obj" / ".config").exists():
        raise LabError(
            f"there is no {flavour} kernel to check: "
            f"build it first with: ./pwb build --machine {machine} {flavour}"
        )
    done = subprocess.run(
        ["make", *make_variables(machine), "C=2", CHECK, *objects],
        cwd=tree,
        env={**os.environ, "LC_ALL": "C", "CCACHE_DIR": str(cache_dir() / "ccache"), "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or NOT_RUN in done.stderr + done.stdout:
        raise LabError(f"sparse could not check the {flavour} kernel: {done.stderr.strip()[-400:]}")
    found: Counter[str] = Counter()
    for line in done.stderr.splitlines():
        if match := _WARNING.match(line):
            found[f"{match['path'].removeprefix('../')}: {match['text']}"] += 1
    return found
