# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: write attributes of a labblk device, and tell what became of each.

``attributes.py JSON``: a list of names and values. Prints one JSON object a line: name, value, the symbol of
the error or null, and what the attribute held before and after. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

CONFIGFS = Path("/sys/kernel/config/labblk")


def write(path: Path, value: str) -> str | None:
    """Write an attribute; return the symbol of the error."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    finally:
        os.close(fd)
    return None


def main(wanted: list[tuple[str, str]]) -> None:
    """Make a device, write what is wanted in this order, remove the device."""
    folder = CONFIGFS / "mine"
    folder.mkdir()
    for name, value in wanted:
        before = (folder / name).read_text().strip()
        error = write(folder / name, value)
        after = (folder / name).read_text().strip()
        print(json.dumps({"name": name, "value": value, "error": error, "before": before, "after": after}))
    folder.rmdir()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
