"""Outcomes along the predictions: what a map of the kernel witness is made of."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, needed
from calibrant.distributions.bernoulli import Bernoulli
from calibrant.distributions.categorical import Categorical
from calibrant.distributions.coordinates import dimensions
from calibrant.distributions.ensemble import Ensemble
from calibrant.estimators.z_scores import moments_of
from calibrant.plots.axes import logit
from calibrant.plots.claims import floor_of
from calibrant.typing import Array

ERRORS = (-3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Edges of the errors of forecasts, in predicted standard deviations."""

FINE = 200
"""Groups of rows along the predictions, before they are smoothed."""

COLUMNS = 12
"""Places along the predictions."""

WIDTH = 0.06
"""Standard deviation of the kernel, as a share of the axis."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Targets as one of a few outcomes, the chances that the predictions give them, and where rows lie along an axis.

    ``asked`` says of which rows an outcome is asked, ``(n, outcomes)`` or all; ``position`` is where a row lies in [0, 1], and
    ``along`` the number there.
    """

    targets: np.ndarray
    chances: Categorical
    names: tuple[str, ...]
    asked: np.ndarray | None
    along: np.ndarray
    position: np.ndarray

    @classmethod
    def of(cls, targets: Array, predictions: Distribution) -> Self:
        """Favoured classes along the confidence, or errors along the predicted spread."""
        if isinstance(predictions, Categorical):
            return cls._classes(to_numpy(targets), predictions)
        if isinstance(predictions, Ensemble | Bernoulli) or dimensions(predictions):
            raise InputError(
                f"the map shows classes, or forecasts of one number by a distribution; got {type(predictions).__name__} "
                "predictions: see calibrant.plots.levels or calibrant.plots.classwise"
            )
        return cls._errors(to_numpy(targets), predictions)

    @classmethod
    def _classes(cls, y: np.ndarray, predictions: Categorical) -> Self:
        """Is the favoured class right? A last outcome stands for no."""
        p = to_numpy(predictions.matrix).astype(np.float64)
        favoured, confidence = p.argmax(axis=1), p.max(axis=1)
        k = p.shape[1]
        asked = favoured[:, None] == np.arange(k)
        chances = np.column_stack([np.where(asked, p, 0.0), 1 - confidence])
        right = np.where(y == favoured, favoured, k)
        names, position = predictions.class_names, log_odds_of(confidence)
        return cls(right, Categorical(chances).checked(), names, asked, confidence, position)

    @classmethod
    def _errors(cls, y: np.ndarray, predictions: Distribution) -> Self:
        """How many predicted standard deviations the target lies from the predicted mean."""
        mean, std = moments_of(predictions, "witness")
        edges = mean + std * np.array(ERRORS)[:, None]
        reached = to_numpy(needed(predictions.cdf(edges), "a distribution function", predictions, "witness"))
        chances = np.clip(np.diff(reached, axis=0, prepend=0.0, append=1.0).T, 0, 1)
        which = (y > edges).sum(axis=0)
        return cls(which, Categorical(chances).checked(), error_names(), None, std, ranks_of(std))


def error_names() -> tuple[str, ...]:
    """Errors in words.

    >>> error_names()[:2], error_names()[-1]
    (('below −3', '−3 to −2'), 'above 3')
    """
    ends = [f"{edge:g}".replace("-", "\N{MINUS SIGN}") for edge in ERRORS]
    return (f"below {ends[0]}", *(f"{a} to {b}" for a, b in pairwise(ends)), f"above {ends[-1]}")


def ranks_of(along: np.ndarray) -> np.ndarray:
    """The share of rows below each, equal ones at the middle of theirs."""
    _, which, count = np.unique(along, return_inverse=True, return_counts=True)
    return ((np.cumsum(count) - count / 2) / len(along))[which]


def log_odds_of(confidence: np.ndarray) -> np.ndarray:
    """Log-odds from the least to the largest, as shares of the way."""
    floor = floor_of(len(confidence))
    odds = logit(np.clip(confidence, floor, 1 - floor))
    return (odds - odds.min()) / (np.ptp(odds) or 1.0)


@dataclass(frozen=True, eq=False)
class Smoother:
    """The fine group of each row, and a Gaussian kernel of groups at each place, ``(places, groups)``."""

    group: np.ndarray
    kernel: np.ndarray

    @classmethod
    def of(cls, position: np.ndarray) -> Self:
        """Twelve places at even steps; the groups themselves where there are no more."""
        _, group = np.unique(np.minimum((FINE * position).astype(np.intp), FINE - 1), return_inverse=True)
        centre = np.bincount(group, position) / np.bincount(group)
        if len(centre) <= COLUMNS:
            return cls(group, np.eye(len(centre)))
        places = (np.arange(COLUMNS) + 0.5) / COLUMNS
        return cls(group, np.exp(-((places[:, None] - centre) ** 2) / (2 * WIDTH**2)))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums of the values of rows, ``(n,)`` or ``(n, outcomes)``, under the kernel at each place."""
        columns = [np.bincount(self.group, column, self.kernel.shape[1]) for column in np.atleast_2d(values.T)]
        sums: np.ndarray = self.kernel @ np.stack(columns, axis=1)
        return sums if values.ndim == 2 else sums[:, 0]
