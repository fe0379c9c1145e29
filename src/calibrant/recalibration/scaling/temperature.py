"""Temperature scaling: one number for any family of predictions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant._array import (
    as_double_rows,
    constant,
    matched,
    namespace,
    picked,
    row_products,
    row_slices,
    row_sums,
    to_numpy,
)
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Searching, shares
from calibrant.recalibration.maps import Map, check_least, check_number, least_probability
from calibrant.recalibration.scaling.softmax_regression import TOLERANCE_AT_INFINITY
from calibrant.results import how_many, number
from calibrant.typing import Array

MIN_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE = -7.0, 7.0
"""Logarithms of temperatures that are considered."""

PRECISION = 1e-10

STEPS = 100
"""Of Newton's method at most; five do for most data, two from a temperature that is near."""

SLOW = 0.2
"""Share of the slope left by a slow step. Near a minimum far less is left, on the way to an end 1/e."""

LAST = 1e-7
"""A step of this part of the power is the last: what it leaves is of the order of its square."""

NEAR = 1e-3
"""The part to which the power is known that leaves half a nat to gain."""

IMPOSSIBLE = -1e290
"""The log probability of what a cold temperature has rounded to nothing: so low, yet a number that can be compared."""

TO_THE_END = "the likelihood grows up to the end of the temperatures considered"


@dataclass(frozen=True)
class Temperature(Searching):
    """The distributions proportional to ``p^(1/T)``, with the T of largest likelihood; above 1 where the model is too sure.

    For classes the logits divided by T, which leaves the order of classes as it is; variances of normal predictions
    times T, scales of Laplace predictions. The likelihood is concave in ``1/T`` for classes, and its maximum found by Newton's
    method, in about five passes over the probabilities, where they are. A class probability
    of 0 counts as half the smallest other one, in the fit and when the map is applied.
    Guo et al. (2017); Widmann, Lindsten & Zachariah (2021), appendix F, for other families.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = Temperature().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> round(fitted.map.temperature, 1), bool(fitted.scores["change"][0] < 0)
    (2.0, True)
    """

    def find_near(
        self, known: Map | None, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
    ) -> Found:
        """Newton's method on the power of class probabilities, Brent's on the temperature of other families."""
        if isinstance(predictions, Categorical):
            start = 1 / known.temperature if isinstance(known, Tempering) else 1.0
            return _of_classes(targets, predictions, weights, start)
        return _of_numbers(targets, predictions, weights)


def _of_classes(targets: np.ndarray, predictions: Categorical, weights: np.ndarray | None, start: float) -> Found:
    p = constant(as_double_rows(predictions.matrix))
    w, rows = shares(weights, len(targets))
    least, notes = least_probability(p, rows), []
    if wrong := int((to_numpy(picked(p, targets)) == 0).sum()):
        notes.append(f"{how_many(wrong, 'row')} had probability 0 for what happened: 0 counts as {number(least)}")
    best = fitted_power(_logs(p, least), targets, matched(w, p), rows, start)
    found = Tempering("Categorical", 1 / best.power, predictions.n_classes, least)
    return Found(found, best.is_converged, (*notes, *best.notes))


def _logs(p: Array, least: float) -> Array:
    """Logarithms of probabilities, none below the least."""
    xp = namespace(p)
    found: Array = xp.log(xp.clip(p, least, None))
    return found


def _relative(logs: Array) -> Array:
    """Logarithms relative to the largest of each row."""
    return logs - namespace(logs).max(logs, axis=1, keepdims=True)


def fitted_power(logs: Array, targets: np.ndarray, w: Array, rows: float, start: float) -> "FittedPower":
    """The power b of greatest likelihood of probabilities proportional to ``exp(b logs)``, with weights that sum to 1.

    Where the likelihood grows with every power, as of classes that are told apart without error, that is the least one with
    half a nat, of all rows together, left to gain: no data ask for more, and nothing is called impossible.
    """
    logs = _relative(logs)
    at = PowerLoss(logs, picked(logs, targets), w).at
    found = likeliest_power(at, start)
    if not found.is_end or found.power < 1:
        return found
    low, high, most = 1.0, found.power, at(found.power).loss + TOLERANCE_AT_INFINITY / rows
    while high / low > 1 + NEAR:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if at(middle).loss <= most else (middle, high)
    return found._replace(power=high)


@dataclass(frozen=True, eq=False)
class PowerLoss:
    """The mean log loss of ``p^b``, normalised: logs ``(n, k)`` relative to the largest, those of what happened, weights."""

    logs: Array
    own: Array
    w: Array

    def at(self, power: float) -> "Here":
        """One pass over the logs, which makes no distribution: derivatives of ``log sum exp(b log p)`` are moments of log p."""
        xp, total = namespace(self.logs), np.zeros(3)
        for rows in row_slices(self.logs):
            logs, own, w = self.logs[rows, :], self.own[rows], self.w[rows]
            share = xp.exp(power * logs)
            size = row_sums(share)
            share *= logs
            mean = row_sums(share) / size
            spread = row_products(share, logs) / size - mean * mean
            parts = xp.log(size) - power * own, mean - own, spread
            total += to_numpy(xp.stack(parts) @ w)
        return Here(*total.tolist())


class Here(NamedTuple):
    """A function of one number at a point: value, slope and curvature."""

    loss: float
    slope: float
    curvature: float


class FittedPower(NamedTuple):
    """The power of greatest likelihood, whether it was reached, and whether a colder or hotter one would be better still."""

    power: float
    is_converged: bool = True
    is_end: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        return (TO_THE_END,) if self.is_end else ()


def likeliest_power(at: Callable[[float], Here], start: float) -> FittedPower:
    """The minimum of a convex function of a power by Newton's method inside a bracket.

    A step that leaves the bracket, or that follows a slow one, goes to the end that it heads for or, once that is known to
    lie beyond the minimum, to the middle of the bracket, in logarithms. So a minimum at an end is found at once.

    >>> likeliest_power(lambda b: Here(b - 3 * np.log(b), 1 - 3 / b, 3 / b**2), 1.0)
    FittedPower(power=3.0, is_converged=True, is_end=False)
    """
    low, high = ends = float(np.exp(-MAX_LOG_TEMPERATURE)), float(np.exp(-MIN_LOG_TEMPERATURE))
    x, before = min(max(start, low), high), np.inf
    passed = set()
    for _ in range(STEPS):
        here = at(x)
        if (x == ends[1] and here.slope <= 0) or (x == ends[0] and here.slope >= 0):
            return FittedPower(x, is_end=here.loss < at(1.0).loss)
        if here.slope == 0:
            return FittedPower(x)
        low, high = (low, x) if here.slope > 0 else (x, high)
        passed.add(x)
        step = -here.slope / here.curvature if here.curvature > 0 else -np.sign(here.slope) * np.inf
        if abs(step) <= LAST * x:
            return FittedPower(x + step)
        is_slow, before = abs(here.slope) > SLOW * before, abs(here.slope)
        if low < x + step < high and not is_slow:
            x = float(x + step)
        else:
            end = ends[int(step > 0)]
            x = end if end in (low, high) and end not in passed else float(np.sqrt(low * high))
    return FittedPower(x, is_converged=False)


def _of_numbers(targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
    if predictions[:1].temper(1.0) is NotImplemented:
        raise InputError(f"{type(predictions).__name__} predictions have no temperature")
    possible = np.flatnonzero(np.isfinite(to_numpy(predictions.log_prob(targets))))
    if not len(possible):
        raise InputError("every row had probability 0 for what happened: no temperature changes that")
    y, some, notes = targets[possible, ...], predictions[possible], []
    w = np.ones(len(targets)) if weights is None else weights
    w = w[possible] / w[possible].sum()

    def loss(log_temperature: float) -> float:
        logs = to_numpy(some.temper(float(np.exp(log_temperature))).log_prob(y))
        return -float(w @ np.maximum(logs, IMPOSSIBLE))

    hottest = _hottest(some)
    best = minimize_scalar(loss, bounds=(MIN_LOG_TEMPERATURE, hottest), method="bounded", options={"xatol": PRECISION})
    if min(loss(MIN_LOG_TEMPERATURE), loss(hottest)) <= best.fun < loss(0.0):
        notes.append(TO_THE_END)
    if impossible := len(targets) - len(possible):
        notes.append(f"{how_many(impossible, 'row')} had probability 0 for what happened, at any temperature")
    return Found(Tempering(type(predictions).__name__, float(np.exp(best.x))), bool(best.success), tuple(notes))


def _hottest(predictions: Distribution) -> float:
    """The logarithm of the highest temperature that all predictions have, of those considered, by bisection."""
    low, high = 0.0, MAX_LOG_TEMPERATURE
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
            return predictions.alike(tempered(as_double_rows(predictions.matrix), self.temperature, self.least))
        found = predictions.temper(self.temperature)
        if found is NotImplemented:
            raise InputError(f"some of these {self.family} predictions have no temperature of {self.temperature:g}")
        changed: Distribution = found
        return changed

    def check(self, predictions: Distribution) -> None:
        """Refuse other families, and other numbers of classes."""
        if type(predictions).__name__ != self.family:
            raise InputError(f"this map was fitted on {self.family} predictions; got {type(predictions).__name__}")
        if isinstance(predictions, Categorical) and self.n_classes is not None:
            check_number(predictions, self.n_classes)


def tempered(p: Array, temperature: float, least: float) -> Array:
    """Probabilities at another temperature, those below the least being that."""
    xp = namespace(p)
    power = xp.exp(_relative(_logs(p, least)) / temperature)
    power /= xp.sum(power, axis=1, keepdims=True)
    return power
