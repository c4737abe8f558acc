# SPDX-License-Identifier: GPL-2.0
"""A made-up server for ``./field``: sysfs and proc, a directory to measure in, a fio that only counts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lab.field import campaign, command, trial
from lab.field.place import System

FIXTURE = Path(__file__).parent / "unit" / "fixtures" / "fio-group.json"
SERIAL = "S3R1AL"
JOB = "[global]\nrw=randwrite\nsize=1m\n[writer]\nnumjobs=${CPUS}\n"
MIB_S = 100
# Writes MIB_S for each context, as the counters of the device say. It lasts where there is a file "slow", and
# does not end when it is asked to where there is one "stubborn".
FIO = """#!/usr/bin/python3 -I
import os, signal, sys, threading, time
from pathlib import Path

root = Path({root!r})
asked = sys.argv[-1]
if asked == "--version":
    print("fio-3.33")
    sys.exit()
if "--parse-only" in sys.argv or "--showcmd" in sys.argv:
    os.execv("/usr/bin/fio", ["fio", *sys.argv[1:]])
[output] = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--output=")]
text = Path(asked).read_text()
if "create_only=1" in text:
    Path("data").write_bytes(bytes(4096))
    Path(output).write_text("{{}}")
    sys.exit()
if (root / "fails").exists():
    print("fio: no luck")
    sys.exit(1)
def end(*_):
    Path(output).write_text(Path({fixture!r}).read_text())
    sys.exit(128)


signal.signal(signal.SIGINT, end)
if (root / "stubborn").exists():
    signal.signal(signal.SIGTERM, lambda *_: (root / "asked").write_text(""))
# Whoever waits for this may ask it to end at once, and reads it: it comes whole.
(root / "fio.pid.new").write_text(str(os.getpid()))
(root / "fio.pid.new").rename(root / "fio.pid")
# As fio's that tells progress, while its jobs run.
threading.Thread(target=threading.Event().wait, daemon=True).start()
knob = root / "sys" / "class" / "bdi" / "259:0" / "nwritebacks"
contexts = knob.read_text() if knob.exists() else "1"
number = int(contexts) if contexts.isdigit() else 3
counters = root / "sys" / "devices" / "nvme0n1" / "nvme0n1p1" / "stat"
fd = os.open(counters, os.O_RDWR)
for step in range(6000 if (root / "slow").exists() else 6):
    time.sleep(0.01)
    sectors = int(os.pread(fd, 100, 0).split()[6]) + number * {mib_s} * 2048 // 100
    # In one piece: somebody reads all the while.
    os.pwrite(fd, b"0 0 0 0 0 0 %012d 0" % sectors, 0)
Path(output).write_text(Path({fixture!r}).read_text())
"""


class Server:
    """What a test changes and looks at.

    Attributes:
        root: of all of it.
        data: the directory to measure in, on a partition with XFS.
        home: the unpacked archive.
        system: where its kernel shows itself.
    """

    def __init__(self, root: Path, *, parallel: bool) -> None:
        """Set it up, with a stock kernel or a parallel one."""
        self.root, self.data, self.home = root, root / "data", root / "home"
        self.system = System(root / "sys", root / "proc")
        self.bdi = self.system.sys / "class" / "bdi" / "259:0"
        self.data.mkdir()
        (self.data / "own").write_text("of the server's user")
        write(self.home / "jobs" / "job.fio", JOB)
        self._make_sysfs()
        self._make_proc()
        fio = FIO.format(root=str(root), fixture=str(FIXTURE), mib_s=MIB_S)
        # Of the filesystem that tests share with others, nothing is synced.
        for name, text in (("fio", fio), ("sync", "#!/bin/sh\n")):
            write(root / "bin" / name, text).chmod(0o755)
        if parallel:
            self.boot_parallel()

    def boot_parallel(self) -> None:
        """Have another kernel run, with contexts."""
        write(self.bdi / "nwritebacks", "auto (3)\n")
        write(self.bdi / "wb_affinity", "[fs] ino rotor least-loaded\n")
        self.boot_again()

    def boot_again(self) -> None:
        """Have the kernel run anew."""
        boot = self.system.proc / "sys" / "kernel" / "random" / "boot_id"
        write(boot, f"{boot.read_text() if boot.exists() else ''}again\n")

    def field(self, *arguments: str) -> int:
        """Run ``./field`` and return its status; the options that wait are short."""
        return command.main([*arguments], self.home, self.system)

    def settings(self) -> dict[str, str]:
        """Return all that a run may set."""
        files = [self.bdi / "nwritebacks", *sorted(self.system.vm.iterdir())]
        return {path.name: path.read_text().strip() for path in files if path.exists()}

    def tree(self) -> dict[str, str]:
        """Return every file and what is in it, without what fio and the results change."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        left_out = (self.home / "results", self.root / "fio.pid", self.root / "slow")
        return {
            str(path): path.read_text()
            for path in files
            if path.name != "stat" and not any(path.is_relative_to(one) for one in left_out)
        }

    def records(self) -> dict[str, dict[str, object]]:
        """Return what was recorded, by file name."""
        found = sorted((self.home / "results").glob("*.json"))
        return {path.name: json.loads(path.read_text()) for path in found}

    def _make_sysfs(self) -> None:
        disk = self.system.sys / "devices" / "nvme0n1"
        write(disk / "dev", "259:0\n")
        write(disk / "queue" / "iostats", "1\n")
        write(disk / "device" / "model", "Fast Drive  1TB   \n")
        write(disk / "device" / "serial", f"{SERIAL}\n")
        write(disk / "nvme0n1p1" / "partition", "1\n")
        write(disk / "nvme0n1p1" / "stat", f"0 0 0 0 0 0 {0:012} 0")
        write(self.bdi / "read_ahead_kb", "128\n")
        write(self.system.sys / "devices" / "system" / "cpu" / "possible", "0-2,5\n")
        number = self.data.stat().st_dev
        node = self.system.sys / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
        node.parent.mkdir(parents=True)
        node.symlink_to(disk / "nvme0n1p1")

    def _make_proc(self) -> None:
        proc = self.system.proc
        mounts = (
            f"1 0 8:1 / / rw - tmpfs none rw\n2 1 259:1 / {self.data} rw shared:1 - xfs /dev/nvme0n1p1 rw\n"
        )
        write(proc / "self" / "mountinfo", mounts)
        write(proc / "cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\n")
        write(proc / "meminfo", "MemTotal:       8388608 kB\n")
        write(proc / "vmstat", "nr_dirty 5\nnr_writeback 1\npgpgout 0\nnr_dirty_threshold 25600\n")
        write(proc / "stat", "cpu  0 0 0 300 0 0 0 0 0 0\n")
        write(proc / "7" / "comm", "kworker/u9:2+flush-259:0\n")
        write(proc / "7" / "schedstat", "500 0 0\n")
        limits = {"dirty_bytes": 2 << 20, "dirty_ratio": 0, "dirty_background_bytes": 1 << 20}
        limits |= {"dirty_background_ratio": 0, "dirty_expire_centisecs": 3000}
        for name, value in limits.items():
            write(self.system.vm / name, f"{value}\n")
        self.boot_again()


def hurry() -> None:
    """Have ``./field`` of this process wait no longer than the made-up fio needs, on a machine of 4 CPUs."""
    os.cpu_count = lambda: 4
    # Half of 100 TiB is free, however full the host is.
    room: Any = SimpleNamespace(f_flag=0, f_frsize=1 << 20, f_blocks=100 << 20, f_bavail=50 << 20)
    setattr(os, "statvfs", lambda _: room)  # noqa: B010
    trial.SAMPLE_S, trial.SETTLE_S, campaign.LOOK_S, campaign.LEAST_S = 0.01, 0.0, 0.01, 0.0


def write(path: Path, text: str) -> Path:
    """Write a file, with the folders that it lies in, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
