# SPDX-License-Identifier: GPL-2.0
"""Where things are: the clone, and the cache that holds whatever is fetched or built."""

from __future__ import annotations

import os
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent


def cache_dir() -> Path:
    """Return the cache: ``$PWB_CACHE``, else ``pwb`` under ``$XDG_CACHE_HOME`` or ``~/.cache``."""
    own = os.environ.get("PWB_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pwb"
