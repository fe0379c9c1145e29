"""Power-exponential predictions: tails between those of Laplace, normal and uniform ones."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betainc, gamma, gammaincc, gammainccinv, gammaln

from calibrant._array import matched, namespace, to_numpy
from calibrant.distributions.base import check_temperature
from calibrant.distributions.characteristic_functions import along_path, as_sums
from calibrant.distributions.parametric import Parametric, check_positive, check_scale
from calibrant.typing import Array

MIN_SHAPE, MAX_SHAPE = 0.1, 1000.0
"""Below, a standard deviation is 1e12 scales and more; above, the density is a box but for a part in a thousand."""

NODES = 30
"""Equally likely quantiles that stand for the form of a prediction in its coordinates."""

TINY = 1e-18
"""Powers of the distance that the exponential does not tell from zero."""


@dataclass(frozen=True, eq=False, repr=False)
class PowerExponential(Parametric):
    """Power-exponential (generalised normal) distributions, density proportional to ``exp(-(|y - loc| / scale)^shape)``.

    Shape 1 is the Laplace distribution, 2 the normal one of standard deviation ``scale / sqrt2``; large shapes approach a uniform
    one on ``loc ± scale``. Parameters are ``(n,)`` each. Tempering multiplies the scale by ``T^(1 / shape)``. Gómez,
    Gómez-Villegas & Marín (1998); Widmann, Lindsten & Zachariah (2021), appendix F.

    Coordinates are ``loc``, and fifteen upper quantiles less ``loc`` as a vector as long as the standard deviation. Their Euclidean
    distance is the Wasserstein distance W2 where shapes agree, and nearly so elsewhere.

    >>> PowerExponential([0.0, 1.0], scale=2.0, shape=[1.0, 2.0]).std.round(4)
    array([2.8284, 1.4142])
    """

    loc: Array
    scale: Array
    shape: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale(self.scale, "scale")
        check_positive(self.shape, "shape", least=MIN_SHAPE, most=MAX_SHAPE, remedy="cut it off there")

    @property
    def coords(self) -> Array:
        """``loc``, and what says spread and form, ``(n, 16)``."""
        form = _upper(self.host[2][:, None], 1 - (np.arange(NODES // 2, NODES) + 0.5) / NODES)
        form /= np.linalg.norm(form, axis=1, keepdims=True)
        return namespace(self.loc).concat([self.loc[:, None], self.std[:, None] * matched(form, self.loc)], axis=1)

    @property
    def position(self) -> Array:
        """``loc``."""
        return self.loc

    def shifted(self, by: float) -> Self:
        """With another ``loc``."""
        return self._trusted(self.loc + by, self.scale, self.shape)

    @property
    def kinks(self) -> np.ndarray:
        """The middle, where few shapes are smooth."""
        return self.host[0][:, None]

    @property
    def mean(self) -> Array:
        """``loc``."""
        return self.loc

    @property
    def std(self) -> Array:
        """``scale sqrt(Gamma(3 / shape) / Gamma(1 / shape))``."""
        a = 1 / self.host[2]
        return self.scale * matched(np.exp((gammaln(3 * a) - gammaln(a)) / 2), self.scale)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``: uniform ones, on a range that is itself random."""
        loc, scale, shape = self.host
        reach = rng.standard_gamma(1 + 1 / shape, (size, len(loc))) ** (1 / shape)
        return loc + scale * reach * rng.uniform(-1, 1, (size, len(loc)))

    def _standard(self, y: Array) -> tuple[np.ndarray, np.ndarray]:
        """Targets less their location, in scales, and the size of that to the power of the shape."""
        loc, scale, shape = self.host
        with np.errstate(over="ignore"):
            z = (to_numpy(y) - loc) / scale
            return z, np.abs(z) ** shape

    def _beyond(self, z: np.ndarray, power: np.ndarray) -> np.ndarray:
        """The probability of what is farther from the middle."""
        a = 1 / self.host[2]
        return np.where(power < TINY, 1 - np.abs(z) / gamma(1 + a), gammaincc(a, power))

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        _, scale, shape = self.host
        return -self._standard(targets)[1] - np.log(2 * scale) - gammaln(1 + 1 / shape)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        z, power = self._standard(y)
        beyond = self._beyond(z, power) / 2
        return np.where(z < 0, beyond, 1 - beyond)

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        loc, scale, shape = (column[:, None] for column in self.host)
        levels = to_numpy(u).astype(np.float64)[None, :]
        return loc + scale * np.sign(levels - 0.5) * _upper(shape, np.minimum(levels, 1 - levels))

    def crps(self, y: Array) -> Array:
        """In closed form: of two independent draws, the mean distance is the mean of the larger size."""
        (z, power), (_, scale, shape) = self._standard(y), self.host
        a, size = 1 / shape, np.abs(z)
        beyond = np.where(power < TINY, 1 - size**2 / gamma(1 + 2 * a), gammaincc(2 * a, power))
        around = size * (1 - self._beyond(z, power))
        return scale * (around + gamma(2 * a) / gamma(a) * (beyond - betainc(a, 2 * a, 0.5)))

    def cf(self, w: Array) -> tuple[Array, Array]:
        """By the trapezoid rule along a ray in the complex plane, on which little oscillates; right to 1e-12."""
        (_, scale, shape), frequencies = self.host, to_numpy(w).astype(np.float64)
        size = matched(_real_part(shape, scale[:, None], np.abs(frequencies)), self.loc)
        xp = namespace(self.loc)
        phase = self.loc[:, None] * matched(w, self.loc)[None, :]
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Scale times ``T^(1 / shape)``."""
        check_temperature(temperature)
        return self._trusted(self.loc, self.scale * temperature ** (1 / self.shape), self.shape)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Locations around 0, scales between 1/2 and 2, shapes between 0.8 and 4."""
        return cls(rng.normal(size=n), rng.uniform(0.5, 2, n), rng.uniform(0.8, 4, n))


def _upper(shape: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Standard values above zero beyond which the probability ``tail`` lies, at most one half."""
    a = 1 / shape
    near = (1 - 2 * tail) * gamma(1 + a)  # of an even density, as it is close to the middle
    return np.where(near**shape < TINY, near, gammainccinv(a, 2 * tail) ** a)


DECAYED = 37.0
"""Exponents from which on an exponential is below rounding."""

STEPS = 120.0
"""Steps of the trapezoid rule for each 2 pi of the path, for what does not oscillate."""

CHUNK = 1 << 20
"""Waves that are integrated at a time."""


def _real_part(shape: np.ndarray, scale: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``E cos(w scale Z)`` of standard Z, ``(n, m)``, for w >= 0."""
    z, weight = _ray(shape[:, None], scale * w.max())
    rows = max(1, CHUNK // (z.shape[1] * max(map(len, as_sums(w)))))
    cuts = [slice(start, start + rows) for start in range(0, len(z), rows)]
    return np.concatenate([along_path(scale[cut] * z[cut], weight[cut], w).real for cut in cuts])


def _ray(shape: np.ndarray, furthest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points ``(n, k)`` on a ray above the positive line, and weights ``exp(-z^shape) dz / Gamma(1 + 1 / shape)``.

    Waves ``exp(i x z)`` decay there for x > 0, and the density, too. Distances are ``exp(sinh(u) / shape)``, so that both ends
    fall off twice exponentially. Steps in u are short enough for the fastest wave, ``x`` up to ``furthest`` ``(n, 1)``, where it
    has not decayed.
    """
    a, angle = 1 / shape, np.pi / (4 * np.maximum(shape, 1))
    low = -float(np.arcsinh(shape * (DECAYED + np.log(np.maximum(furthest, 1)))).max())
    high = float(np.arcsinh(np.log(DECAYED * 2**0.5)))

    def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return furthest * np.exp(1j * angle + a * np.sinh(u)), np.exp(1j * shape * angle + np.sinh(u))

    u = np.linspace(low, high, 200)
    wave, power = at(u)
    turning = np.where(wave.imag + power.real < DECAYED, (a * wave.real + power.imag) * np.cosh(u), 0.0)
    step = 2 * np.pi / (STEPS + float(turning.max()))
    u = np.arange(low, high + step, step)
    z = np.exp(1j * angle + a * np.sinh(u))
    return z, step * a * np.cosh(u) * z * np.exp(-at(u)[1]) / gamma(1 + a)
