# SPDX-License-Identifier: GPL-2.0
"""A Debian server in QEMU: systemd and GRUB on one NVMe drive, and a second drive for data.

Its disk is made from Debian's packages by mmdebstrap, as any user. GRUB is put on it by the first boot, whose
kernel QEMU loads; from then on the server starts as hardware does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pexpect

from lab.machine import qemu
from lab.machine.hardware import QEMU_MIB
from lab.machine.server_console import Line, Server
from lab.util import host
from lab.util.apt import reachable
from lab.util.errors import LabError
from lab.util.process import stream

SUITE = "trixie"
PACKAGES = (
    *("systemd-sysv", "udev", "dbus", "linux-image-cloud-amd64", "initramfs-tools", "grub-pc"),
    *("fio", "python3", "xfsprogs", "e2fsprogs", "kmod", "login"),
)
CPUS = 4
# On a busy host QEMU's HPET can be due again and again: the kernel that starts it never gets further.
MACHINE = "q35,hpet=off"
# With more, some is above 4 GiB: the firmware puts the drives' registers there, too, and cannot read them.
MEMORY_MIB = 2048
DISK_MIB = 6144
DATA_MIB = 2048
#: Name of a drive, but for its number from 0.
BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_drive"

_FILES = {
    "etc/fstab": "LABEL=root / ext4 errors=remount-ro 0 1\n",
    "etc/hostname": "server\n",
    "etc/default/grub.d/serial.cfg": (
        'GRUB_TIMEOUT=1\nGRUB_TERMINAL=serial\nGRUB_SERIAL_COMMAND="serial --speed=115200"\n'
        'GRUB_CMDLINE_LINUX="console=ttyS0"\n'
    ),
    "etc/systemd/system/serial-getty@ttyS0.service.d/autologin.conf": (
        "[Service]\nExecStart=\nExecStart=-/sbin/agetty --autologin root --noclear %I dumb\n"
    ),
}
_BEFORE_PARTITION_KIB = 1024
_ROOM_BYTES = 6 << 30
_UNPACK = """
tar -C "$1" -xf "$2" --exclude="./dev/*"
mke2fs -q -t ext4 -L root -d "$1" -E offset=$3 "$4" $5
cp "$1"/boot/vmlinuz-* vmlinuz
cp "$1"/boot/initrd.img-* initrd
rm -rf "$1"
"""


@dataclass(frozen=True)
class Disk:
    """What a server starts from.

    Attributes:
        image: the whole drive.
        kernel: Debian's, to start it where it has no boot loader yet.
        initrd: that kernel's.
    """

    image: Path
    kernel: Path
    initrd: Path


def make(folder: Path) -> Disk:
    """Make a drive with Debian and GRUB.

    Args:
        folder: an empty folder for it.

    Raises:
        LabError: this computer lacks something, no Debian mirror can be reached, or a step failed.
    """
    host.check(host.Need(disk_bytes=_ROOM_BYTES, memory_bytes=(MEMORY_MIB + QEMU_MIB) << 20))
    lists, overlay, tree = (folder / name for name in ("apt", "overlay", "root"))
    lists.mkdir()
    tree.mkdir()
    for name, text in _FILES.items():
        path = overlay / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    archive, image = folder / "root.tar", folder / "disk"
    _run(
        *("mmdebstrap", "--quiet", "--mode=unshare", "--variant=apt", f"--include={','.join(PACKAGES)}"),
        *('--aptopt=Apt::Install-Recommends "false"', f"--customize-hook=sync-in {overlay} /"),
        *(SUITE, archive, reachable(lists, [SUITE], "Debian", "try again").source(SUITE)),
        folder=folder,
    )
    _run("truncate", "-s", f"{DISK_MIB}M", image, folder=folder)
    room = f"{DISK_MIB * 1024 - _BEFORE_PARTITION_KIB}K"
    offset = str(_BEFORE_PARTITION_KIB * 1024)
    _run("fakeroot", "sh", "-ec", _UNPACK, "sh", tree, archive, offset, image, room, folder=folder)
    _run("/sbin/sfdisk", "-q", image, folder=folder, typed=f"{_BEFORE_PARTITION_KIB * 2},,83,*\n")
    archive.unlink()
    disk = Disk(image, folder / "vmlinuz", folder / "initrd")
    with started(disk, folder / "console.txt", has_grub=False) as server:
        server.run(f"grub-install {BY_ID}0")
        server.run("update-grub")
    return disk


def check(disk: Disk) -> None:
    """Check the filesystem of a server that was shut down; nothing in it is mended.

    A check at boot only looks whether it was unmounted.

    Raises:
        LabError: it has errors, which are named.
    """
    offset = _BEFORE_PARTITION_KIB * 1024
    _run("/sbin/e2fsck", "-f", "-n", f"{disk.image}?offset={offset}", folder=disk.image.parent)


def _run(*command: str | Path, folder: Path, typed: str | None = None) -> None:
    said: list[str] = []
    if typed is None:
        # mmdebstrap removes what it has made, files of other users too, if it is asked to end.
        status = stream([*map(str, command)], folder, os.environ, said.append)
    else:
        done = subprocess.run(
            command,
            cwd=folder,
            input=typed,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        status, said = done.returncode, [done.stdout]
    if status != 0:
        raise LabError(f"{command[0]} failed with status {status}: {''.join(said).strip()}")


@contextmanager
def started(
    disk: Disk,
    log: Path,
    *folders: Path,
    has_grub: bool = True,
    show: Callable[[Line], None] = lambda line: None,
) -> Iterator[Server]:
    """Start a server, and shut it down at the end.

    Args:
        disk: its first drive; what happens there stays. The kernel numbers drives as it finds them, so
            they are known by :data:`BY_ID`.
        log: file for all that its console shows.
        folders: what the drives after the second have on them, each as an ext4 filesystem.
        has_grub: whether the disk has it.
        show: called with each line of the session.

    Raises:
        LabError: it does not start, or does not shut down.
    """
    data = disk.image.with_suffix(".data")
    _run("truncate", "-s", f"{DATA_MIB}M", data, folder=disk.image.parent)
    images = [disk.image, data]
    for number, folder in enumerate(folders):
        image = disk.image.with_suffix(f".{number}")
        _run("mke2fs", "-q", "-t", "ext4", "-d", folder, image, "1G", folder=disk.image.parent)
        images.append(image)
    drives = []
    for number, image in enumerate(images):
        drives += ["-drive", f"file={image},if=none,id=drive{number},format=raw,cache=unsafe"]
        name = f"drive=drive{number},serial=drive{number},bootindex={number + 1}"
        drives += ["-device", f"nvme,{name},max_ioqpairs={CPUS}"]
    direct = ["-kernel", disk.kernel, "-initrd", disk.initrd, "-append", "root=LABEL=root rw console=ttyS0"]
    command = [
        *qemu.find().command(),
        *("-accel", "tcg,thread=multi,tb-size=512", "-machine", MACHINE, "-cpu", "max", "-smp", str(CPUS)),
        *("-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-serial", "stdio"),
        *drives,
        *([] if has_grub else map(str, direct)),
    ]
    with log.open("w", buffering=1, encoding="utf-8") as console:
        terminal = pexpect.spawn(command[0], command[1:], encoding="utf-8", codec_errors="replace")
        terminal.logfile_read = console
        try:
            server = Server(terminal, show)
            yield server
            server.shut_down()
        finally:
            terminal.close(force=True)
            for image in images[1:]:
                image.unlink()
