# SPDX-License-Identifier: GPL-2.0
"""The console of a server with systemd, at which root is logged in: commands are typed there, as by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pexpect

from lab.util.errors import LabError

#: Seconds of the host that a start or a shutdown may take, and a command.
BOOT_S = 900
COMMAND_S = 1800

# The guest's terminal and QEMU's both put a carriage return before a line feed.
_LINE_END = "\r+\n"


@dataclass(frozen=True)
class Line:
    """A command at the console.

    Attributes:
        command: what was typed.
        printed: what came back.
    """

    command: str
    printed: str


class Server:
    """A server that runs, at its console.

    Attributes:
        session: what was typed there, in order, but for what was only looked up.
    """

    def __init__(self, terminal: pexpect.spawn, show: Callable[[Line], None] = lambda line: None) -> None:
        """Wait until root is logged in.

        Args:
            terminal: the console of a server that has just been started.
            show: called with each line of the session.
        """
        self._terminal = terminal
        self._show = show
        self.session: list[Line] = []
        self._log_in()

    def run(self, command: str) -> str:
        """Type a command; return what it printed.

        Raises:
            LabError: its exit status is not 0, or that of a command in its pipeline, or it does not end.
        """
        status, printed = self._typed(command)
        self._add(Line(command, printed))
        if status:
            raise LabError(f"{command!r} on the server ended with status {status}: {printed.strip()}")
        return printed

    def look_up(self, command: str) -> str:
        """Return what a command prints, whatever its exit status; it does not belong to the session.

        Raises:
            LabError: it does not end.
        """
        return self._typed(command)[1]

    def restart(self) -> None:
        """Restart it: by systemd, the firmware, and GRUB.

        Raises:
            LabError: it does not come back.
        """
        self._end("systemctl reboot")
        self._add(Line("systemctl reboot", ""))
        self._wait("reboot: Restarting system", BOOT_S, "the restart")
        self._log_in()

    def shut_down(self) -> None:
        """Shut it down.

        Raises:
            LabError: it goes on.
        """
        self._end("systemctl poweroff")
        self._wait(pexpect.EOF, BOOT_S, "the shutdown")

    def _end(self, command: str) -> None:
        # What the kernel reports from now on, nobody can ask it for.
        self._terminal.sendline(f"dmesg --console-level=warn; {command}")

    def _typed(self, command: str) -> tuple[int, str]:
        self._terminal.sendline(f"{command}; echo status=$?.")
        self._wait(rf"status=(\d+)\.{_LINE_END}", COMMAND_S, repr(command))
        return int(self._terminal.match[1]), re.sub(_LINE_END, "\n", self._terminal.before)

    def _add(self, line: Line) -> None:
        self.session.append(line)
        self._show(line)

    def _log_in(self) -> None:
        self._wait("root@server:~# ", BOOT_S, "the login")
        # Neither echo nor prompts between what commands print. A pipeline fails with any of its commands.
        self._terminal.sendline(
            "stty -echo cols 200; PS1= DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; "
            "set -o pipefail; dmesg --console-off; echo ready=$?"
        )
        self._wait(f"ready=0{_LINE_END}", COMMAND_S, "the login")

    def _wait(self, what: object, seconds: int, until: str) -> None:
        try:
            self._terminal.expect(what, timeout=seconds)
        except (pexpect.TIMEOUT, pexpect.EOF) as error:
            how = "the server ended" if isinstance(error, pexpect.EOF) else f"{seconds} s were not enough"
            last = "\n".join(str(self._terminal.before).splitlines()[-20:])
            raise LabError(f"{until}: {how}; the last lines of its console:\n{last}") from None
