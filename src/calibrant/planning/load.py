"""How large a piece of work is: rows, classes, redraws, waves."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from calibrant.kernels.bandwidth import MOST_ROWS

Kind: TypeAlias = Literal["classes", "binary", "numbers", "ensemble"]
KINDS: tuple[Kind, ...] = ("classes", "binary", "numbers", "ensemble")

NUMBER = 8
"""Bytes of a number."""

WAVES_OF_NUMBERS = 80
"""Features that a redrawn number has in :class:`~calibrant.estimators.random_features.RandomFeatureSKCE`, roughly."""


@dataclass(frozen=True)
class Load:
    """Rows and what a row predicts, and how often, with how many waves or rows a block something is done.

    ``k`` counts classes (2 of binary predictions), or the members of an ensemble.

    >>> Load(10**7, 1000).data_bytes / 1e9
    80.08
    """

    n: int
    k: int
    kind: Kind = "classes"
    redraws: int = 0
    waves: int = 0
    block: int = 0

    @property
    def width(self) -> int:
        """Numbers a row of predictions has."""
        return {"binary": 1, "numbers": 2}.get(self.kind, self.k)

    @property
    def features(self) -> int:
        """Features of a residual."""
        return self.k if self.kind in ("classes", "binary") else WAVES_OF_NUMBERS

    @property
    def data_bytes(self) -> float:
        """Bytes of targets and predictions."""
        return NUMBER * float(self.n) * (self.width + 1)

    @property
    def sorting(self) -> float:
        """Comparisons that sorting takes."""
        return self.n * math.log2(max(self.n, 2))

    @property
    def median_pairs(self) -> float:
        """Pairs that the median distance looks at."""
        return float(min(self.n, MOST_ROWS)) ** 2
