"""Families of positive targets, such as waiting times, amounts and costs: gamma and log-normal predictions."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import betaln, gammainc, gammaincinv, gammaln, ndtr, ndtri

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import MAX_NUMBER, MIN_NUMBER, InputError, check_finite
from calibrant.distributions.base import Distribution, check_temperature
from calibrant.distributions.characteristic_functions import along_path
from calibrant.distributions.continuous.location_scale import LocationScale
from calibrant.distributions.parametric import Parametric, check_positive, check_scale
from calibrant.typing import Array, ArrayLike

MIN_DRAW, MAX_DRAW = float(np.finfo(np.float64).tiny), 1e300
"""Draws are rounded to these rather than to zero or infinity."""


MAX_LOG = 1e4
"""The largest size of the logarithm of a median: beyond 700 that is no number, but levels and logarithms still are."""

MAX_LOG_SCALE = 100.0
"""The largest standard deviation of a logarithm: a factor of 1e43."""


def as_positive_targets(predictions: Distribution, y: Array) -> Array:
    """The targets, all above zero."""
    low, _ = check_finite(y, "y_true")
    if low <= 0:
        family, row = type(predictions).__name__, int(namespace(y).argmin(y))
        raise InputError(
            f"y_true must be positive, as zero cannot happen under {family} predictions; found {low:g} in row {row}: "
            "leave those rows out, or predict them by another family"
        )
    return y


def log_of_positive(y: np.ndarray) -> np.ndarray:
    """Logarithms; ``-inf`` at zero and below."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(y, 0))


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(Parametric):
    """Gamma distributions, density proportional to ``y^(shape - 1) exp(-rate y)``, ``(n,)`` each.

    Coordinates are mean and standard deviation, ``(shape, sqrt(shape)) / rate``, which say all of such a prediction. Their
    Euclidean distance is the part of the Wasserstein distance W2 that is due to the first two moments: a lower bound of W2,
    which it equals for predictions of one shape. Gelbrich (1990). Tempering refers to the measure ``dy / y``, as for
    Dirichlet distributions, and leaves the mean where it is.

    >>> Gamma(shape=[1.0, 4.0], rate=2.0).coords
    array([[0.5, 0.5],
           [2. , 1. ]])
    """

    shape: Array
    rate: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.shape, "shape", least=MIN_NUMBER, most=MAX_NUMBER)
        check_scale(self.rate, "rate")

    @property
    def coords(self) -> Array:
        """``(mean, standard deviation)``, ``(n, 2)``."""
        return namespace(self.shape).stack([self.mean, self.std], axis=1)

    @property
    def mean(self) -> Array:
        """``shape / rate``."""
        return self.shape / self.rate

    @property
    def std(self) -> Array:
        """``sqrt(shape) / rate``."""
        return self.shape**0.5 / self.rate

    @property
    def kinks(self) -> np.ndarray:
        """Zero, below which nothing lies."""
        return np.zeros((len(self), 1))

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Positive numbers, ``(n,)``."""
        return as_positive_targets(self, super().as_targets(y_true))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        shape, rate = self.host
        return np.maximum(rng.standard_gamma(shape, (size, len(shape))) / rate, MIN_DRAW)

    def log_prob(self, targets: Array) -> Array:
        """Log density; ``-inf`` for what is not positive."""
        shape, rate = self.host
        y = to_numpy(targets)
        logs = log_of_positive(rate * y)
        with np.errstate(invalid="ignore"):
            found = (shape - 1) * logs - rate * y - gammaln(shape) + np.log(rate)
        return np.where(logs == -np.inf, -np.inf, found)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        shape, rate = self.host
        with np.errstate(over="ignore"):
            return gammainc(shape, rate * np.maximum(to_numpy(y), 0))

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        shape, rate = (column[:, None] for column in self.host)
        return gammaincinv(shape, to_numpy(u)[None, :]) / rate

    def crps(self, y: Array) -> Array:
        """In closed form. Möller & Scheuerer (2015)."""
        shape, rate = self.host
        z = rate * np.maximum(to_numpy(y), 0)
        around = rate * to_numpy(y) * (2 * gammainc(shape, z) - 1) - shape * (2 * gammainc(shape + 1, z) - 1)
        return (around - np.exp(-betaln(0.5, shape))) / rate

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``(1 - i w / rate)^-shape``."""
        xp, w = namespace(self.shape), matched(w, self.shape)
        ratio = w[None, :] / self.rate[:, None]
        size = xp.exp(-0.5 * self.shape[:, None] * xp.log1p(ratio**2))
        phase = self.shape[:, None] * xp.atan(ratio)
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Shape and rate divided by T."""
        check_temperature(temperature)
        return self._trusted(self.shape / temperature, self.rate / temperature)

    def log_reference(self, y: Array) -> Array:
        """``1 / y``, length on the scale of logarithms."""
        return -np.log(to_numpy(y))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Shapes between 1 and 5, rates between 1/2 and 2."""
        return cls(rng.uniform(1, 5, n), rng.uniform(0.5, 2, n))


REACH = 9.5
"""Standard deviations of ``log Y`` that the characteristic function is integrated over, in either direction."""

STEP = 0.1
"""Steps of that integral; it converges geometrically, and this leaves 1e-15 up to scale 3."""

TURN = 2.0
"""The path is shifted by at most so many standard deviations into the complex plane: further would cost digits."""

CHUNK = 1 << 14
"""Waves that are integrated at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(LocationScale):
    """Log-normal distributions: ``log Y`` is normal with mean ``loc`` and standard deviation ``scale``, ``(n,)`` each.

    Coordinates are ``(loc, scale)``: their Euclidean distance is the Wasserstein distance W2 of the laws of ``log Y``, the
    scale on which such predictions are alike or not whatever the unit of Y. Tempering refers to the measure ``dy / y``, which
    is length on that scale, and leaves the median where it is.

    >>> LogNormal([0.0, 1.0], scale=0.5).mean.round(4)
    array([1.1331, 3.0802])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = check_finite(self.loc, "loc")
        if max(-low, high) > MAX_LOG:
            raise InputError(
                f"loc must lie between {-MAX_LOG:g} and {MAX_LOG:g}, as it is the mean of log Y; found "
                f"{low if -low > MAX_LOG else high:g}: give the logarithm, or targets and forecasts in another unit"
            )
        remedy = "scale is the standard deviation of log Y, such as 0.5; drop those rows"
        check_positive(self.scale, "scale", least=MIN_NUMBER, most=MAX_LOG_SCALE, remedy=remedy)

    @property
    def position(self) -> Any:
        """None: a moved log-normal distribution is none."""
        return NotImplemented

    def shifted(self, by: float) -> Any:
        """None of the family."""
        return NotImplemented

    @property
    def coords(self) -> Array:
        """``(loc, scale)``, ``(n, 2)``."""
        return namespace(self.loc).stack([self.loc, self.scale], axis=1)

    @property
    def mean(self) -> Array:
        """``exp(loc + scale^2 / 2)``; ``inf`` where that is no number."""
        with np.errstate(over="ignore"):
            return namespace(self.loc).exp(self.loc + self.scale**2 / 2)

    @property
    def std(self) -> Array:
        """The mean times ``sqrt(exp(scale^2) - 1)``, which is ``exp(loc + scale^2) sqrt(1 - exp(-scale^2))``."""
        xp = namespace(self.loc)
        with np.errstate(over="ignore"):
            return xp.exp(self.loc + self.scale**2) * xp.sqrt(-xp.expm1(-(self.scale**2)))

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Positive numbers, ``(n,)``."""
        return as_positive_targets(self, super().as_targets(y_true))

    def point(self, y: Array) -> Self:
        """The same family with scale zero."""
        y = matched(y, self.loc)
        return self._trusted(namespace(y).log(y), namespace(y).zeros_like(y))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        loc, scale = self.host
        logs = loc + scale * rng.standard_normal((size, len(loc)))
        return np.exp(np.clip(logs, np.log(MIN_DRAW), np.log(MAX_DRAW)))

    def _standard(self, y: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Logarithms of targets, these in scales, and the scales."""
        loc, scale = self.host
        logs = log_of_positive(to_numpy(y).astype(np.float64))
        return logs, (logs - loc) / scale, scale

    def log_prob(self, targets: Array) -> Array:
        """Log density; ``-inf`` for what is not positive."""
        logs, z, scale = self._standard(targets)
        with np.errstate(invalid="ignore"):
            found = -0.5 * z**2 - logs - np.log(scale) - 0.5 * np.log(2 * np.pi)
        return np.where(logs == -np.inf, -np.inf, found)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        return ndtr(self._standard(y)[1])

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        loc, scale = self.host
        with np.errstate(over="ignore"):
            return np.exp(loc[:, None] + scale[:, None] * ndtri(to_numpy(u))[None, :])

    def crps(self, y: Array) -> Array:
        """In closed form. Baran & Lerch (2015)."""
        _, z, scale = self._standard(y)
        mean = to_numpy(self.mean).astype(np.float64)
        finite = np.where(np.isinf(mean), 0.0, mean)
        score = to_numpy(y) * (2 * ndtr(z) - 1) - 2 * finite * (ndtr(z - scale) - ndtr(-scale / 2**0.5))
        return np.where(np.isinf(mean), np.inf, score)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """By the trapezoid rule along a path in the complex plane on which nothing oscillates. Gubner (2006)."""
        loc, scale = self.host
        frequencies = to_numpy(w).astype(np.float64)
        rows = max(1, CHUNK // len(frequencies))
        parts = [
            _characteristic(loc[i : i + rows], scale[i : i + rows], np.abs(frequencies))
            for i in range(0, len(loc), rows)
        ]
        found = np.concatenate(parts)
        return matched(found.real, self.loc), matched(np.sign(frequencies) * found.imag, self.loc)

    def temper(self, temperature: float) -> Self:
        """The variance of ``log Y`` times T."""
        check_temperature(temperature)
        return self._trusted(self.loc, self.scale * temperature**0.5)

    def log_reference(self, y: Array) -> Array:
        """``1 / y``, length on the scale of logarithms."""
        return -np.log(to_numpy(y))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Medians around 1, scales between 1/4 and 1."""
        return cls(rng.normal(size=n), rng.uniform(0.25, 1, n))


def _characteristic(loc: np.ndarray, scale: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``E exp(i w Y)``, ``(n, m)``, for w >= 0: ``log Y`` runs along a line at the height ``angle`` above the real one."""
    t = np.arange(-REACH, REACH + STEP / 2, STEP)
    angle = np.minimum(np.pi / 2, TURN * scale)[:, None]
    weight = STEP / np.sqrt(2 * np.pi) * np.exp(-0.5 * (t + 1j * angle / scale[:, None]) ** 2)
    y = np.exp(np.minimum(loc[:, None] + scale[:, None] * t, np.log(MAX_DRAW)) + 1j * angle)
    return along_path(y, weight, w)
