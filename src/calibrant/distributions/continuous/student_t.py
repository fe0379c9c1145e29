"""Student t predictions: tails as heavy as they need to be."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import betaln, gammaln, kve, stdtr, stdtrit

from calibrant._array import matched, namespace, to_numpy
from calibrant.distributions.base import check_temperature
from calibrant.distributions.parametric import Parametric, check_positive, check_scale
from calibrant.typing import Array

NODES = 30
"""Equally likely quantiles that stand for a prediction in its coordinates."""

MAX_DRAW = 1e150
"""In scales: draws stay within, so that their squares are numbers."""

LARGE_ORDER = 50.0
"""Orders of Bessel functions from which an expansion in the inverse order leaves less than 1e-11."""


@dataclass(frozen=True, eq=False, repr=False)
class StudentT(Parametric):
    """Student's t distributions with ``df`` degrees of freedom around ``loc``, in units of ``scale``, ``(n,)`` each.

    The mean exists for df > 1 and is ``nan`` below; the standard deviation, for df > 2, is ``inf`` down to df = 1 and
    ``nan`` below. The ranked probability score needs a mean, too.

    Coordinates are thirty equally likely quantiles, as of an ensemble, so that their Euclidean distance is the Wasserstein
    distance W2 of these ensembles. They exist at every df, where W2 itself may be infinite, and tell apart predictions
    that agree in location and spread but not in df. Symmetry leaves sixteen numbers of them.

    >>> StudentT(df=3.0, loc=[0.0, 1.0], scale=2.0).std.round(4)
    array([3.4641, 3.4641])
    """

    df: Array
    loc: Array
    scale: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.df, "df")
        check_scale(self.scale, "scale")

    @property
    def coords(self) -> Array:
        """``loc`` and the upper quantiles less ``loc``, scaled to have the distance of all quantiles, ``(n, 16)``."""
        upper = stdtrit(self.host[0][:, None], (np.arange(NODES // 2, NODES) + 0.5) / NODES)
        spread = self.scale[:, None] * matched((2 / NODES) ** 0.5 * upper, self.scale)
        return namespace(spread).concat([self.loc[:, None], spread], axis=1)

    def point(self, y: Array) -> Self:
        """The same family with scale zero."""
        y = matched(y, self.loc)
        xp = namespace(y)
        return self._trusted(xp.ones_like(y), y, xp.zeros_like(y))

    @property
    def position(self) -> Array:
        """``loc``."""
        return self.loc

    def shifted(self, by: float) -> Self:
        """With another ``loc``."""
        return self._trusted(self.df, self.loc + by, self.scale)

    @property
    def mean(self) -> Array:
        """``loc``, where there is a mean."""
        return namespace(self.loc).where(self.df > 1, self.loc, self.loc * np.nan)

    @property
    def std(self) -> Array:
        """``scale sqrt(df / (df - 2))``, where that is a number."""
        xp, finite = namespace(self.df), self.df > 2
        spread = self.scale * xp.sqrt(self.df / xp.where(finite, self.df - 2, xp.ones_like(self.df)))
        return xp.where(finite, spread, xp.where(self.df > 1, self.scale * np.inf, self.scale * np.nan))

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        df, loc, scale = self.host
        return loc + scale * np.clip(rng.standard_t(df, (size, len(df))), -MAX_DRAW, MAX_DRAW)

    def _standard(self, y: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """df, scale, targets in scales and the log density of those."""
        df, loc, scale = self.host
        z = (to_numpy(y) - loc) / scale
        with np.errstate(divide="ignore"):
            far = np.logaddexp(0, 2 * np.log(np.abs(z)) - np.log(df))  # log(1 + z^2 / df), which does not overflow
        return df, scale, z, -betaln(df / 2, 0.5) - 0.5 * np.log(df) - (df + 1) / 2 * far

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        _, scale, _, log_density = self._standard(targets)
        return log_density - np.log(scale)

    def cdf(self, y: Array) -> Array:
        """``P(Y <= y)``."""
        df, loc, scale = self.host
        with np.errstate(over="ignore"):
            return stdtr(df, (to_numpy(y) - loc) / scale)

    def quantile(self, u: Array) -> Array:
        """Values ``(n, m)`` at the levels u."""
        df, loc, scale = (column[:, None] for column in self.host)
        levels = to_numpy(u)[None, :]
        return loc + scale * np.where(levels == 0, -np.inf, np.where(levels == 1, np.inf, stdtrit(df, levels)))

    def crps(self, y: Array) -> Array:
        """In closed form. Jordan, Krüger & Lerch (2019)."""
        df, scale, z, log_density = self._standard(y)
        excess = np.where(df > 1, df - 1, np.nan)
        partial = np.exp(log_density + np.logaddexp(np.log(df), 2 * np.log(np.maximum(np.abs(z), 1e-300))))
        alone = np.sqrt(df) * np.exp(betaln(0.5, np.maximum(df - 0.5, 0.1)) - 2 * betaln(0.5, df / 2))
        return scale * (z * (2 * stdtr(df, z) - 1) + 2 * (partial - alone) / excess)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w loc) K_v(x) x^v / (Gamma(v) 2^(v - 1))`` with ``v = df / 2`` and ``x = sqrt(df) scale |w|``."""
        df, _, scale = (column[:, None] for column in self.host)
        size = matched(bessel_cf(df / 2, np.sqrt(df) * scale * np.abs(to_numpy(w))), self.loc)
        xp = namespace(self.loc)
        phase = self.loc[:, None] * matched(w, self.loc)[None, :]
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Any:
        """Degrees of freedom ``(df + 1) / T - 1``, scale to match; too hot for what would have none left."""
        check_temperature(temperature)
        df = (self.df + 1) / temperature - 1
        if bool(namespace(df).any(df <= 0)):
            return NotImplemented
        return self._trusted(df, self.loc, self.scale * (self.df / df) ** 0.5)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three to ten degrees of freedom, locations around 0, scales between 1/2 and 2."""
        return cls(rng.uniform(3, 10, n), rng.normal(size=n), rng.uniform(0.5, 2, n))


def bessel_cf(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``K_v(x) x^v / (Gamma(v) 2^(v - 1))`` of each order v > 0 and x >= 0, one at x = 0.

    >>> float(bessel_cf(np.array(0.5), np.array(2.0)).round(12)) == float(np.exp(-2.0).round(12))  # Cauchy
    True
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        direct = np.exp(np.log(kve(order, x)) - x + order * np.log(x / 2) - gammaln(order) + np.log(2))
    return np.where((order < LARGE_ORDER) & np.isfinite(direct), direct, _of_large_order(order, x))


def _of_large_order(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The uniform expansion in the inverse order, which is right near x = 0 at any order, too (DLMF 10.41.4)."""
    z = x / order
    root = np.sqrt(1 + z**2)
    rise = z**2 / (1 + root)  # root - 1
    return np.exp(order * (np.log1p(rise / 2) - rise)) / np.sqrt(root) * _series(order, 1 / root) / _series(order, 1.0)


def _series(order: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """``sum_k (-1 / v)^k u_k(t)`` with the polynomials of Debye."""
    s = t**2
    first = t * (3 - 5 * s) / 24
    second = s * (81 - s * (462 - 385 * s)) / 1152
    third = t * s * (30375 - s * (369603 - s * (765765 - 425425 * s))) / 414720
    fourth = s**2 * (4465125 - s * (94121676 - s * (349922430 - s * (446185740 - 185910725 * s)))) / 39813120
    return 1 - (first - (second - (third - fourth / order) / order) / order) / order
