# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: cgroups come, write files that others write too, and go, while contexts change.

``python -m tests.guest.cgroups FS ROUNDS`` from the repository's folder, on the raw device $PWB_DEV. Standard
library only.

Each page of a file belongs to one cgroup, so all of them dirty every inode, which then goes from one to the
other, and to the root when its cgroup is removed. At the end every byte is compared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from multiprocessing import Process

from tests.guest.lab_device import MOUNT, fail, flush
from tests.guest.resize import CGROUPS, MAKE, Load, finish, start
from tests.guest.versioned import File, together

GROUPS = 4
FILES = 12
PAGES = 16
# So that an inode's owner is not always the first to write it.
PAUSE_S = 0.002
FLUSHING = {"dirty_writeback_centisecs": 1, "dirty_expire_centisecs": 2, "dirty_background_bytes": 1 << 19}


def write(files: list[File], number: int) -> None:
    """Join a cgroup, and write its pages of every file."""
    (CGROUPS / f"group{number}" / "cgroup.procs").write_text("0")
    for turn in range(FILES):
        file = files[(turn + number * FILES // GROUPS) % FILES]
        with file.open() as fd:
            for page in range(number, PAGES, GROUPS):
                file.write(fd, page)
            if turn == number:
                os.fsync(fd)
        time.sleep(PAUSE_S)


def come_and_go(files: list[File], number: int, rounds: int) -> None:
    """Make a cgroup, let a process in it write, and remove it while what it wrote is dirty, several times."""
    group = CGROUPS / f"group{number}"
    for _ in range(rounds):
        group.mkdir()
        finish([start(write, files, number)])
        group.rmdir()


def main(filesystem: str, rounds: int) -> None:
    """Load, and compare at the end."""
    flush(FLUSHING)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory +io")
    device = os.environ["PWB_DEV"]
    subprocess.run([*MAKE[filesystem], device], check=True)
    MOUNT.mkdir(exist_ok=True)
    mount = ["mount", "-t", filesystem, device, str(MOUNT)]
    subprocess.run(mount, check=True)
    files = [File(number, PAGES) for number in range(FILES)]
    together(File.write_all, files)
    resizer = start(Load(filesystem).resize)
    groups = [Process(target=come_and_go, args=(files, number, rounds)) for number in range(GROUPS)]
    for process in groups:
        process.start()
    while any(process.is_alive() for process in groups):
        os.sync()
    finish(groups)
    if not resizer.is_alive():
        fail("the number of contexts could not be changed, see above")
    subprocess.run(["umount", str(MOUNT)], check=True)
    subprocess.run(mount, check=True)
    for file in files:
        file.compare()
    resizer.kill()
    resizer.join()
    subprocess.run(["umount", str(MOUNT)], check=True)
    print("cgroups: every byte is as written")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
