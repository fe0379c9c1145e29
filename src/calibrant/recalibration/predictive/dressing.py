"""Dressing: the members of an ensemble corrected, spread and smoothed into a density."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.continuous.location_scale import Normal
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.recalibration.base import Found, Recalibrator, shares
from calibrant.recalibration.maps import Map

MIN_WIDTH = 1e-3
"""The least width, in standard deviations of the targets: members that equal the target would ask for none at all."""


@dataclass(frozen=True)
class Dressing(Recalibrator):
    """Ensembles as mixtures of normal distributions around their members, moved and stretched.

    Member x of an ensemble with mean m becomes ``a + b m + c (x - m)``, with a normal distribution of standard deviation
    s around it; a, b, c and s have the largest likelihood. a and b put right a bias, c and s too little or too much
    spread. The result has a density, so that log losses and recalibration by PIT values work on ensembles. O(n members) per step of
    a quasi-Newton search over four numbers. Broecker & Smith (2008).

    >>> rng = np.random.default_rng(0)
    >>> signal = rng.normal(size=2_000)
    >>> members = signal[:, None] + 1 + 0.3 * rng.normal(size=(2_000, 10))  # too high, and too close together
    >>> fitted = Dressing().fit(signal + rng.normal(size=2_000), Ensemble(members), folds=0)
    >>> better = fitted(Ensemble(members))
    >>> better, bool(abs(better.cdf(signal).mean() - 0.5) < 0.05)
    (<Mixture: 2,000 predictions of 10 Normal components>, True)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The greatest likelihood, from the least squares of the means on."""
        members, y, w = _members(predictions), targets.astype(np.float64), shares(weights, len(targets))[0]
        centre = float(w @ y)
        unit = float(np.sqrt(w @ (y - centre) ** 2)) or 1.0
        problem = _Problem.of((y - centre) / unit, (members - centre) / unit, w)
        bounds = [(None, None), (None, None), (-20.0, 20.0), (np.log(MIN_WIDTH), None)]
        end = minimize(
            problem.loss, problem.start(), jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-8}
        )
        level, slope, (stretch, width) = float(end.x[0]), float(end.x[1]), np.exp(end.x[2:]).tolist()
        is_narrow = end.x[3] <= np.log(MIN_WIDTH)
        notes = ("targets equal members: the width is the smallest considered",) if is_narrow else ()
        found = DressingMap(unit * level + (1 - slope) * centre, slope, stretch, unit * width)
        return Found(found, bool(end.success), notes)


class _Problem(NamedTuple):
    """Targets, means of members, members less their mean ``(n, m)``, and weights that sum to 1."""

    y: np.ndarray
    middle: np.ndarray
    apart: np.ndarray
    w: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, members: np.ndarray, w: np.ndarray) -> "_Problem":
        middle = members.mean(axis=1)
        return cls(y, middle, members - middle[:, None], w)

    def start(self) -> np.ndarray:
        """The line of least squares, members as far apart as they are, and what is left as width."""
        off = self.middle - self.w @ self.middle
        square = float(self.w @ off**2)
        slope = float(self.w @ (off * self.y)) / square if square > 0 else 1.0
        level = float(self.w @ (self.y - slope * self.middle))
        left = float(np.sqrt(self.w @ (self.y - level - slope * self.middle) ** 2))
        return np.array([level, slope, 0.0, np.log(max(left, MIN_WIDTH))])

    def loss(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean negative log density and its gradient in a, b, log c and log s."""
        a, b, log_c, log_s = x
        c, s = np.exp(log_c), np.exp(log_s)
        z = (self.y[:, None] - a - b * self.middle[:, None] - c * self.apart) / s
        logs = -0.5 * z**2
        total = logsumexp(logs, axis=1)
        share = np.exp(logs - total[:, None])
        pull = share * z / s
        each = pull.sum(axis=1)
        slopes = np.stack(
            [each, each * self.middle, c * (pull * self.apart).sum(axis=1), (share * z**2).sum(axis=1) - 1]
        )
        constant = np.log(z.shape[1] * np.sqrt(2 * np.pi))
        return float(-self.w @ total + log_s + constant), -slopes @ self.w


@dataclass(frozen=True)
class DressingMap(Map):
    """``level + slope m + stretch (x - m)`` for members x with mean m, and a width."""

    level: float
    slope: float
    stretch: float
    width: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.level, self.slope, self.stretch]).all() and 0 < self.width < np.inf):
            raise InputError("a dressing needs finite numbers and a positive width")

    def apply(self, predictions: Distribution) -> Distribution:
        """A mixture with a component a member."""
        members = _members(predictions)
        middle = members.mean(axis=1, keepdims=True)
        moved = self.level + self.slope * middle + self.stretch * (members - middle)
        return Mixture(tuple(Normal(column, self.width) for column in moved.T))

    def check(self, predictions: Distribution) -> None:
        """Refuse what is no ensemble."""
        _members(predictions)


def _members(predictions: Distribution) -> np.ndarray:
    """Members ``(n, m)`` in double precision."""
    if not isinstance(predictions, Ensemble) or predictions.is_vector:
        raise InputError(f"Dressing takes ensembles of numbers; got {predictions!r}")
    if predictions.weights is not None:
        raise InputError(f"Dressing takes equally likely members; got {predictions!r}")
    return to_numpy(predictions.members).astype(np.float64)
