"""How much the predictions tell: the mean square of what happens around each."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.estimators.frequencies import FrequencyEstimator
from calibrant.estimators.ratios import Ratios
from calibrant.lenses import Lens
from calibrant.typing import Array


@dataclass(frozen=True)
class Sharpness(FrequencyEstimator):
    """``E ||E[y | f]||^2`` by kernel regression on the simplex; less ``||E y||^2`` it is the variance of ``E[y | f]``.

    It is 1 for predictions that know every outcome, and the sum of squared base rates for predictions that know nothing.
    With the squared calibration error, ``KDE(p=2, root=False)``, it makes up the Brier score:
    ``E ||f - y||^2 = CE^2 - E ||E[y | f]||^2 + E ||y||^2``. Settings are those of :class:`KDE`; an event counts the
    occurrence alone. O(n^2 K) time, O(n K) memory. Popordanoska, Sayer & Blaschko (2022), equation (7).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2_000)
    >>> y = (rng.random(2_000) < p) * 1
    >>> round(Sharpness()(y, p).value, 2)  # E p^2 = 1/3
    0.34
    """

    bandwidth: float | Literal["loo"] = "loo"
    debias: bool | Literal["partial"] = True
    lens: Lens | None = None

    name = "sharpness"

    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """Squares of frequencies."""
        return ratios.square

    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """``2 R``."""
        return 2 * frequency
