"""Over- and under-confidence told apart: table 2 of Berta et al. (2026)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import Variational
from calibrant.lab import GLM, TrueCurve
from studies.berta.data import Scenario

N = 5_000
KINDS = ("total", "over-confidence", "under-confidence")

OVER, UNDER = GLM("logit", "logit", 0.0, 0.4), GLM("logit", "logit", 0.0, 4.0)


@dataclass(frozen=True)
class LowerOf(TrueCurve):
    """One curve where it lies up to 1/2, the other above.

    >>> LowerOf(OVER, UNDER)(np.array([0.1, 0.9])).round(4)
    array([0.2934, 0.9998])
    """

    low: TrueCurve
    high: TrueCurve

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A choice of two."""
        low = self.low.at(scores, rest)
        return np.where(low <= 0.5, low, self.high.at(scores, rest))


WORLDS = {
    "over-confident": Scenario(2, OVER),
    "under-confident": Scenario(2, UNDER),
    "both": Scenario(2, LowerOf(OVER, UNDER)),
}

PUBLISHED = {
    "over-confident": ((0.1274, 0.0027), (0.1281, 0.0023), (-0.0007, 0.0005)),
    "under-confident": ((0.1254, 0.0009), (-0.0003, 0.0003), (0.1256, 0.0008)),
    "both": ((0.1249, 0.0020), (0.0620, 0.0016), (0.0629, 0.0009)),
}
"""Means of ten runs with their standard errors: the total, over-confidence, under-confidence."""

TRUTHS = {"over-confident": 0.1287, "under-confident": 0.1277, "both": 0.1281}
"""The true totals as published."""


def confidences(world: str, seed: int) -> list[float]:
    """Total, over-confidence and under-confidence in one data set.

    >>> [round(value, 3) for value in confidences("under-confident", 0)]
    [0.132, 0.0, 0.132]
    """
    y, p = WORLDS[world].draw(N, np.random.RandomState(seed))
    return list(map(float, Variational(seed=seed).confidence(y, p)["value"]))


def compared(world: str, values: np.ndarray) -> list[dict[str, Any]]:
    """A row a kind of error: the mean of runs ``(runs, 3)`` beside the published one, and how far they are apart."""
    rows = []
    truths = (TRUTHS[world], np.nan, np.nan)
    for kind, true, found, (published, off) in zip(KINDS, truths, values.T, PUBLISHED[world], strict=True):
        error = found.std(ddof=1) / len(found) ** 0.5
        row = {"method": kind, "truth": true, "mean": found.mean(), "error": error}
        row |= {"published": published, "published_error": off}
        rows.append(row | {"z": abs(found.mean() - published) / np.hypot(error, off)})
    return rows
