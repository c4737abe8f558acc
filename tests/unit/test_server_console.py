# SPDX-License-Identifier: GPL-2.0
"""Typing at a server's console; a shell on a terminal of its own stands for the server."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from lab.machine.server_console import Line, Server
from lab.util.errors import LabError

Boot = Callable[..., Server]
DMESG = """\
#!/bin/sh
echo "$1" > "$0.level"
"""
SYSTEMCTL = """\
#!/bin/sh
[ "$(cat "${0%/*}/dmesg.level")" != --console-level=warn ] || echo 'WARNING: late'
case $1 in
    reboot) echo 'reboot: Restarting system'; stty echo; printf 'GRUB\\nroot@server:~# ' ;;
    poweroff) kill -HUP $PPID ;;
esac
"""


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    """Return a function that boots a shell whose ``dmesg`` and ``systemctl`` are not the host's."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("dmesg", DMESG), ("systemctl", SYSTEMCTL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def booted(
        show: Callable[[Line], None] = lambda line: None,
        prompt: str = "root@server:~# ",
        log: io.StringIO | None = None,
    ) -> Server:
        script = (
            f"export TERM=dumb PATH={programs}:$PATH; printf 'login\\n{prompt}'; exec bash --norc --noprofile"
        )
        terminal = pexpect.spawn("bash", ["-c", script], encoding="utf-8")
        terminal.logfile_read = log
        return Server(terminal, show)

    return booted


def test_session_is_what_was_typed_and_printed(boot: Boot) -> None:
    shown: list[Line] = []
    server = boot(shown.append)
    assert server.run("echo one; echo two") == "one\ntwo\n"
    assert server.look_up("echo not shown; false") == "not shown\n"
    server.restart()
    assert server.run("true") == ""
    server.shut_down()
    assert server.session == shown
    assert shown == [Line("echo one; echo two", "one\ntwo\n"), Line("systemctl reboot", ""), Line("true", "")]


def test_command_that_fails_is_told(boot: Boot) -> None:
    with pytest.raises(LabError, match=r"'ls /nowhere' on the server ended with status 2: .*No such file"):
        boot().run("ls /nowhere")


def test_any_command_of_a_pipeline_fails_it(boot: Boot) -> None:
    with pytest.raises(LabError, match="ended with status 3: Setting up"):
        boot().run("(echo Setting up; exit 3) | grep Setting")


def test_what_the_kernel_reports_at_the_end_is_on_the_console(boot: Boot) -> None:
    log = io.StringIO()
    server = boot(log=log)
    server.restart()
    assert log.getvalue().count("WARNING: late") == 1
    server.shut_down()
    assert log.getvalue().count("WARNING: late") == 2


def test_end_of_the_server_is_told_with_its_last_lines(boot: Boot) -> None:
    with pytest.raises(LabError, match=r"'echo last; exit': the server ended; .*\nlast\r?\n.*"):
        boot().run("echo last; exit")


def test_time_is_bounded(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    server = boot()
    monkeypatch.setattr("lab.machine.server_console.COMMAND_S", 0.2)
    with pytest.raises(LabError, match=r"'sleep 100': 0.2 s were not enough"):
        server.run("sleep 100")
