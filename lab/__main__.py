# SPDX-License-Identifier: GPL-2.0
"""Entry point of ``python -m lab``, which ``pwb`` calls."""

from __future__ import annotations

import signal

if __name__ == "__main__":
    # Until the command line handles it, Ctrl-C ends us without a traceback, unless the caller ignores it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from lab.cli import main

    main()
