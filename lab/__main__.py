# SPDX-License-Identifier: GPL-2.0
"""Entry point of ``python -m lab``, which ``pwb`` calls."""

from lab.cli import main

if __name__ == "__main__":
    main()
