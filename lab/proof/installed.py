# SPDX-License-Identifier: GPL-2.0
"""Prove the packages on a Debian server: install, restart, measure, keep settings, remove."""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from lab.machine import console, debian
from lab.machine.server_console import Line, Server
from lab.package import field
from lab.package.folder import Package, kind
from lab.result import provenance
from lab.util.errors import LabError
from lab.util.paths import cache_dir

NAME = "installed"
#: What ``field`` brought back, beside the session.
FIELD_RESULT = "pwb-field-results.tar.gz"

_KINDS = ("wbctl", "stock", "parallel")
_KERNEL = re.compile(r"linux-image-((.+)-pwb-([a-z]+))_")
# Their files, wherever they are, and what dpkg knows of them; what is below /root was put there by hand.
_LEFT = (
    "dpkg -l | grep -e wbctl -e pwb; "
    "find / -xdev -path /root -prune -o '(' -name '*wbctl*' -o -name '*pwb*' ')' -print"
)
_DATA, _MEDIA = f"{debian.BY_ID}1", f"{debian.BY_ID}2"
_QUEUES = (
    f"for drive in {debian.BY_ID}0 {_DATA}; do ls /sys/block/$(basename $(realpath $drive))/mq | wc -l; done"
)
_MENU = "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux"
_FIO = (
    "fio --name=job --rw=randwrite --bs=4k --size=64m --numjobs=4 --end_fsync=1 --verify=crc32c "
    "--group_reporting --directory="
)
_FIELD = "--dirty-limit-mib 64 --rounds 3 --contexts 1,4,auto"
_JOB = """\
# Overwrites for a small server: fio's files are twice the dirty limit.
[global]
rw=randwrite
bs=4k
ioengine=psync
size=32m
overwrite=1
time_based=1
runtime=12

[writer]
numjobs=4
"""


def prove(packages: Sequence[Path], folder: Path, show: Callable[[Line], None]) -> list[Line]:
    """Make a server, and do with the packages what an administrator would.

    Install wbctl and both kernels beside Debian's; run fio on XFS and ext4 on the parallel one; pin a
    disk's settings, and find them after a restart; run the archive of ``pwb field`` on stock and parallel;
    remove all again and find the old kernel back.

    Args:
        packages: files of wbctl and of both kernels, one of each.
        folder: for the console, and what ``field`` brings back (:data:`FIELD_RESULT`); made if missing.
        show: called with each line of the session.

    Returns:
        The session.

    Raises:
        LabError: something is not as it should be, or could not be tried.
    """
    for wanted in _KINDS:
        found = [path.name for path in packages if kind(path.name) == wanted]
        if len(found) != 1:
            raise LabError(
                f"expected one package of {wanted} to install, got {', '.join(found) or 'none'}: "
                "leave one there, or make it with: ./pwb deb"
            )
    versions = {kind(path.name): name[2] for path in packages if (name := _KERNEL.match(path.name))}
    if versions["stock"] != versions["parallel"]:
        raise LabError(
            f"packages of Linux {versions['stock']} (stock) and {versions['parallel']} (parallel): expected "
            "both of one; make them again with: ./pwb deb"
        )
    with tempfile.TemporaryDirectory(prefix="installed-", dir=cache_dir()) as work:
        place = Path(work)
        disk_folder, media = place / "debian", place / "media"
        disk_folder.mkdir()
        media.mkdir()
        job = place / "overwrite.fio"
        job.write_text(_JOB, encoding="utf-8")
        archive = field.make(place / "field.tar.gz", [job], packages)
        subprocess.run(["tar", "xf", archive], cwd=media, check=True)
        disk = debian.make(disk_folder)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "console.txt"
        with debian.started(disk, log, media, show=show) as server:
            _prepare(server)
            old = server.run("uname -r").strip()
            stock, parallel = _install(server)
            _use(server, parallel)
            packed = _try_field(server, stock, parallel)
            _remove(server, old)
            (folder / FIELD_RESULT).write_bytes(packed)
        # What the kernels said while they shut down.
        _expect_no_report(log.read_text(encoding="utf-8"))
        debian.check(disk)
        return server.session


def _prepare(server: Server) -> None:
    lines = f"{_DATA} /data xfs defaults 0 0\\n{_MEDIA} /media ext4 defaults 0 0\\n"
    server.look_up(f"mkfs.xfs -q {_DATA}; mkdir -p /data /media; printf '{lines}' >> /etc/fstab")
    server.look_up("systemctl daemon-reload; mount -a")
    found = server.look_up("findmnt -n -o FSTYPE /data; findmnt -n -o FSTYPE /")
    _expect(found, "xfs\next4\n", "filesystems")


def _install(server: Server) -> tuple[str, str]:
    """Install the packages beside the kernel that runs; return the releases of stock and parallel."""
    server.run("echo GRUB_DEFAULT=saved > /etc/default/grub.d/saved.cfg")
    server.run(f'grub-set-default "{_MENU} $(uname -r)"')
    server.run(f"apt-get install -qq -y /media/{field.TOP}/packages/*.deb 2>&1 | grep ^Setting")
    found = server.run("ls -1 /lib/modules").split()
    [stock] = [release for release in found if release.endswith("-pwb-stock")]
    [parallel] = [release for release in found if release.endswith("-pwb-parallel")]
    return stock, parallel


def _start(server: Server, release: str) -> None:
    """Start a kernel, this time only."""
    server.run(f'grub-reboot "{_MENU} {release}"')
    server.restart()
    _expect(server.run("uname -r"), f"{release}\n", "the kernel that runs")


def _use(server: Server, release: str) -> None:
    """Find the number of flushers, write and verify on both filesystems, pin a setting and find it again."""
    _start(server, release)
    _find("nwritebacks auto (1)", server.run("wbctl contexts /data"))
    for directory in ("/data", "/root"):
        _find("err= 0", server.run(f"{_FIO}{directory} | grep -e err= -e WRITE:"))
    _check_health(server)
    server.run(f"echo '{_DATA} contexts=3' >> /etc/wbctl.conf")
    _start(server, release)
    _expect(server.look_up(_QUEUES), f"{debian.CPUS}\n" * 2, "hardware queues of the two drives")
    _find("nwritebacks 3", server.run("wbctl contexts /data"))
    _find("err= 0", server.run(f"{_FIO}/data | grep -e err= -e WRITE:"))
    _find("nwritebacks auto", server.run("wbctl contexts /"))
    server.run(f"umount /data && xfs_repair -n {_DATA} 2>&1 | grep '^No modify' && mount /data")
    _check_health(server)


def _try_field(server: Server, stock: str, parallel: str) -> bytes:
    """Run the archive of ``pwb field`` on both kernels; return what it brings back."""
    server.run(f"cp -r /media/{field.TOP} /root; mkdir /data/pwb")
    for release in (stock, parallel):
        _start(server, release)
        server.run(f"{field.TOP}/field check /data/pwb {_FIELD}")
        server.run(f"{field.TOP}/field run /data/pwb {_FIELD}")
        _expect(server.look_up("ls /data/pwb"), "", "what field leaves behind")
        _check_health(server)
    server.run(f"{field.TOP}/field pack")
    return base64.b64decode(server.look_up(f"base64 {field.TOP}/results/{FIELD_RESULT}"))


def _remove(server: Server, old: str) -> None:
    """Remove all that was installed, and find the server as it was."""
    _start(server, old)
    server.run("apt-get purge -qq -y wbctl 'linux-image-*-pwb-*' 2>&1 | grep ^Removing")
    server.restart()
    _expect(server.run("uname -r"), f"{old}\n", "the kernel that runs")
    _expect(server.run("ls -1 /lib/modules"), f"{old}\n", "the kernels that are left")
    _expect(server.look_up(_LEFT), "", "what is left of the packages")
    _check_health(server)


def _check_health(server: Server) -> None:
    _expect_no_report(server.look_up("dmesg"))
    # Root is logged in before all of them have started.
    server.look_up("systemctl is-system-running --wait")
    _expect(server.look_up("systemctl --failed --quiet --no-legend"), "", "services that failed")


def _expect_no_report(text: str) -> None:
    reports = console.findings(text)
    if reports:
        raise LabError("the server's kernel reported: " + "\n".join(reports[0].lines))


def _expect(got: str, expected: str, what: str) -> None:
    if got != expected:
        raise LabError(f"{what}: got {got.strip()!r}, expected {expected.strip()!r}")


def _find(what: str, printed: str) -> None:
    if what not in printed:
        raise LabError(f"the server printed {printed.strip()!r}: expected {what!r} in it")


def shown(line: Line) -> str:
    """Return a line of the session, and what came back, as a terminal shows them."""
    printed = "".join(f"{text}\n" for text in line.printed.splitlines() if text)
    return f"# {line.command}\n{printed}"


def table(session: Iterable[Line]) -> str:
    """Return the session as a page shows it."""
    return f"```\n{''.join(map(shown, session))}```\n"


def keep(session: Sequence[Line], packages: Sequence[Package], folder: Path) -> None:
    """Write the session as a result.

    Args:
        session: what :func:`prove` has returned.
        packages: what was installed.
        folder: for the result.
    """
    kernels = {found[3]: (found, one) for one in packages if (found := _KERNEL.match(one.file))}
    about = {
        "change": kernels["parallel"][1].change,
        "kernels": {
            flavour: {"version": name[2], "release": name[1], "identity": package.sha256}
            for flavour, (name, package) in kernels.items()
        },
        "packages": [package.model_dump() for package in packages],
    }
    provenance.write(folder, NAME, map(asdict, session), [], table=table(session), about=about)
