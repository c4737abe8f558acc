# SPDX-License-Identifier: GPL-2.0
"""What ``pwb installed`` needs, and how it shows a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.machine.server_console import Line
from lab.proof import installed
from lab.result.provenance import SUMMARY, TABLE
from lab.util.errors import LabError


@pytest.mark.parametrize("missing", ["wbctl", "pwb-stock", "pwb-parallel"])
def test_package_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    names = {"wbctl_1.0.deb", "linux-image-7.3-pwb-stock_1.deb", "linux-image-7.3-pwb-parallel_1.deb"}
    packages = [tmp_path / name for name in names if missing not in name]
    with pytest.raises(LabError, match=f"no package of {missing} is there to install: pwb deb makes them"):
        installed.prove(packages, tmp_path / "result", lambda line: None)
    assert not (tmp_path / "result").exists()


def test_session_is_kept_as_a_terminal_shows_it(tmp_path: Path) -> None:
    session = [Line("uname -r", "7.3\n"), Line("systemctl reboot", ""), Line("fio", "\n\nWRITE: 1\n\ndone\n")]
    installed.keep(session, tmp_path)
    shown = "```\n# uname -r\n7.3\n# systemctl reboot\n# fio\nWRITE: 1\ndone\n```\n"
    assert (tmp_path / TABLE).read_text() == shown == installed.table(session)
    assert json.loads((tmp_path / SUMMARY).read_text())[0] == {"command": "uname -r", "printed": "7.3\n"}
