# SPDX-License-Identifier: GPL-2.0
"""The command line: parses, calls, and turns a LabError into one sentence and an exit status.

Exit status: 0 done, 1 an error that a sentence on standard error names, 2 wrong usage, 128 + signal when a
signal ended it; ``pwb guest`` and ``pwb shell`` return the status of the command in the guest.
"""

from __future__ import annotations

import errno
import signal
import sys
from types import FrameType
from typing import NoReturn

import click
from pydantic import ValidationError

# Each registers its commands.
from lab.cli import checking, kernels, measuring, packaging, probing, proving, reading  # noqa: F401
from lab.cli.group import cli as cli
from lab.util.errors import LabError
from lab.util.invalid import in_short
from lab.util.paths import cache_dir

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Signalled(KeyboardInterrupt):
    """A signal that asks us to end: cleans up as Ctrl-C does, and keeps the number for the exit status."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Args:
        arguments: without the program's name; None: this process's own.
    """
    for number in _SIGNALS:
        # What the caller ignores, as nohup does, stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise_signalled)
    sys.exit(_run(arguments))


def _raise_signalled(number: int, frame: FrameType | None) -> NoReturn:
    raise _Signalled(number)


def _run(arguments: list[str] | None) -> int:
    """Run the command line; return the exit status."""
    try:
        status: int | None = cli.main(arguments, prog_name="pwb", standalone_mode=False)
    except click.Abort as abort:
        return abort.__cause__.status if isinstance(abort.__cause__, _Signalled) else 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except LabError as error:
        click.echo(f"pwb: error: {error}", err=True)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = error.filename or f"what is written, or in {cache_dir()}"
        click.echo(
            f"pwb: error: no room left for {where}: free some, or choose another cache folder with: "
            "export PWB_CACHE=FOLDER",
            err=True,
        )
        return 1
    except ValidationError as error:
        click.echo(
            f"pwb: error: what was read is not what was expected ({in_short(error)}): is it the result of "
            "another command, or cut short? name another, or measure it again",
            err=True,
        )
        return 1
    return status or 0
