# SPDX-License-Identifier: GPL-2.0
"""Every kernel broken on purpose can be made of the present one, and names a test that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.proof import mutants
from lab.tree import config
from lab.tree.applier import Applier, Overlay
from lab.tree.hooks import parse_hook
from lab.tree.source import Source
from lab.tree.weave import weave
from lab.util.paths import REPO


@pytest.fixture(scope="module")
def woven(kernel_source: Source) -> Path:
    return weave(kernel_source).path


@pytest.mark.parametrize("name", mutants.names())
def test_mutant_fits_and_names_its_test(
    woven: Path, kernel_source: Source, tmp_path: Path, name: str
) -> None:
    mutant = mutants.load(name)
    hook = parse_hook(mutant.path, kernel_source.series)
    overlay = Overlay(woven)
    Applier(tmp_path).apply(hook, overlay)
    assert overlay.changed
    assert mutant.kernel in config.FRAGMENTS[mutant.machine]
    file, _, test = mutant.test.partition("::")
    function = test.partition("[")[0]
    assert re.search(rf"^def {function}\(", (REPO / file).read_text(encoding="utf-8"), re.MULTILINE), test
    if function == "test_kunit":
        assert mutant.says
