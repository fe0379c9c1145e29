"""Roots of the squared kernel calibration error: the KCE, and the MMCE of confidences."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.skce import SKCE
from calibrant.kernels import Exponential, Kernel
from calibrant.lenses import TopLabel
from calibrant.results import Estimate
from calibrant.typing import Array, Engine


@dataclass(frozen=True)
class KCE(BaseEstimator):
    """Kernel calibration error: the root of the biased :class:`SKCE`, on the scale of the kernel.

    >>> from calibrant import KCE
    >>> round(KCE()([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).value, 4)
    0.1788
    """

    on_predictions: Kernel = Exponential()  # noqa: RUF009  # frozen
    on_targets: Kernel | None = None

    least = 0.0

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The root; rounding may leave a tiny negative square, which is zero."""
        return self.estimate_by(None, targets, predictions, weights)

    def estimate_by(
        self, engine: Engine | None, targets: Array, predictions: Distribution, weights: np.ndarray | None
    ) -> Estimate:
        """The same by an engine."""
        square = SKCE(self.on_predictions, self.on_targets, unbiased=False)
        squared = square.estimate_by(engine, targets, predictions, weights)
        resolved = squared.estimator
        assert isinstance(resolved, SKCE)
        estimator = KCE(resolved.on_predictions, resolved.on_targets)
        return Estimate("KCE", _root(squared.value), squared.n, estimator, route=squared.route)


@dataclass(frozen=True)
class MMCE(BaseEstimator):
    """Maximum mean calibration error of the confidence: the kernel error of the favoured class being right.

    ``sqrt(1/n^2 sum_ij (c_i - r_i)(c_j - r_j) exp(-|r_i - r_j| / l))`` with confidences r and hits c. It is the KCE seen
    through ``TopLabel()``, where two-class residuals count twice and distances are ``sqrt2`` longer.
    O(n log n). Kumar, Sarawagi & Jain (2018).

    >>> from calibrant import MMCE
    >>> round(MMCE()([0, 1, 1], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]).value, 4)
    0.1793
    """

    lengthscale: float = 0.4

    least = 0.0

    def __post_init__(self) -> None:
        if not self.lengthscale > 0:
            raise InputError(f"lengthscale must be positive; got {self.lengthscale!r}")

    def estimate(self, targets: Array, predictions: Distribution, weights: np.ndarray | None) -> Estimate:
        """The root of half the two-class error."""
        hit, confidence = TopLabel()(targets, predictions)
        kernel = Exponential(2**0.5 * self.lengthscale)
        squared = SKCE(kernel, unbiased=False).estimate(hit, confidence, weights)
        value = _root(squared.value / 2)
        return Estimate("MMCE", value, squared.n, self, "top-label", route=squared.route)


def _root(square: Any) -> Any:
    """The root of what rounding may have left below zero; its derivative is zero there."""
    if isinstance(square, float):
        return math.sqrt(max(square, 0.0))
    xp = namespace(square)
    positive = square > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, square, xp.ones_like(square))), xp.zeros_like(square))
