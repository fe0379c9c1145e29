"""Temperature and one smooth function of the log-probability that all classes share."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax

from calibrant._array import to_numpy
from calibrant._numerics.newton import newton
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, in_rows
from calibrant.recalibration.maps import ClassMap, check_classes
from calibrant.recalibration.nonparametric.spline import averaged, cubic_basis, roughness

SMOOTHNESS = (1e10, 1e3, 100.0, 10.0, 1.0)
"""Penalties on the splines, stiffest first, each fit starting from the last; under the first a temperature stands alone."""

RIDGE = 1e-2

LEVELS = 1024
"""Places at which the splines are tabulated for the fit."""

N_RANKS = 256

CHUNK = 1 << 20
"""Features held at a time."""

TOLERANCE = 1e-9


@dataclass(frozen=True)
class SharedSpline(Recalibrator):
    """Logits ``b log f_j + s(u_j)``, with one b and one smooth s for all classes, averaged over how smooth s is.

    s has ``splines`` cubic B-splines in ``u_j = (rank of f_j + f_j) / 2``, where the rank is among the probabilities of
    all rows and classes. Likelihood, penalty ``l (D2' D2 + I / 10)``, leave-one-out weights with the identity
    among the fits, and the floor ``1 / 4n`` are those of :class:`SplineScaling`. O(n k splines) a Newton step;
    s is tabulated at 1,024 places during the fit. Permuting classes permutes the answer. After Berta et al. (2026).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> fitted = SharedSpline().fit([rng.choice(3, p=row) for row in p], sharp)
    >>> bool(abs(fitted(sharp) - p).mean() < 0.03), bool(fitted.scores["change"][0] < 0)
    (True, True)
    """

    splines: int = 12

    def __post_init__(self) -> None:
        check_count(self.splines, "splines", least=4)

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """Newton's method for each penalty."""
        check_classes(predictions, "SharedSpline")
        assert isinstance(predictions, Categorical)
        w = in_rows(weights, len(targets))
        floor = float(1 / max(4 * w.sum(), 8.0))
        logs = floored_logs(to_numpy(predictions.matrix).astype(np.float64), floor)
        z, rank = _ranks(logs, w)
        problem = _Problem(logs, _levels(logs, z, rank), targets.astype(np.int64), w, self.splines)
        unchanged = np.zeros(1 + self.splines)
        fits: list[_Fit] = []
        for smoothness in SMOOTHNESS:
            fits.append(problem.minimum(fits[-1].coefficients if fits else unchanged, smoothness))
        coefficients, covariances, left_out, converged = (np.array(part) for part in zip(*fits, strict=True))
        mean, covariance = averaged(coefficients, covariances, left_out, -problem.loss(unchanged))
        return Found(SharedMap(floor, z, rank, mean, covariance, predictions.n_classes), bool(converged.all()))


@dataclass(frozen=True, eq=False)
class SharedMap(ClassMap):
    """What :class:`SharedSpline` found: coefficients, how well they are known, and ``rank`` of log-probabilities ``z``."""

    floor: float
    z: np.ndarray
    rank: np.ndarray
    coefficients: np.ndarray
    covariance: np.ndarray
    n_classes: int

    def __post_init__(self) -> None:
        m = len(self.coefficients)
        if not 0 < self.floor < 0.5 or self.z.shape != self.rank.shape or self.covariance.shape != (m, m):
            raise InputError(
                "a shared map needs a floor below 1/2, a rank a logarithm, and a covariance of coefficients"
            )

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Softmax of the logits."""
        return np.concatenate([softmax(logs + x @ self.coefficients, axis=1) for logs, x in self._chunks(p)])

    def variance(self, p: np.ndarray) -> np.ndarray:
        """Approximate variances of the probabilities found, summed over classes, ``(n,)``."""
        root = _root(self.covariance)
        parts = []
        for logs, x in self._chunks(p):
            g = softmax(logs + x @ self.coefficients, axis=1)
            slopes = x @ root
            slopes = g[:, :, None] * (slopes - np.einsum("nj,njm->nm", g, slopes)[:, None, :])
            parts.append((slopes**2).sum(axis=(1, 2)))
        return np.concatenate(parts)

    def _chunks(self, p: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Logs ``(rows, k)`` and features ``(rows, k, m)`` of some rows at a time."""
        m = len(self.coefficients)
        size = max(CHUNK // (m * p.shape[1]), 1)
        for start in range(0, max(len(p), 1), size):
            logs = floored_logs(p[start : start + size], self.floor)
            basis = cubic_basis((np.interp(logs, self.z, self.rank) + np.exp(logs)) / 2, m - 1)
            yield logs, np.concatenate([logs[:, :, None], basis], axis=2)


def floored_logs(p: np.ndarray, floor: float) -> np.ndarray:
    """Logarithms of probabilities, none below that of the floor nor above 0."""
    return np.log(np.clip(p, floor, 1))


def _ranks(logs: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some of the logarithms in increasing order, and their ranks, from 0 to 1, among all."""
    order = np.argsort(logs, axis=None, kind="stable")
    z = logs.ravel()[order]
    total = np.concatenate([[0.0], np.cumsum(w[order // logs.shape[1]])])
    levels = np.linspace(0, 1, N_RANKS) * total[-1]
    some = np.unique(z[np.minimum(np.searchsorted(total[1:], levels), len(z) - 1)])
    low, high = (total[np.searchsorted(z, some, side)] for side in ("left", "right"))
    return some, (low + high) / (2 * total[-1])


def _log_sums(logits: np.ndarray) -> np.ndarray:
    """Logarithms of the sums of exponentials, one per row."""
    top = logits.max(axis=1)
    found: np.ndarray = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    return found


def _levels(logs: np.ndarray, z: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """The nearest tabulated place of each probability."""
    u = (np.interp(logs, z, rank) + np.exp(logs)) / 2
    return np.rint(u * (LEVELS - 1)).astype(np.int32)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A with A A' the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = vectors * np.sqrt(np.maximum(values, 0))
    return root


class _Penalised(NamedTuple):
    """Derivatives of the penalised loss, and the Hessian of the loss alone."""

    gradient: np.ndarray
    hessian: np.ndarray
    of_loss: np.ndarray


class _Fit(NamedTuple):
    """Coefficients, how well they are known, their leave-one-out log-likelihood, and whether they were reached."""

    coefficients: np.ndarray
    covariance: np.ndarray
    left_out: float
    is_converged: bool


@dataclass(frozen=True, eq=False)
class _Problem:
    """Logs and places ``(n, k)``, targets and weights ``(n,)``."""

    logs: np.ndarray
    places: np.ndarray
    targets: np.ndarray
    w: np.ndarray
    splines: int

    @cached_property
    def table(self) -> np.ndarray:
        """Splines at all places, ``(LEVELS, splines)``."""
        return cubic_basis(np.linspace(0, 1, LEVELS), self.splines)

    def predictor(self, c: np.ndarray) -> np.ndarray:
        """Logits, ``(n, k)``."""
        logits: np.ndarray = (1 + c[0]) * self.logs + (self.table @ c[1:])[self.places]
        return logits

    def loss(self, c: np.ndarray) -> float:
        """Minus the log-likelihood."""
        return self.loss_of(self.predictor(c))

    def loss_of(self, logits: np.ndarray) -> float:
        """Minus the log-likelihood of logits."""
        own = np.take_along_axis(logits, self.targets[:, None], axis=1)[:, 0]
        return float(self.w @ (_log_sums(logits) - own))

    def minimum(self, c: np.ndarray, smoothness: float) -> _Fit:
        """The coefficients of least penalised loss, by Newton's method from ``c``."""
        penalty = np.zeros((len(c), len(c)))
        penalty[0, 0] = RIDGE
        penalty[1:, 1:] = smoothness * roughness(self.splines)

        def objective(c: np.ndarray) -> np.ndarray:
            return np.asarray(self.loss(c) + 0.5 * c @ penalty @ c)

        def penalised(c: np.ndarray) -> _Penalised:
            slope, curvature = self.derivatives(c)
            return _Penalised(slope + penalty @ c, curvature + penalty, curvature)

        found = newton(objective, penalised, c, tolerance=TOLERANCE)
        covariance = np.linalg.inv(found.here.hessian)
        left_out = self.left_out(found.x, covariance, float((covariance * found.here.of_loss).sum()))
        return _Fit(found.x, covariance, left_out, bool(found.decrement < 1e-6))

    def derivatives(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the loss."""
        g = softmax(self.predictor(c), axis=1)
        n, k = g.shape
        at = csr_array((g.ravel(), self.places.ravel(), np.arange(0, n * k + 1, k)), (n, LEVELS))
        mean = np.column_stack([(g * self.logs).sum(axis=1), at @ self.table])
        rows = np.arange(n)
        own = np.column_stack([self.logs[rows, self.targets], self.table[self.places[rows, self.targets]]])
        share = self.w[:, None] * g
        mass = np.bincount(self.places.ravel(), share.ravel(), LEVELS)
        logs = np.bincount(self.places.ravel(), (share * self.logs).ravel(), LEVELS)
        curvature = -(mean.T * self.w) @ mean
        curvature[0, 0] += (share * self.logs**2).sum()
        curvature[0, 1:] += logs @ self.table
        curvature[1:, 0] += logs @ self.table
        curvature[1:, 1:] += (self.table.T * mass) @ self.table
        return self.w @ (mean - own), curvature

    def left_out(self, c: np.ndarray, covariance: np.ndarray, freedom: float) -> float:
        """Log-likelihood of each row under the fit without it, to the order of one Newton step, summed."""
        logits = self.predictor(c)
        stretch = 1 / max(1 - freedom / self.w.sum(), 1e-2)
        size = max(CHUNK // (len(c) * logits.shape[1]), 1)
        for start in range(0, len(logits), size):
            rows = slice(start, start + size)
            x = np.concatenate([self.logs[rows][:, :, None], self.table[self.places[rows]]], axis=2)
            g = softmax(logits[rows], axis=1)
            push = np.matmul(g[:, None, :], x)[:, 0] - x[np.arange(len(x)), self.targets[rows]]
            push = stretch * self.w[rows, None] * (push @ covariance)
            logits[rows] += np.matmul(x, push[:, :, None])[:, :, 0]
        return -self.loss_of(logits)
