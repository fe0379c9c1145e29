"""Worlds of classes, and four ways of being wrong for studies of power."""

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from scipy.special import betainc, betaincinv, expit, logit

from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.lab.world import World, check_positive


@dataclass(frozen=True)
class Tempered(World):
    """Dirichlet predictions of ``n_classes`` classes; true probabilities are proportional to ``p^(1 / temperature)``.

    Above temperature 1 the model is over-confident. ``concentration`` 1 spreads predictions evenly over the simplex,
    less puts them near its faces.

    >>> Tempered(n_classes=4, temperature=2.0).draw(5, np.random.default_rng(0))[1]
    <Categorical: 5 predictions of 4 classes>
    """

    n_classes: int = 3
    temperature: float = 1.0
    concentration: float = 1.0

    def __post_init__(self) -> None:
        check_count(self.n_classes, "n_classes", least=2)
        check_positive(self.temperature, "temperature")
        check_positive(self.concentration, "concentration")

    @property
    def features(self) -> int:
        """One for every stick that is broken off."""
        return self.n_classes - 1

    @property
    def is_calibrated(self) -> bool:
        """Temperature 1."""
        return self.temperature == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Beta-distributed shares, each broken off what is left."""
        later = self.concentration * np.arange(self.n_classes - 1, 0, -1)
        share = betaincinv(self.concentration, later, u)
        left = np.cumprod(1 - share, axis=1)
        predictions = Categorical(np.concatenate([share[:, :1], share[:, 1:] * left[:, :-1], left[:, -1:]], axis=1))
        return predictions, predictions.temper(self.temperature)


@dataclass(frozen=True)
class TwiceTempered(World):
    """Even predictions over the simplex, tempered by ``first``, which is the truth, and again by ``second``.

    Temperatures below 1 drive probabilities to the faces of the simplex; what is predicted is then over-confident.
    Popordanoska, Sayer & Blaschko (2022) take 0.6 for both.

    >>> TwiceTempered(4, 0.6, 1.0).is_calibrated
    True
    """

    n_classes: int = 4
    first: float = 0.6
    second: float = 0.6

    def __post_init__(self) -> None:
        check_count(self.n_classes, "n_classes", least=2)
        check_positive(self.first, "first")
        check_positive(self.second, "second")

    @property
    def features(self) -> int:
        """Those of the even predictions."""
        return self.n_classes - 1

    @property
    def is_calibrated(self) -> bool:
        """Not tempered a second time."""
        return self.second == 1

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Predictions, and the truth they were made of."""
        even, _ = Tempered(self.n_classes).given(u)
        truth = even.temper(self.first)
        return truth.temper(self.second), truth


@dataclass(frozen=True)
class TwoClasses(World):
    """Probabilities p of class 1 with a symmetric beta distribution; subclasses say what is true given p."""

    concentration: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        check_positive(self.concentration, "concentration")

    @abstractmethod
    def observed(self, p: np.ndarray) -> np.ndarray:
        """The probability of class 1 where p was predicted."""

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """The feature is the level of p."""
        p = betaincinv(self.concentration, self.concentration, u[:, 0])
        return Categorical(p), Categorical(self.observed(p))


def _log_odds(p: np.ndarray) -> np.ndarray:
    """Finite also where p has been rounded to certainty."""
    return logit(np.clip(p, np.finfo(float).tiny, 1 - np.finfo(float).epsneg))


@dataclass(frozen=True)
class Sigmoid(TwoClasses):
    """``sigmoid(slope logit(p) + shift)`` is true. Berta et al. (2026) take slope 0.4, shift 0.3, concentration 0.5.

    >>> Sigmoid(0.4, 0.3).observed(np.array([0.5])).round(4)
    array([0.5744])
    """

    slope: float = 1.0
    shift: float = 0.0

    @property
    def is_calibrated(self) -> bool:
        """The identity."""
        return (self.slope, self.shift) == (1, 0)

    def observed(self, p: np.ndarray) -> np.ndarray:
        """Linear in the log-odds."""
        return expit(self.slope * _log_odds(p) + self.shift)


@dataclass(frozen=True)
class Alternative(TwoClasses):
    """A way of being wrong, from not at all (``strength`` 0) to as much as probabilities allow (1)."""

    strength: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.strength <= 1:
            raise InputError(f"strength must lie between 0 and 1; got {self.strength!r}")

    @property
    def is_calibrated(self) -> bool:
        """Strength 0."""
        return self.strength == 0


@dataclass(frozen=True)
class Smooth(Alternative):
    """Wrong everywhere, in one sweep: too confident, as by a temperature of ``1 / (1 - strength)``.

    >>> Smooth(1.0).observed(np.array([0.1, 0.9]))
    array([0.5, 0.5])
    """

    def observed(self, p: np.ndarray) -> np.ndarray:
        """The log-odds shrink."""
        return expit((1 - self.strength) * _log_odds(p))


@dataclass(frozen=True)
class Sharp(Alternative):
    """Wrong everywhere, now too high and now too low: ``p + strength p (1 - p) sin(2 pi frequency p)``.

    >>> Sharp(1.0, frequency=10).observed(np.array([0.525])).round(4)
    array([0.7744])
    """

    frequency: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.frequency, "frequency")

    def observed(self, p: np.ndarray) -> np.ndarray:
        """A wave within the bounds of probability."""
        return p + self.strength * p * (1 - p) * np.sin(2 * np.pi * self.frequency * p)


@dataclass(frozen=True)
class Localised(Alternative):
    """Right up to ``corner``; beyond it claims grow to certainty while the truth falls to ``1 - strength``.

    >>> Localised(0.4, corner=0.8).observed(np.array([0.7, 0.9, 1.0]))
    array([0.7, 0.7, 0.6])
    """

    corner: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.corner < 1:
            raise InputError(f"corner must lie at 0 or above, and below 1; got {self.corner!r}")

    def observed(self, p: np.ndarray) -> np.ndarray:
        """A ramp that starts at the corner."""
        return p - self.strength * np.maximum(0, p - self.corner) / (1 - self.corner)


@dataclass(frozen=True)
class RareTop(Alternative):
    """An event of 2 %; claims above one half, 5 rows in 1,000, are too high, and all others right.

    Those above 90 %, 1.4 rows in 1,000, come true in 3 of 7 cases, those from 50 to 86 % in 8 of 9 of what they claim, at
    ``strength`` 1. Of 10,000 rows some 39 events are predicted above one half and 29 observed; 13 and 6 above 90 %. Errors over
    all rows do not see this.

    >>> RareTop(1.0).observed(np.array([0.02, 0.68, 0.94])).round(3)
    array([0.02 , 0.604, 0.429])
    """

    def given(self, u: np.ndarray) -> tuple[Distribution, Distribution]:
        """Beta-distributed claims up to one half, even ones above."""
        low, high = u[:, 0] < 0.9948, u[:, 0] >= 0.9986
        bulk = betaincinv(0.2, 12, np.minimum(u[:, 0] / 0.9948, 1) * betainc(0.2, 12, 0.5))
        middle, top = 0.5 + 0.36 * (u[:, 0] - 0.9948) / 0.0038, 0.9 + 0.085 * (u[:, 0] - 0.9986) / 0.0014
        p = np.where(low, bulk, np.where(high, top, middle))
        return Categorical(p), Categorical(self.observed(p))

    def observed(self, p: np.ndarray) -> np.ndarray:
        """Right up to one half."""
        wrong = np.where(p >= 0.9, 3 / 7, 8 / 9 * p)
        return np.where(p > 0.5, p + self.strength * (wrong - p), p)
