"""Averaged penalised splines on the logit: the default for two classes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import erf, expit, log_expit, softmax

from calibrant._array import to_numpy
from calibrant._numerics.newton import Derivatives, newton
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, two_classes

SHRINKAGE = 0.1


def cubic_basis(u: np.ndarray, n_splines: int) -> np.ndarray:
    """Values of the splines at ``u`` in [0, 1], in a last axis of length ``n_splines``; four are not 0, and they sum to 1.

    >>> cubic_basis(np.array([0.0, 0.5, 1.0]), 5).round(3)
    array([[0.167, 0.667, 0.167, 0.   , 0.   ],
           [0.   , 0.167, 0.667, 0.167, 0.   ],
           [0.   , 0.   , 0.167, 0.667, 0.167]])
    """
    n_steps = n_splines - 3
    steps = u * n_steps
    cell = np.clip(steps.astype(np.int64), 0, n_steps - 1)
    t = steps - cell
    r = 1 - t
    values = np.stack([r**3, 3 * t**3 - 6 * t**2 + 4, 3 * r**3 - 6 * r**2 + 4, t**3], axis=-1) / 6
    basis = np.zeros((*u.shape, n_splines))
    np.put_along_axis(basis, cell[..., None] + np.arange(4), values, axis=-1)
    return basis


def roughness(n_splines: int) -> np.ndarray:
    """Squared second differences of the coefficients plus a tenth of their squares, ``D2' D2 + I / 10``."""
    second = np.diff(np.eye(n_splines), n=2, axis=0)
    penalty: np.ndarray = second.T @ second + SHRINKAGE * np.eye(n_splines)
    return penalty


TOLERANCE = 1e-10
"""Newton's decrement, in units of log-likelihood, at which to stop."""


@dataclass(frozen=True, eq=False)
class Counted:
    """B groups of rows alike: features ``(B, m)``, offsets, total weights, weights of ones, and what a row weighs."""

    features: np.ndarray
    offset: np.ndarray
    rows: np.ndarray
    ones: np.ndarray
    one_row: np.ndarray

    def loss(self, predictor: np.ndarray) -> np.ndarray:
        """Minus the log-likelihood, for predictors ``(..., B)``."""
        loss: np.ndarray = -(log_expit(predictor) @ self.ones + log_expit(-predictor) @ (self.rows - self.ones))
        return loss


@dataclass(frozen=True, eq=False)
class Fits:
    """Coefficients ``(L, m)`` under L penalties, and the inverses of their Hessians."""

    coefficients: np.ndarray
    inverses: np.ndarray
    is_converged: bool

    def left_out(self, data: Counted) -> np.ndarray:
        """Log-likelihood of each row under the fit without it, to the order of one Newton step, summed; ``(L,)``."""
        x = data.features
        predictor = data.offset + self.coefficients @ x.T
        mean = expit(predictor)
        own = np.maximum(((x @ self.inverses) * x).sum(axis=2), 0) * data.one_row
        push = own / np.maximum(1 - own * mean * (1 - mean), 1e-3)
        ones = log_expit(predictor - push * (1 - mean)) @ data.ones
        found: np.ndarray = ones + log_expit(-predictor - push * mean) @ (data.rows - data.ones)
        return found


def averaged(
    coefficients: np.ndarray, covariances: np.ndarray, left_out: np.ndarray, unchanged: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of coefficients over fits and no change at all, with weights exp(log-likelihood)."""
    share = softmax(np.append(left_out, unchanged))[:-1]
    mean = share @ coefficients
    apart = coefficients - mean
    between = (apart.T * share) @ apart + (1 - share.sum()) * np.outer(mean, mean)
    return mean, np.tensordot(share, covariances, 1) + between


def minima(data: Counted, penalties: np.ndarray) -> Fits:
    """For each matrix P of ``penalties``, ``(L, m, m)``, the c of least ``loss(offset + x c) + c' P c / 2``."""
    c = np.zeros(penalties.shape[:2])

    def objective(c: np.ndarray) -> np.ndarray:
        found: np.ndarray = data.loss(data.offset + c @ data.features.T)
        return found + 0.5 * ((penalties @ c[:, :, None])[:, :, 0] * c).sum(axis=1)

    found = newton(objective, partial(derivatives, data, penalties), c, tolerance=TOLERANCE)
    return Fits(found.x, np.linalg.inv(found.here.hessian), bool((found.decrement < 1e-6).all()))


def derivatives(data: Counted, penalties: np.ndarray, c: np.ndarray) -> Derivatives:
    """Gradients ``(L, m)`` and Hessians ``(L, m, m)`` of the penalised losses at ``c``."""
    x = data.features
    mean = expit(data.offset + c @ x.T)
    slope = (mean * data.rows - data.ones) @ x + (penalties @ c[:, :, None])[:, :, 0]
    return Derivatives(slope, (x.T * (data.rows * mean * (1 - mean))[:, None, :]) @ x + penalties)


SMOOTHNESS = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e10)
"""Penalties on the splines; under the last, as good as infinite, the beta-calibration terms stand alone."""

RIDGE = 1e-2
"""Penalty on the beta-calibration terms: rows that can be told apart without error have a finite optimum."""

N_TERMS = 3

CHUNK = 1 << 15
"""Rows whose features are held at a time."""


@dataclass(frozen=True)
class SplineScaling(Recalibrator):
    """The logit of f plus a smooth function of it, averaged over how smooth, down to no change at all. Two classes.

    ``logit g = logit f + a + b log f + c log(1 - f) + s(u)``, where s has ``splines`` cubic B-splines in
    ``u = (rank of f + f) / 2``. For each l in ``SMOOTHNESS`` the likelihood with the penalty ``l (D2' D2 + I / 10)`` on
    the coefficients of s has one maximum. The maxima, and the identity, are averaged with weights
    ``exp(leave-one-out log-likelihood)``, where the effect of a row on its own fit is that of one Newton step.

    Rows are counted in ``bins`` of equal size, so that a fit takes as long as a sort, O(n log n). Probabilities nearer
    to 0 or 1 than ``1 / 4n`` are taken to be there, so that f = 0 and f = 1 can be put right. The function need not
    increase. Swapping the classes swaps the answer.
    The logit of f as offset after Berta et al. (2026); the terms in log f and log(1 - f) after Kull et al. (2017).

    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(0.5, 0.5, 5_000)
    >>> truth = 1 / (1 + ((1 - f) / f) ** 0.4)
    >>> fitted = SplineScaling().fit(rng.binomial(1, truth), f)
    >>> bool(abs(fitted(f) - truth).mean() < 0.02), bool(fitted.scores["change"][0] < 0)
    (True, True)
    """

    bins: int = 256
    splines: int = 20

    def __post_init__(self) -> None:
        check_count(self.bins, "bins", least=2)
        check_count(self.splines, "splines", least=4)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """All penalties in one batch of Newton steps on the bins."""
        p = to_numpy(two_classes(predictions, "SplineScaling").matrix).astype(np.float64)
        w = in_rows(weights, len(targets))
        floor = 1 / max(4 * w.sum(), 8.0)
        logits = _logits(p, floor)
        rank, data = self._counted(logits, targets == 1, w)
        fits = minima(data, _penalties(self.splines))
        left_out, unchanged = fits.left_out(data), -float(data.loss(data.offset))
        mean, covariance = averaged(fits.coefficients, fits.inverses, left_out, unchanged)
        return Found(SplineMap(float(floor), data.offset, rank, mean, covariance), fits.is_converged)

    def _counted(self, logits: np.ndarray, is_one: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, Counted]:
        """Mean ranks of bins, and bins as groups of rows; equal logits are in the same bin."""
        z, group = np.unique(logits, return_inverse=True)
        weight = np.bincount(group, w)
        total = weight.sum()
        off_centre = (2 * np.cumsum(weight) - weight - total) / (2 * total)
        steps = np.ceil(self.bins * np.abs(off_centre) - self.bins % 2 / 2)  # from the centre: both ends are alike
        _, part = np.unique(np.sign(off_centre) * steps, return_inverse=True)
        rows = np.bincount(part, weight)
        ones = np.bincount(part, np.bincount(group, w * is_one))
        squares = np.bincount(part, np.bincount(group, w * w))
        middle, rank = (np.bincount(part, weight * value) / rows for value in (z, 0.5 + off_centre))
        return rank, Counted(_features(middle, rank, self.splines), middle, rows, ones, squares / rows)


@dataclass(frozen=True, eq=False)
class SplineMap(ClassMap):
    """What :class:`SplineScaling` found: coefficients, how well they are known, and ``rank`` of the logits ``z``."""

    floor: float
    z: np.ndarray
    rank: np.ndarray
    coefficients: np.ndarray
    covariance: np.ndarray
    n_classes: int = 2

    def __post_init__(self) -> None:
        m = len(self.coefficients)
        if not 0 < self.floor < 0.5 or self.z.shape != self.rank.shape or self.covariance.shape != (m, m):
            raise InputError("a spline map needs a floor below 1/2, a rank per logit, and a covariance of coefficients")
        if self.n_classes != 2:
            raise InputError(f"a spline map has two classes; got {self.n_classes}")

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """``(n, 2)`` from ``(n, 2)``; both from the logit, so that no tail is lost in a difference."""
        logits = np.concatenate([z + x @ self.coefficients for z, x in self._chunks(p)])
        return np.stack([expit(-logits), expit(logits)], axis=1)

    def direction(self, p: np.ndarray) -> np.ndarray:
        """How sure it is that class 1 is more likely than ``p``, ``(n, 2)``, says: ``(n,)``, from -1 to 1.

        The mean of ``sign(g - f)`` if the change of the logit, ``d = logit g - logit f``, is normal about what was found:
        ``2 Phi(d / sd(d)) - 1``. The variance of d is that of each penalty's fit, averaged, plus that between
        the fits, the identity among them. As it lies between -1 and 1 and depends on the prediction only,
        ``E direction(f) (y - f) <= E |E[y | f] - f|``: it may stand where the sign would, and is near 0 where the sign
        is a toss-up.
        """
        return np.concatenate([self._mean_sign(x) for _, x in self._chunks(p)])

    def certainty(self, p: np.ndarray) -> np.ndarray:
        """The size of :meth:`direction`, ``(n,)``, from 0 to 1."""
        return np.abs(self.direction(p))

    def _mean_sign(self, x: np.ndarray) -> np.ndarray:
        variance = ((x @ self.covariance) * x).sum(axis=1)
        sure: np.ndarray = erf(x @ self.coefficients / np.sqrt(2 * np.maximum(variance, np.finfo(np.float64).tiny)))
        return sure

    def _chunks(self, p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Logits and features of some rows at a time."""
        for start in range(0, max(len(p), 1), CHUNK):
            z = _logits(p[start : start + CHUNK], self.floor)
            yield z, _features(z, np.interp(z, self.z, self.rank), len(self.coefficients) - N_TERMS)


def _logits(p: np.ndarray, floor: float) -> np.ndarray:
    """Log-odds of class 1, ``(n,)``, from ``(n, 2)``, no farther out than those of the floor."""
    furthest = np.log1p(-floor) - np.log(floor)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p[:, 1]) - np.log(p[:, 0]), -furthest, furthest)


def _features(z: np.ndarray, rank: np.ndarray, n_splines: int) -> np.ndarray:
    """The terms of beta calibration, then the splines."""
    terms = np.stack([np.ones_like(z), -np.logaddexp(0, -z), -np.logaddexp(0, z)], axis=1)
    return np.concatenate([terms, cubic_basis((rank + expit(z)) / 2, n_splines)], axis=1)


def _penalties(n_splines: int) -> np.ndarray:
    """One matrix per smoothness."""
    penalties = np.zeros((len(SMOOTHNESS), N_TERMS + n_splines, N_TERMS + n_splines))
    penalties[:, :N_TERMS, :N_TERMS] = RIDGE * np.eye(N_TERMS)
    penalties[:, N_TERMS:, N_TERMS:] = np.multiply.outer(SMOOTHNESS, roughness(n_splines))
    return penalties
