# SPDX-License-Identifier: GPL-2.0
"""What ``pwb installed`` needs and refuses, and how it shows a session; a table of answers is the server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import cli
from lab.machine import debian
from lab.machine.debian import Disk
from lab.machine.server_console import Line
from lab.package import folder
from lab.proof import installed
from lab.result.provenance import META, SUMMARY, TABLE
from lab.util.errors import LabError

DEBIANS = "6.12-cloud-amd64"
STOCK, PARALLEL = "7.3.4-pwb-stock", "7.3.4-pwb-parallel"
FILES = {
    "wbctl": "wbctl_1.0_amd64.deb",
    "stock": f"linux-image-{STOCK}_1_amd64.deb",
    "parallel": f"linux-image-{PARALLEL}_2_amd64.deb",
}
REPORT = "[  1.0] WARNING: CPU: 0 PID: 1 at fs/fs-writeback.c:1 made_up+0x1/0x2\n"


class Server:
    """A server on which all goes well, but for what a test puts in place of an answer.

    Attributes:
        changed: answers by the beginning of a command, in place of its own.
        asked: what was typed.
    """

    def __init__(self) -> None:
        self.session: list[Line] = []
        self.changed: dict[str, str] = {}
        self.asked: list[str] = []
        self.kernels = [DEBIANS]
        self.runs = self.next = DEBIANS
        self.is_pinned = False

    def run(self, command: str) -> str:
        printed = self.look_up(command)
        self.session.append(Line(command, printed))
        return printed

    def look_up(self, command: str) -> str:
        self.asked.append(command)
        own = self._answer(command)
        return next((text for begin, text in self.changed.items() if command.startswith(begin)), own)

    def restart(self) -> None:
        self.runs, self.next = self.next, DEBIANS

    def _answer(self, command: str) -> str:
        if command.startswith("apt-get install"):
            self.kernels += [PARALLEL, STOCK]
        elif command.startswith("apt-get purge"):
            self.kernels = [DEBIANS]
        elif command.startswith("grub-reboot"):
            self.next = command.rstrip('"').rpartition(" ")[2]
        elif "/etc/wbctl.conf" in command and command.startswith("echo"):
            self.is_pinned = True
        elif command.startswith("fio"):
            return "job: err= 0: \n"
        number = "3" if self.is_pinned else "auto (1)"
        answers = {
            "uname -r": f"{self.runs}\n",
            "ls -1 /lib/modules": "".join(f"{name}\n" for name in sorted(self.kernels)),
            "wbctl contexts /data": f"nvme1n1: nwritebacks {number}\n",
            "wbctl contexts /": "nvme0n1: nwritebacks auto (1)\n",
            "findmnt -n -o FSTYPE /data; findmnt -n -o FSTYPE /": "xfs\next4\n",
        }
        if command.startswith("for drive in"):
            return "4\n4\n"
        if command.startswith("base64"):
            return base64.b64encode(b"of a server").decode()
        return answers.get(command, "")


@pytest.fixture
def packages(tmp_path: Path) -> list[Path]:
    place = tmp_path / "packages"
    place.mkdir()
    made = []
    for kind, name in FILES.items():
        (tmp_path / name).write_text("deb")
        change = "abad1dea" if kind == "parallel" else None
        made.append(folder.put(tmp_path / name, place, change=change, commit="c0ffee"))
    return made


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server in place of the one in QEMU, and what its console shows after the session."""
    made = Server()

    @contextmanager
    def started(disk: Disk, log: Path, media: Path, *, show: Callable[[Line], None]) -> Iterator[Server]:
        yield made
        log.write_text(made.changed.get("console", "") + "reboot: Power down\n")

    monkeypatch.setenv("PWB_CACHE", str(tmp_path))
    monkeypatch.setattr(debian, "make", lambda place: Disk(place / "disk", place / "linux", place / "initrd"))
    monkeypatch.setattr(debian, "started", started)
    monkeypatch.setattr(debian, "check", lambda disk: made.asked.append("e2fsck"))
    return made


def prove(packages: list[Path], tmp_path: Path) -> list[Line]:
    return installed.prove(packages, tmp_path / "result", lambda line: None)


def test_a_server_on_which_all_goes_well(packages: list[Path], server: Server, tmp_path: Path) -> None:
    session = prove(packages, tmp_path)
    assert session == server.session
    assert (tmp_path / "result" / installed.FIELD_RESULT).read_bytes() == b"of a server"
    assert server.asked[-1] == "e2fsck"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"dmesg": REPORT}, "kernel reported: .*WARNING"),
        ({"console": REPORT}, "kernel reported: .*WARNING"),
        ({"systemctl --failed": "a.service failed\n"}, "services that failed: got 'a.service failed'"),
        ({"dpkg -l": "/etc/wbctl.conf\n"}, "what is left of the packages: got '/etc/wbctl.conf'"),
        ({"ls /data/pwb": "pwb-field\n"}, "what field leaves behind: got 'pwb-field'"),
        ({"wbctl contexts /data": "nwritebacks 7"}, "expected 'nwritebacks auto"),
        ({"for drive in": "4\n1\n"}, "hardware queues of the two drives: got '4"),
    ],
)
def test_what_is_not_as_it_should_be(
    packages: list[Path], server: Server, tmp_path: Path, answer: dict[str, str], said: str
) -> None:
    server.changed = answer
    with pytest.raises(LabError, match=said):
        prove(packages, tmp_path)


def test_services_may_still_be_starting(packages: list[Path], server: Server, tmp_path: Path) -> None:
    prove(packages, tmp_path)
    looked = [at for at, command in enumerate(server.asked) if command.startswith("systemctl --failed")]
    assert looked
    assert all(server.asked[at - 1] == "systemctl is-system-running --wait" for at in looked)


@pytest.mark.parametrize("kind", FILES)
def test_package_that_is_missing_is_named(packages: list[Path], tmp_path: Path, kind: str) -> None:
    given = [path for path in packages if path.name != FILES[kind]]
    said = f"expected one package of {kind} to install, got none: .*make it with: ./pwb deb"
    with pytest.raises(LabError, match=said):
        prove(given, tmp_path)
    assert not (tmp_path / "result").exists()


def test_two_packages_of_a_kind_are_named(packages: list[Path], tmp_path: Path) -> None:
    other = packages[0].with_name("linux-image-7.2.1-pwb-stock_1_amd64.deb")
    with pytest.raises(LabError, match=f"package of stock to install, got {FILES['stock']}, {other.name}"):
        prove([*packages, other], tmp_path)


def test_kernels_of_two_versions_are_refused(packages: list[Path], tmp_path: Path) -> None:
    other = packages[1].with_name("linux-image-7.2.1-pwb-stock_1_amd64.deb")
    with pytest.raises(
        LabError, match=r"packages of Linux 7.2.1 \(stock\) and 7.3.4 \(parallel\): expected both"
    ):
        prove([packages[0], other, packages[2]], tmp_path)


def test_session_is_kept_as_a_terminal_shows_it(packages: list[Path], tmp_path: Path) -> None:
    session = [Line("uname -r", "7.3\n"), Line("systemctl reboot", ""), Line("fio", "\n\nWRITE: 1\n\ndone\n")]
    installed.keep(session, folder.ours(packages), tmp_path)
    shown = "```\n# uname -r\n7.3\n# systemctl reboot\n# fio\nWRITE: 1\ndone\n```\n"
    assert (tmp_path / TABLE).read_text() == shown == installed.table(session)
    assert json.loads((tmp_path / SUMMARY).read_text())[0] == {"command": "uname -r", "printed": "7.3\n"}


def test_a_result_is_of_the_change_that_was_installed(
    packages: list[Path], server: Server, tmp_path: Path
) -> None:
    place = str(packages[0].parent)
    assert cli._run(["installed", "--packages", place, "--output", str(tmp_path / "result")]) == 0
    meta = json.loads((tmp_path / "result" / META).read_text())
    assert meta["change"] == "abad1dea"
    kernels = {kind: (one["version"], one["release"]) for kind, one in meta["kernels"].items()}
    assert kernels == {"stock": ("7.3.4", STOCK), "parallel": ("7.3.4", PARALLEL)}
    assert sorted(one["file"] for one in meta["packages"]) == sorted(FILES.values())


def test_packages_of_which_is_not_known_what_they_are(
    packages: list[Path], server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages[2].write_text("stale")
    place = str(packages[0].parent)
    assert cli._run(["installed", "--packages", place, "--output", str(tmp_path / "result")]) == 1
    assert "was made of is not known" in capsys.readouterr().err
    assert server.asked == []
