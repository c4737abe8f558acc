# SPDX-License-Identifier: GPL-2.0
"""What a scenario is held against, as data: published numbers, and the bars that ours must clear."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from lab.experiment.axes import Choice, Filesystem
from lab.experiment.figure import Kind


class Strict(BaseModel):
    """A table of a scenario file: an unknown key is an error, not a silent no-op."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Published(Strict, Choice):
    """A published result: a base, and what came of it.

    Without ``contexts`` the base is the unmodified kernel and ``new`` one number, of a number of contexts
    that was not published. With ``contexts`` the base is one context, and ``new`` has a number for each.
    The choice of each axis says which of ours is meant where a scenario tries several. Units are the
    publication's own.
    """

    id: Annotated[str, Field(pattern=r"^T[1-6]$")]
    claim: str
    fs: Filesystem
    kind: Kind
    unit: str
    base: float = Field(gt=0)
    new: float | list[float]
    contexts: list[Annotated[int, Field(ge=1)]] = []

    @model_validator(mode="after")
    def _a_number_for_each(self) -> Self:
        if len(self.contexts) != (len(self.new) if isinstance(self.new, list) else 0):
            raise ValueError("new is one number without contexts, or a list with a number for each of them")
        if min(self.values) <= 0:
            raise ValueError("new has a number that is not above 0")
        return self

    @property
    def values(self) -> list[float]:
        """Return ``new`` as a list."""
        return self.new if isinstance(self.new, list) else [self.new]


class Pick(Strict, Choice):
    """Chooses a cell of a result; ``best`` and ``worst`` are over every fixed number of contexts.

    ``auto`` is the cell in which the kernel finds the number.

    An axis that is None: the cell that was measured with the kernel's own default.
    """

    variant: Literal["stock", "parallel"] = "parallel"
    contexts: Annotated[int, Field(ge=1)] | Literal["best", "worst", "auto"] = 1


class Bar(Strict):
    """A bar for ours: the figure of one cell, as a multiple of another's, on every filesystem measured.

    A multiple above 1 is always ``cell`` having more of what ``kind`` counts.
    """

    claim: str
    kind: Kind
    cell: Pick
    of: Pick
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("expected one of at_least and at_most")
        return self
