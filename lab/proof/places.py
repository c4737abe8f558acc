# SPDX-License-Identifier: GPL-2.0
"""Where a CPU may stall: the addresses of our code in a kernel, and of what takes and releases locks."""

from __future__ import annotations

import re
from pathlib import Path

from lab.profile.symbols import Symbols
from lab.tree.hooks import load_patches
from lab.tree.source import Source
from lab.util.paths import REPO

# A function in the style of the kernel: its name on a line that is not indented, and a brace that has one.
FUNCTION = re.compile(r"^(?:\w[\w \t*]*?[ \t*])?(\w+)\([^;{}]*\n\{", re.MULTILINE)
# What takes and releases locks; lock debugging adds its own endings.
_BOUNDARY = re.compile(
    r"_raw_(spin|read|write)_(try|un)?lock(_\w+)?|mutex_(try|un)?lock(_\w+)?|(down|up)_(read|write)(_\w+)?"
    r"|percpu_(down|up)_(read|write)|__rcu_read_(un)?lock|synchronize_rcu(_expedited)?"
)


def write(path: Path, symbols: Path, source: Source) -> None:
    """Write the file of places that virtual time reads, see vtime/stalls.c.

    Args:
        path: the file.
        symbols: the kernel's System.map.
        source: what the kernel was woven from.

    Raises:
        LabError: there is no System.map.
    """
    known = Symbols(symbols)
    code = [f"code {start:x} {end:x}" for start, end in known.ranges(functions(source))]
    boundaries = [f"boundary {start:x}" for start in known.starts(_BOUNDARY)]
    path.write_text("\n".join([*code, *boundaries]) + "\n", encoding="utf-8")


def functions(source: Source) -> set[str]:
    """Return the functions of the files that the change adds, and of those that it changes.

    Without those of the lab's devices, of tests, and those that a hook adds to a file of stock: hooks are
    thin.
    """
    patches = [
        patch for patch in load_patches(REPO / "hooks", REPO / "kernel", source.series) if not patch.lab
    ]
    own = {path for patch in patches for path in patch.files.values() if "tests" not in path.parts}
    changed = {source.path / place for patch in patches for hook in patch.hooks for place in hook.places}
    files = [path for path in own if path.suffix in (".c", ".h")]
    files += [path for path in changed if path.suffix == ".c" and path.is_file()]
    return {name for path in files for name in FUNCTION.findall(path.read_text(encoding="utf-8"))}
