# SPDX-License-Identifier: GPL-2.0
"""What a figure is: how it is called and shown, and which way is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

#: What a table says where there is no figure.
MISSING = "-"

#: Of a published claim, or of a bar: each is about one figure.
Kind = Literal["throughput", "seconds", "latency", "p99", "extents"]


@dataclass(frozen=True)
class Figure:
    """A figure of a run.

    Attributes:
        name: in words, as in a sentence.
        unit: of its values; empty for a count or a ratio.
        heading: of its column in the table of a bench, which shows those that have one.
        form: how a value is shown, as for :func:`format`.
        better: whether more or less of it is better; None: neither.
        is_cost: whether a verdict on throughput is held against it.
        claim: kind of the claims about it; None: there are none.
        ratio: what a claim's ratio says, how many times better or how many times more it is.
    """

    name: str
    unit: str = ""
    heading: str = ""
    form: str = ".2f"
    better: Literal["more", "less"] | None = None
    is_cost: bool = False
    claim: Kind | None = None
    ratio: Literal["better", "more"] = "better"

    @property
    def column(self) -> str:
        """Return the heading of its column."""
        return self.heading or (f"{self.name}, {self.unit}" if self.unit else self.name)

    @property
    def is_turned(self) -> bool:
        """Say whether a claim's ratio is that of the base to what came of it."""
        return self.better == "less" and self.ratio == "better"

    def text(self, value: float | None) -> str:
        """Show a value."""
        # A missing figure comes out of a table of pandas as not a number.
        return MISSING if value is None or math.isnan(value) else format(value, self.form)
