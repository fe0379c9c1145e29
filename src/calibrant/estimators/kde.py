"""The Lp calibration error by Dirichlet kernels: of an event, or of whole prediction vectors."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._array import namespace
from calibrant._validate import InputError
from calibrant.estimators.frequencies import FrequencyEstimator
from calibrant.estimators.local import signed_root, slope_of_root
from calibrant.estimators.ratios import NONE, Ratios
from calibrant.lenses import Lens
from calibrant.typing import Array


def check_power(p: float) -> None:
    """Refuse a norm that is none."""
    if not isinstance(p, int | float | np.number) or not 1 <= p < np.inf:
        raise InputError(f"p must be a number of at least 1; got {p!r}")


@dataclass(frozen=True)
class KDE(FrequencyEstimator):
    """Lp calibration error by kernel regression on the simplex.

    ``(1/n sum_j ||R_j - f_j||_p^p)^(1/p)``, where ``R_j = sum_{i != j} k(f_j; f_i) y_i / sum_{i != j} k(f_j; f_i)`` is how
    often each class occurred among predictions like ``f_j``, and k is the Dirichlet density with parameters
    ``f_i / bandwidth + 1``. Without a lens it looks at whole vectors of three or more classes (the strongest notion of
    calibration, called canonical), and at the positive class of two; ``TopLabel()`` and ``ClassWise()`` ask of events, by
    Beta kernels. Several events are averaged. ``root=False`` gives the mean of powers, before the root.

    ``bandwidth="loo"`` maximises the likelihood of each prediction given the others, but never smooths a calibrated model
    away from its own predictions by more than its noise. ``debias=True`` removes the bias of
    the ratios up to O(1/n^2) and, for p = 2, that of squares, so that the value may be negative (a negative root is that
    of the size); ``"partial"`` only that of squares; ``False`` is the plain ratio. For other p the noise of R still adds
    up, and so does what the kernel smooths away: no correction of ratios removes either. So there is no interval:
    :class:`~calibrant.ExactTest` shows the band of a calibrated model, :class:`~calibrant.Variational` gives a lower bound.
    A given bandwidth has a standard error, by the infinitesimal jackknife: the spread of the value around its own mean, not
    around the truth. It is up to half too large next to calibration. A bandwidth that is found varies as well, and a root
    near zero is not straight: no standard error then. In :class:`~calibrant.Bootstrap` repeated rows would see
    themselves. Weights count in the mean and as neighbours; they are no repetitions, because a repeated row would see its
    copy. Zeros are exact: a prediction on a face of the simplex sees others on that face alone.

    O(n^2 K) time, O(n K) memory, also for gradients of torch and JAX arrays. Popordanoska, Sayer & Blaschko (2022).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 500)
    >>> y = [rng.choice(3, p=row**2 / (row**2).sum()) for row in p]
    >>> round(KDE(p=2, bandwidth=0.05)(y, p).value, 2)  # the truth is 0.19
    0.17
    """

    p: float = 1
    bandwidth: float | Literal["loo"] = "loo"
    debias: bool | Literal["partial"] = True
    lens: Lens | None = None
    root: bool = True

    name = "KDE"
    no_interval = (
        "noise and smoothing move the value away from the true error. ExactTest(KDE(...)) shows the band of a calibrated "
        "model, Variational() gives a lower bound"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_power(self.p)

    @property
    def least(self) -> float:  # type: ignore[override]
        """Zero, unless squares are corrected."""
        return -np.inf if self.p == 2 and self.debias != NONE else 0.0

    def terms(self, ratios: Ratios, predicted: Array) -> Array:
        """Powers of gaps; of squares the corrected ones."""
        if self.p == 2:
            return ratios.square - 2 * predicted * ratios.frequency + predicted**2
        return namespace(predicted).abs(ratios.frequency - predicted) ** self.p

    def slopes(self, frequency: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """``p |R - f|^(p - 1) sign(R - f)``."""
        gap = frequency - predicted
        return self.p * np.abs(gap) ** (self.p - 1) * np.sign(gap)

    def finished(self, mean: Array) -> Array:
        """The root, with the sign of the mean."""
        return signed_root(mean, self.p) if self.root and self.p != 1 else mean

    def slope_of_finish(self, mean: float, error: float) -> float | None:
        """The derivative of the root."""
        return slope_of_root(mean, self.p, error) if self.root else 1.0
