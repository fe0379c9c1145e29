"""A complete recalibrator: towards the base rates, by the share of largest likelihood. Copy, rename, change.

>>> from calibrant.checks import check_recalibrator
>>> rng = np.random.default_rng(0)
>>> y_pred = rng.random(2_000)
>>> y_true = (rng.random(2_000) < 0.5 * y_pred + 0.25) * 1
>>> fitted = Shrinkage().fit(y_true, y_pred)
>>> round(fitted.map.share, 1), bool(fitted.scores["change"][0] < 0)
(0.5, True)
>>> check_recalibrator(Shrinkage(), rng, 3)
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from calibrant import Categorical
from calibrant._array import to_numpy
from calibrant.distributions import Distribution
from calibrant.recalibration import ClassMap, Found, Recalibrator, check_classes


@dataclass(frozen=True)
class Shrinkage(Recalibrator):
    """``(1 - s) p + s r``, with r the frequencies of the classes and s from 0 to ``most``. Concave, O(n k) per step."""

    most: float = 0.99

    def find(self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None) -> Found:
        """The share of largest likelihood."""
        check_classes(predictions, "Shrinkage")
        assert isinstance(predictions, Categorical)
        k, w = predictions.n_classes, np.ones(len(targets)) if weights is None else weights
        rates = np.bincount(targets, w, minlength=k) / w.sum()
        predicted = to_numpy(predictions.matrix).astype(np.float64)[np.arange(len(targets)), targets]

        def loss(share: float) -> float:
            return -float(w @ np.log((1 - share) * predicted + share * rates[targets]))

        best = minimize_scalar(loss, bounds=(0.0, self.most), method="bounded", options={"xatol": 1e-10})
        return Found(Shrunk(k, float(best.x), rates), bool(best.success))


@dataclass(frozen=True, eq=False)
class Shrunk(ClassMap):
    """What was found, as numbers and arrays: this is all that JSON needs."""

    n_classes: int
    share: float
    rates: np.ndarray

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """``(n, k)`` from ``(n, k)``."""
        return (1 - self.share) * p / p.sum(axis=1, keepdims=True) + self.share * self.rates
