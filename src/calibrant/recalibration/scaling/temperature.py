"""Temperature scaling: one number for any family of predictions."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, shares
from calibrant.recalibration.maps import Map, check_least, check_number, least_probability
from calibrant.results import how_many, number

COLDEST, HOTTEST = -7.0, 7.0
"""Logarithms of temperatures that are considered."""

PRECISION = 1e-10

IMPOSSIBLE = -1e290
"""The log probability of what a cold temperature has rounded to nothing: so low, yet a number that can be compared."""


@dataclass(frozen=True)
class Temperature(Recalibrator):
    """The distributions proportional to ``p^(1/T)``, with the T of largest likelihood; above 1 where the model is too sure.

    For classes the logits divided by T, which leaves the order of classes as it is; variances of normal predictions
    times T, scales of Laplace predictions. The likelihood is concave in ``1/T`` for classes. A class probability
    of 0 counts as half the smallest other one, in the fit and when the map is applied.
    Guo et al. (2017); Widmann, Lindsten & Zachariah (2021), appendix F, for other families.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = Temperature().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> round(fitted.map.temperature, 1), bool(fitted.scores["change"][0] < 0)
    (2.0, True)
    """

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Brent's method on the logarithm of the temperature."""
        if predictions[:1].temper(1.0) is NotImplemented:
            raise InputError(f"{type(predictions).__name__} predictions have no temperature")
        least, notes = 0.0, []
        if isinstance(predictions, Categorical):
            p = to_numpy(predictions.matrix).astype(np.float64)
            least = least_probability(p, shares(weights, len(targets))[1])
            if wrong := int((p[np.arange(len(p)), targets] == 0).sum()):
                notes.append(
                    f"{how_many(wrong, 'row')} had probability 0 for what happened: 0 counts as {number(least)}"
                )
            predictions = _floored(Categorical.trusted(p), least)
        possible = np.flatnonzero(np.isfinite(to_numpy(predictions.log_prob(targets))))
        if not len(possible):
            raise InputError("every row had probability 0 for what happened: no temperature changes that")
        y, some = targets[possible, ...], predictions[possible]
        w = np.ones(len(targets)) if weights is None else weights
        w = w[possible] / w[possible].sum()

        def loss(log_temperature: float) -> float:
            logs = to_numpy(some.temper(float(np.exp(log_temperature))).log_prob(y))
            return -float(w @ np.maximum(logs, IMPOSSIBLE))

        hottest = _hottest(some)
        best = minimize_scalar(loss, bounds=(COLDEST, hottest), method="bounded", options={"xatol": PRECISION})
        if min(loss(COLDEST), loss(hottest)) <= best.fun < loss(0.0):
            notes.append("the likelihood grows up to the end of the temperatures considered")
        if impossible := len(targets) - len(possible):
            notes.append(f"{how_many(impossible, 'row')} had probability 0 for what happened, at any temperature")
        n_classes = predictions.n_classes if isinstance(predictions, Categorical) else None
        found = Tempering(type(predictions).__name__, float(np.exp(best.x)), n_classes, least)
        return Found(found, bool(best.success), tuple(notes))


def _floored(predictions: Categorical, least: float) -> Categorical:
    """Class probabilities of which none is below the least."""
    p = predictions.matrix
    xp = namespace(p)
    p = xp.where(p < least, least, p)
    return predictions.alike(p / xp.sum(p, axis=1, keepdims=True))


def _hottest(predictions: Distribution) -> float:
    """The logarithm of the highest temperature that all predictions have, of those considered, by bisection."""
    low, high = 0.0, HOTTEST
    if predictions.temper(float(np.exp(high))) is not NotImplemented:
        return high
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if predictions.temper(float(np.exp(middle))) is NotImplemented else (middle, high)
    return low


@dataclass(frozen=True)
class Tempering(Map):
    """Predictions at another temperature; of classes, of as many as were fitted, and 0 counts as ``least``."""

    family: str
    temperature: float
    n_classes: int | None = None
    least: float = 0.0

    def __post_init__(self) -> None:
        check_least(self.least)
        if not 0 < self.temperature < np.inf:
            raise InputError(f"temperature must be a positive number; got {self.temperature!r}")

    def apply(self, predictions: Distribution) -> Distribution:
        """``p^(1/T)``, normalised."""
        if isinstance(predictions, Categorical) and self.least > 0:
            predictions = _floored(predictions, self.least)
        found = predictions.temper(self.temperature)
        if found is NotImplemented:
            raise InputError(f"some of these {self.family} predictions have no temperature of {self.temperature:g}")
        tempered: Distribution = found
        return tempered

    def check(self, predictions: Distribution) -> None:
        """Refuse other families, and other numbers of classes."""
        if type(predictions).__name__ != self.family:
            raise InputError(f"this map was fitted on {self.family} predictions; got {type(predictions).__name__}")
        if isinstance(predictions, Categorical) and self.n_classes is not None:
            check_number(predictions, self.n_classes)
