"""True calibration curves: how often the event happens where a score was given."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from calibrant._validate import InputError, did_you_mean
from calibrant.lab.problems.world import check_positive

SCALES = ("logit", "log", "logflip")
"""The log-odds, the logarithm of a probability, and the logarithm of what is missing to one."""

TINY = float(np.finfo(float).tiny)


class Curve(ABC):
    """The probability of the event as a function of the score; subclasses are frozen dataclasses that write :meth:`at`."""

    @property
    def is_identity(self) -> bool:
        """Whether scores are calibrated."""
        return False

    @abstractmethod
    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The probability at scores, and at ``rest``, one minus the score: known better where scores round to one."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The probability at scores, within [0, 1] also at the ends."""
        scores = np.asarray(scores, dtype=float)
        return self.at(scores, 1 - scores)


def on_scale(scale: str, p: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Probabilities on one of the scales; finite also at certainty.

    >>> on_scale("logflip", np.array([0.0, 1.0]), np.array([1.0, 0.0])).round(1)
    array([   0. , -708.4])
    """
    if scale == "log":
        return np.log(np.maximum(p, TINY))
    if scale == "logflip":
        return np.log(np.maximum(rest, TINY))
    return np.log(np.maximum(p, TINY)) - np.log(np.maximum(rest, TINY))


def from_scale(scale: str, value: np.ndarray) -> np.ndarray:
    """Probabilities from one of the scales; what would exceed certainty is certain.

    >>> from_scale("logflip", np.log([0.25, 2.0]))
    array([0.75, 0.  ])
    """
    if scale == "logit":
        return expit(value)
    below = np.minimum(value, 0.0)
    return np.exp(below) if scale == "log" else 0.0 - np.expm1(below)


@dataclass(frozen=True)
class Diagonal(Curve):
    """Events happen as often as predicted.

    >>> Diagonal()(np.array([0.3]))
    array([0.3])
    """

    @property
    def is_identity(self) -> bool:
        """Yes."""
        return True

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The score itself."""
        return scores


@dataclass(frozen=True)
class GLM(Curve):
    """A generalised linear model: ``link(T) = b0 + b1 transform(f)``, both on one of :data:`SCALES`.

    Roelofs et al. (2022), appendix A, fit ``logit_logit``, ``logit_logflip``, ``logflip_logflip``, where
    ``T = 1 - e^b0 (1 - f)^b1``, and ``log_log``, ``T = e^b0 f^b1``. Berta et al. (2026) take logit and logit:
    ``sigmoid(b1 logit(f) + b0)``.

    >>> GLM("logflip", "logflip", b0=-0.24, b1=0.30)(np.array([0.0, 0.9, 1.0])).round(4)
    array([0.2134, 0.6058, 1.    ])
    """

    link: str
    transform: str
    b0: float = 0.0
    b1: float = 1.0

    def __post_init__(self) -> None:
        for name in ("link", "transform"):
            scale = getattr(self, name)
            if scale not in SCALES:
                raise InputError(f"{name} must be a scale; got {scale!r}{did_you_mean(str(scale), SCALES)}")
        for name in ("b0", "b1"):
            if not np.isfinite(getattr(self, name)):
                raise InputError(f"{name} must be a finite number; got {getattr(self, name)!r}")

    @property
    def is_identity(self) -> bool:
        """The same scale twice, without shift or stretch."""
        return self.link == self.transform and (self.b0, self.b1) == (0, 1)

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A straight line between two scales."""
        return from_scale(self.link, self.b0 + self.b1 * on_scale(self.transform, scores, rest))


@dataclass(frozen=True)
class Power(Curve):
    """``f^degree``: the larger the degree, the more the scores promise too much.

    >>> Power(2)(np.array([0.5]))
    array([0.25])
    """

    degree: float

    def __post_init__(self) -> None:
        check_positive(self.degree, "degree")

    @property
    def is_identity(self) -> bool:
        """Degree 1."""
        return self.degree == 1

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The power."""
        return scores**self.degree


@dataclass(frozen=True)
class Shifted(Curve):
    """``f + amount``, cut at 0 and 1. Berta et al. (2026) take 0.02: almost calibrated.

    >>> Shifted(0.02)(np.array([0.5, 0.99]))
    array([0.52, 1.  ])
    """

    amount: float

    def __post_init__(self) -> None:
        if not -1 <= self.amount <= 1:
            raise InputError(f"amount must lie between -1 and 1; got {self.amount!r}")

    @property
    def is_identity(self) -> bool:
        """No shift."""
        return self.amount == 0

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A parallel to the diagonal."""
        return np.clip(scores + self.amount, 0, 1)


@dataclass(frozen=True)
class Logistic(Curve):
    """``sigmoid(slope f + shift)``. Roelofs et al. (2022) take 10 and -5 in figure 15.

    >>> Logistic(10, -5)(np.array([0.5, 1.0])).round(4)
    array([0.5   , 0.9933])
    """

    slope: float = 10.0
    shift: float = -5.0

    def __post_init__(self) -> None:
        for name in ("slope", "shift"):
            if not np.isfinite(getattr(self, name)):
                raise InputError(f"{name} must be a finite number; got {getattr(self, name)!r}")

    def at(self, scores: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """A sigmoid in the score itself."""
        return expit(self.slope * scores + self.shift)
