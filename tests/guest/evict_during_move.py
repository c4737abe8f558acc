# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: a file is removed while its inode is on its way to another context.

``written``: its flusher has just written a part of it, and its context is out of use.
``unwritten``: its flusher hands it over, as its new blocks are for another context's to allocate.

The flusher is held between the two lists, by the test point "moving". Who evicts the inode finds it on no
list, and waits for the flusher, which must put it on none: it is freed. Standard library only.
"""

from __future__ import annotations

import sys
from multiprocessing import Process
from pathlib import Path

from tests.guest import held

MIB = 1 << 20


def hold_unwritten(path: Path) -> None:
    """Hold the flusher before it allocates blocks, which it does of its own accord over the limit only."""
    (held.BDI / "wb_affinity").write_text("fs")
    (held.VM / "dirty_background_bytes").write_text(str(MIB))
    held.arm("moving")
    with path.open("r+b", buffering=0) as file:

        def write_until_held() -> bool:
            file.write(bytes(MIB))
            return held.is_held()

        held.until(write_until_held)


def is_evicting(pid: int, path: Path) -> bool:
    """Tell whether a process has removed a name and waits for the flusher, all that it then sleeps for."""
    is_removed = not path.exists()
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    return is_removed and state == "D"


def main(way: str) -> None:
    """Hold the flusher of a file, remove the file, and let both go on."""
    # By its group it belongs to context 0, as all of this folder.
    path = held.file_in_context(1, "removed")
    held.flush_periodically(centiseconds=0)
    {"written": held.hold_between_lists, "unwritten": hold_unwritten}[way](path)
    remover = Process(target=path.unlink)
    remover.start()
    pid = remover.pid
    assert pid
    held.until(lambda: is_evicting(pid, path))
    held.release()
    remover.join()
    sys.exit(remover.exitcode)


if __name__ == "__main__":
    main(sys.argv[1])
