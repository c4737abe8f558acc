# SPDX-License-Identifier: GPL-2.0
"""A made-up kernel tree and a made-up clone, small enough to weave in a test."""

from __future__ import annotations

from pathlib import Path

MAKEFILE = "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\nNAME = Test\n"

FS_WRITEBACK = """\
#include "defs.h"

static void wake(struct device *dev)
{
	go(&dev->wb);
	go(&dev->wb);
	rest();
	go(&dev->wb);
}
"""

BACKING_DEV = """\
#include "defs.h"

void stop(struct device *dev)
{
	end(&dev->wb);
}
"""

DEFS = """\
struct device {
	int id;
	struct wb wb;	/* the only one */
};
"""

RENAME = """\
// The access goes through a function.
// places: fs/fs-writeback.c 2, mm/backing-dev.c 1
@@
struct device *dev;
@@
- &dev->wb
+ first_wb(dev)
"""

MAKE = """\
# Builds our file.
# places: mm/Makefile 1
--- a/mm/Makefile
+++ b/mm/Makefile
@@ @@
 obj-y += backing-dev.o
+obj-y += ctx.o
"""


def write_files(root: Path, files: dict[str, str]) -> Path:
    """Write files by their path below ``root``; return ``root``."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def linux_tree(root: Path) -> Path:
    """Make a tree that passes for Linux."""
    return write_files(
        root,
        {
            "Makefile": MAKEFILE,
            "fs/fs-writeback.c": FS_WRITEBACK,
            "mm/backing-dev.c": BACKING_DEV,
            "mm/Makefile": "obj-y += backing-dev.o\n",
            "include/defs.h": DEFS,
            "fs/other.c": "int other;\n",
        },
    )


def add_lab(root: Path) -> None:
    """Add a patch of the lab to a clone."""
    series = 'title = "block: lab"\nmessage = "Why."\nkernel = ["drivers/*"]\nlab = true\n'
    write_files(root, {"kernel/drivers/lab.c": "int lab;\n", "hooks/0-lab/series.toml": series})


def clone(root: Path) -> Path:
    """Make a clone's ``kernel/`` and ``hooks/`` with two systems, one patch each."""
    return write_files(
        root,
        {
            "kernel/mm/ctx.c": "int ctx;\n",
            "kernel/fs/stream.c": "int stream;\n",
            "hooks/a-contexts/series.toml": 'title = "wb: contexts"\nmessage = "Why."\nkernel = ["mm/*"]\n',
            "hooks/a-contexts/01-rename.cocci": RENAME,
            "hooks/a-contexts/02-make.diff": MAKE,
            "hooks/b-streams/series.toml": 'title = "fs: streams"\nmessage = "Why."\nkernel = ["fs/*"]\n',
            "hooks/a-contexts.txt": "wb: all\n\nA problem.\n",
            "hooks/b-streams.txt": "fs: all\n\nAnother problem.\n",
            "hooks/cover-letter.j2": "{{ system.text }}\n\nOn {{ source.version }}"
            "{% for system in before %}, {{ system.subject }}{% endfor %}\n",
        },
    )
