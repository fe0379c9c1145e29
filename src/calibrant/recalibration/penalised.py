"""Penalised logistic regressions on counted rows, one a penalty and all solved together, and averages of fits."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, softmax

ITERATIONS = 100
HALVINGS = 40
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

    for _ in range(ITERATIONS):
        slope, curvature = derivatives(data, penalties, c)
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        decrement = (step * slope).sum(axis=1)
        if (decrement < TOLERANCE).all():
            break
        c = _descended(objective, c, step, decrement)
    return Fits(c, np.linalg.inv(curvature), bool((decrement < 1e-6).all()))


def derivatives(data: Counted, penalties: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients ``(L, m)`` and Hessians ``(L, m, m)`` of the penalised losses at ``c``."""
    x = data.features
    mean = expit(data.offset + c @ x.T)
    slope = (mean * data.rows - data.ones) @ x + (penalties @ c[:, :, None])[:, :, 0]
    return slope, (x.T * (data.rows * mean * (1 - mean))[:, None, :]) @ x + penalties


def _descended(
    objective: Callable[[np.ndarray], np.ndarray], c: np.ndarray, step: np.ndarray, decrement: np.ndarray
) -> np.ndarray:
    """Each fit a step down, halved until it is one."""
    value, size = objective(c), np.ones(len(c))
    for _ in range(HALVINGS):
        trial = c - size[:, None] * step
        is_worse = objective(trial) > value - 1e-4 * size * decrement + 1e-12 * np.abs(value)
        if not is_worse.any():
            break
        size = np.where(is_worse, size / 2, size)
    return np.where(is_worse[:, None], c, trial)
