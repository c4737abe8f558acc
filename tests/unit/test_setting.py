# SPDX-License-Identifier: GPL-2.0
"""Names of a setting, for a reader and for a folder."""

from __future__ import annotations

import pytest

from lab.experiment.setting import Setting

NAMES = {
    Setting(variant="stock", contexts=1): ("stock", "stock"),
    Setting(variant="stock", contexts=1, layout="even"): ("stock, even", "stock-even"),
    Setting(variant="bdis", contexts=None): ("separate BDIs", "bdis"),
    Setting(variant="direct", contexts=None): ("direct I/O", "direct"),
    Setting(variant="parallel", contexts=1): ("1 context", "parallel1"),
    Setting(variant="parallel", contexts=1, workers=1): ("1 context, 1 worker", "parallel1-workers1"),
    Setting(variant="parallel", contexts=2, workers=4): ("2 contexts, 4 workers", "parallel2-workers4"),
    Setting(variant="parallel", contexts=8, affinity="ino", layout="skewed"): (
        "8 contexts, ino, skewed",
        "parallel8-ino-skewed",
    ),
    Setting(variant="parallel", contexts=1, ag_mode="ag-hint"): (
        "1 context, mode ag-hint",
        "parallel1-mode-ag-hint",
    ),
    Setting(variant="parallel", contexts=1, placement="stream"): (
        "1 context, stream placement",
        "parallel1-stream",
    ),
}


@pytest.mark.parametrize("setting", NAMES)
def test_what_is_as_usual_is_left_out_of_the_names(setting: Setting) -> None:
    assert (setting.label, setting.folder) == NAMES[setting]
