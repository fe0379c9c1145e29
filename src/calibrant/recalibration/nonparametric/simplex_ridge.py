"""Kernel ridge regression on the simplex, of what a first recalibrator left over."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, Map, check_classes
from calibrant.recalibration.margin import check_margin, expected_spread, gain_beyond
from calibrant.recalibration.nonparametric.shared_spline import SharedMap, SharedSpline
from calibrant.recalibration.scaling.matrix import LinearLogits
from calibrant.recalibration.scaling.temperature import Tempering

BANDWIDTHS = (0.1, 0.2, 0.4)
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
KEPT = 0.5
"""The part of the first recalibrator's probability that no class loses."""

JUDGES = 1 << 11
"""Rows that are left out in turn, to choose bandwidth and penalty; more would choose alike."""

CHUNK = 1 << 12
"""Rows whose features are held at a time."""


@dataclass(frozen=True)
class SimplexRidge(Recalibrator):
    """What a first recalibrator g1 left over, ``y - g1``, as a smooth function of all probabilities, added to it.

    Ridge regression on Nystrom features, at ``landmarks`` rows, of the Gaussian kernel
    ``exp(-|sqrt f - sqrt f'|^2 / 2 h^2)``, with the bandwidth h and the penalty of least squared leave-one-out residuals
    ``(r_i / (1 - h_i))^2``, in closed form, at 2,048 rows; doing nothing is among the choices, and is chosen unless the ridge is
    better by more than ``margin`` standard errors, at least those of outcomes between both. The answer is the point nearest to
    ``g1 + r`` among probabilities of which none is below half of g1's. O(n (landmarks + k) landmarks). Landmarks are rows
    drawn with ``seed``. Permuting classes permutes the answer if it does that of ``first``. Recalibrators to measure calibration
    with: Berta et al. (2026).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> truth = p[:, [1, 2, 0]] * 0.3 + p * 0.7
    >>> fitted = SimplexRidge().fit([rng.choice(3, p=row) for row in truth], p)
    >>> bool(abs(fitted(p) - truth).mean() < abs(p - truth).mean() / 2), bool(fitted.scores["change"][0] < 0)
    (True, True)
    """

    first: Recalibrator = field(default_factory=SharedSpline)
    landmarks: int = 128
    seed: int = 0
    margin: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.landmarks, "landmarks", least=1)
        check_margin(self.margin)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The first recalibrator, then one eigenvalue problem a bandwidth."""
        check_classes(predictions, "SimplexRidge")
        assert isinstance(predictions, Categorical)
        first = self.first.find(targets, predictions, weights)
        w = in_rows(weights, len(targets))
        p = to_numpy(predictions.matrix).astype(np.float64)
        g = _chances(first.map, p)
        rest = (targets[:, None] == np.arange(p.shape[1])) - g
        marks = np.sqrt(p[_drawn(p, self.landmarks, self.seed)])
        judges = np.sort(np.random.default_rng(self.seed).permutation(len(p))[:JUDGES])
        tries = [_best_ridge(np.sqrt(p), marks, rest, w, bandwidth, judges) for bandwidth in BANDWIDTHS]
        best = min(tries, key=lambda found: w[judges] @ found.errors)
        share, g = w[judges] / w[judges].sum(), g[judges]
        spread = expected_spread(-2 * best.moved, g, g + best.moved) if self.margin else 0.0
        if not gain_beyond(self.margin, (rest[judges] ** 2).sum(axis=1), best.errors, share, spread):
            best = best._replace(slopes=0 * best.slopes, covariance=0 * best.covariance)
        rows, k = float(w.sum()), p.shape[1]
        found = SimplexMap(first.map, marks, best.bandwidth, best.slopes, best.covariance, rows, k)
        return Found(found, first.is_converged, first.notes)


@dataclass(frozen=True, eq=False)
class SimplexMap(ClassMap):
    """What :class:`SimplexRidge` found: the first map, and slopes ``(m, k)`` of the kernel at m landmarks."""

    first: Map
    landmarks: np.ndarray
    bandwidth: float
    slopes: np.ndarray
    covariance: np.ndarray
    n: float
    n_classes: int

    def __post_init__(self) -> None:
        if not isinstance(self.first, Map):
            object.__setattr__(self, "first", Map.from_dict(self.first))
        m, k = len(self.landmarks), self.n_classes
        if self.slopes.shape != (m, k) or self.covariance.shape != (m, m) or self.landmarks.shape != (m, k):
            raise InputError(f"{m} landmarks of {k} classes need as many slopes, and a covariance")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """The first map's, moved by the kernel's answer."""
        if not self.slopes.any():
            return _chances(self.first, p)
        parts = []
        for rows in _slices(len(p)):
            g = _chances(self.first, p[rows])
            moved = g + _kernel(np.sqrt(p[rows]), self.landmarks, self.bandwidth) @ self.slopes
            parts.append(KEPT * g + (1 - KEPT) * projected((moved - KEPT * g) / (1 - KEPT)))
        return np.concatenate(parts)

    def certainty(self, p: np.ndarray) -> np.ndarray:
        """How sure the direction of ``d = g - f`` is, ``(n,)``, from 0 to 1, for probabilities f ``(n, k)``.

        The length of the mean of ``d / |d|`` if d has the variance v, summed over classes, about what was found:
        about ``|d| / sqrt(|d|^2 + v)``. As it is at most 1 and depends on predictions only, the gradient of a norm at d
        may be multiplied by it: what it finds of the calibration error is still a lower bound, with less noise where
        nothing is wrong.
        """
        squares = ((self.probabilities(p) - p) ** 2).sum(axis=1)
        return np.sqrt(squares / (squares + self.variance(p) + np.finfo(np.float64).tiny))

    def variance(self, p: np.ndarray) -> np.ndarray:
        """Approximate variances of the probabilities found, summed over classes, ``(n,)``.

        Of the ridge: leverage times the variance of a row, ``1 - |g1|^2``. Of a first map that does not know its own:
        the leverage of its m coefficients a class, ``m / n``, k + 1 of a linear map of k logits and a constant.
        """
        parts = []
        for rows in _slices(len(p)):
            features = _kernel(np.sqrt(p[rows]), self.landmarks, self.bandwidth)
            leverage = np.maximum(((features @ self.covariance) * features).sum(axis=1), 0)
            noise = 1 - (_chances(self.first, p[rows]) ** 2).sum(axis=1)
            own = noise * _coefficients(self.first, self.n_classes) / self.n
            if isinstance(self.first, SharedMap):
                own = self.first.variance(p[rows])
            parts.append(leverage * noise + own)
        return np.concatenate(parts)


def _coefficients(first: Map, n_classes: int) -> int:
    """How many a class a map has; of a temperature one for all classes counts as one for each."""
    if isinstance(first, Tempering):
        return 1
    return 2 if isinstance(first, LinearLogits) and first.weights.ndim == 1 else n_classes + 1


def _drawn(p: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Numbers of at most so many rows, no two alike: repeating rows or naming classes otherwise changes nothing."""
    mixed = (p * np.random.default_rng(0).random(p.shape[1])).sum(axis=1)  # tells rows apart faster than all columns
    different = np.sort(np.unique(mixed, return_index=True)[1])
    return np.sort(different[np.random.default_rng(seed).permutation(len(different))[:size]])


def projected(x: np.ndarray) -> np.ndarray:
    """The nearest points of the simplex to the rows of ``x``."""
    falling = -np.sort(-x, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, x.shape[1] + 1)
    last = (falling > excess).sum(axis=1, keepdims=True) - 1
    return np.maximum(x - np.take_along_axis(excess, last, axis=1), 0)


def _chances(first: Map, p: np.ndarray) -> np.ndarray:
    """What a map of any kind makes of probabilities."""
    found = first.apply(Categorical.trusted(p))
    assert isinstance(found, Categorical)
    return np.asarray(found.matrix)


def _kernel(x: np.ndarray, marks: np.ndarray, bandwidth: float) -> np.ndarray:
    """Gaussian kernel of rows and landmarks, whose distances come from products around the middle of the landmarks."""
    x, marks = x - marks.mean(axis=0), marks - marks.mean(axis=0)
    squares = (x**2).sum(axis=1)[:, None] + (marks**2).sum(axis=1) - 2 * x @ marks.T
    return np.exp(np.maximum(squares, 0) / (-2 * bandwidth**2))


class _Ridge(NamedTuple):
    """Leave-one-out errors of some rows, what probabilities are moved by there, bandwidth, slopes and covariance."""

    errors: np.ndarray
    moved: np.ndarray
    bandwidth: float
    slopes: np.ndarray
    covariance: np.ndarray


def _best_ridge(
    x: np.ndarray, marks: np.ndarray, rest: np.ndarray, w: np.ndarray, bandwidth: float, judges: np.ndarray
) -> _Ridge:
    """The ridge of a bandwidth whose penalty has the least error."""
    values, vectors = np.linalg.eigh(_kernel(marks, marks, bandwidth))
    is_kept = values > 1e-8 * values[-1]
    whiten = vectors[:, is_kept] / np.sqrt(values[is_kept])
    gram, cross = np.zeros((len(marks), len(marks))), np.zeros((len(marks), rest.shape[1]))
    for rows in _slices(len(x)):
        features = _kernel(x[rows], marks, bandwidth)
        weighted = features.T * w[rows]
        gram += weighted @ features
        cross += weighted @ rest[rows]
    scales, turn = np.linalg.eigh(whiten.T @ gram @ whiten)
    shrunk = 1 / (np.maximum(scales, 0) + np.array(PENALTIES)[:, None])
    turned = whiten @ turn
    cross = turned.T @ cross
    z = _kernel(x[judges], marks, bandwidth) @ turned
    own = w[judges, None] * (z**2 @ shrunk.T)
    # Squared lengths of the rows of ``rest - (z shrunk) cross``, without a table of all classes per penalty.
    seen, squares, gram = rest[judges] @ cross.T, (rest[judges] ** 2).sum(axis=1), cross @ cross.T
    left = [squares + ((z * s) * ((z * s) @ gram - 2 * seen)).sum(axis=1) for s in shrunk]
    errors = [np.maximum(each, 0) / (1 - own[:, i]) ** 2 for i, each in enumerate(left)]
    best = int(np.argmin([w[judges] @ each for each in errors]))
    slopes = turned @ (shrunk[best][:, None] * cross)
    seen = rest[judges]
    moved = seen - (seen - (z * shrunk[best]) @ cross) / (1 - own[:, best, None])
    return _Ridge(errors[best], moved, bandwidth, slopes, (turned * shrunk[best]) @ turned.T)


def _slices(n: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, max(n, 1), CHUNK))
