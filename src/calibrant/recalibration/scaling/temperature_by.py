"""The temperature of least error, whatever the error."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant._array import as_double_rows, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.recalibration.base import Found, Recalibrator, shares
from calibrant.recalibration.maps import least_probability
from calibrant.recalibration.scaling.temperature import Tempering

MAX_LOG_TEMPERATURE = float(np.log(16))
"""Logarithms of temperatures that are tried lie between this and its negative: beyond, predictions say nothing, or all."""

GRID = 25
"""Temperatures tried before the best is refined: an error may have several minima."""


@dataclass(frozen=True)
class TemperatureBy(Recalibrator):
    """The distributions proportional to ``p^(1/T)``, with the T of least ``error``: any estimator, such as ``KCE()``.

    For any family that :class:`Temperature` takes; T from 1/16 to 16. The error may have several minima: T is the best of
    a grid, refined. Length scales that a kernel error leaves open are those of the predictions as given.

    A calibration error does not reward knowledge: predictions that say nothing can be calibrated, too. Scores such as
    ``Brier()`` or ``CRPS()`` reward both, and :class:`Temperature` is the one of largest likelihood, which is found faster.
    Forty estimates, O(40 n^2) for kernel errors. Widmann, Lindsten & Zachariah (2021), appendix F.

    >>> from calibrant import Brier
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2_000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> fitted = TemperatureBy(Brier()).fit([rng.choice(3, p=row) for row in p], sharp)
    >>> round(fitted.map.temperature, 1), bool(fitted.scores["change"][0] < 0)
    (2.1, True)
    """

    error: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.error):
            raise InputError(f"error must be an estimator such as KCE() or Brier(); got {self.error!r}")

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The best of a grid, then between its neighbours."""
        if predictions[:1].temper(1.0) is NotImplemented:
            raise InputError(f"{type(predictions).__name__} predictions have no temperature")
        least = 0.0
        if isinstance(predictions, Categorical):
            least = least_probability(as_double_rows(predictions.matrix), shares(weights, len(targets))[1])
        settle = getattr(self.error, "resolved", None)
        error = self.error if settle is None else settle(predictions)
        n_classes = predictions.n_classes if isinstance(predictions, Categorical) else None

        def at(log_temperature: float) -> float:
            tempering = Tempering(type(predictions).__name__, float(np.exp(log_temperature)), n_classes, least)
            try:
                return _value(error, targets, tempering.apply(predictions), weights)
            except InputError:  # some families have no distribution at every temperature
                return np.inf

        grid = np.linspace(-MAX_LOG_TEMPERATURE, MAX_LOG_TEMPERATURE, GRID)
        values = np.array([at(x) for x in grid])
        if not np.isfinite(values).any():
            raise InputError(f"{self.error!r} has no value at any temperature")
        best = int(np.argmin(values))
        ends = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
        finer = minimize_scalar(at, bounds=ends, method="bounded", options={"xatol": 1e-4, "maxiter": 30})
        chosen = float(finer.x) if finer.fun < values[best] else float(grid[best])
        notes = () if 0 < best < GRID - 1 else ("the error falls up to the end of the temperatures considered",)
        return Found(Tempering(type(predictions).__name__, float(np.exp(chosen)), n_classes, least), notes=notes)


def _value(
    error: Callable[..., Any], targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None
) -> float:
    """The error of a checked problem, on the host."""
    estimate = getattr(error, "estimate", None)
    if estimate is not None:
        return float(to_numpy(estimate(targets, predictions, weights).value))
    return float(error(targets, predictions, **({} if weights is None else {"sample_weight": weights})))
