"""Predictions of compositions: shares of a whole, such as votes, time or sand, silt and clay."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from calibrant._array import is_traced, matched, namespace, to_numpy
from calibrant._validate import MIN_NUMBER, InputError, check_finite
from calibrant.distributions.base import Distribution, as_numbers, check_temperature
from calibrant.distributions.continuous.finite_interval import BELOW_ONE, MAX_COUNT, Beta
from calibrant.distributions.continuous.positive import MIN_DRAW
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.multivariate import check_index, coordinate
from calibrant.distributions.parametric import check_positive
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

MAX_GAP = 1e-3
"""By how much the parts of a target may miss one, as shares that are written with few digits do."""


@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """Dirichlet distributions of k parts that sum to one, density proportional to ``prod_j y_j^(a_j - 1)``.

    ``concentration`` is a, ``(n, k)``. The mean is ``a / sum(a)``, and the larger the sum, the surer the prediction. Each part
    alone has a :class:`Beta` distribution. Targets are ``(n, k)`` too, all parts above zero. They may miss one by 1e-3, as
    rounded shares do, and are taken as they are.

    Coordinates are the means and the standard deviations of all parts, which say all of such a prediction. Their Euclidean
    distance is the part of the Wasserstein distance W2 that is due to the first two moments of each part, a lower bound of W2.
    Gelbrich (1990). Kernels on targets are taken as they are at 256 random frequencies, always the same. Tempering refers to
    the measure ``prod_j dy_j / y_j`` and leaves the mean where it is. Widmann, Lindsten & Zachariah (2021), appendix F.

    >>> Dirichlet([[1.0, 1.0, 2.0]]).coords.round(4)
    array([[0.25  , 0.25  , 0.5   , 0.1936, 0.1936, 0.2236]])
    """

    concentration: Array

    def __post_init__(self) -> None:
        a = as_numbers(self.concentration, "concentration")
        if a.ndim != 2 or a.shape[1] < 2:
            raise InputError(f"concentration must be (n, k) with k at least 2; got shape {tuple(a.shape)}")
        if not is_traced(a):
            check_positive(
                a, "concentration", least=MIN_NUMBER, most=MAX_COUNT, remedy="cut it off there, or drop those rows"
            )
        object.__setattr__(self, "concentration", a)

    @classmethod
    def _trusted(cls, concentration: Array) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "concentration", concentration)
        return self

    def __len__(self) -> int:
        return int(self.concentration.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        return self._trusted(self.concentration[rows, :])

    def __repr__(self) -> str:
        return f"<Dirichlet: {how_many(len(self), 'prediction')} of {self.concentration.shape[1]} parts>"

    @property
    def host(self) -> np.ndarray:
        """The concentration as NumPy float64."""
        return to_numpy(self.concentration).astype(np.float64, copy=False)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Compositions ``(n, k)``, all parts above zero."""
        y = as_numbers(y_true, "y_true")
        k = self.concentration.shape[1]
        if y.ndim != 2 or y.shape[1] != k:
            raise InputError(f"y_true must be (n, {k}), as there are {k} parts; got shape {tuple(y.shape)}")
        if not is_traced(y):
            _check_compositions(y)
        return matched(y, self.concentration)

    def point(self, y: Array) -> Ensemble:
        """A single member."""
        return Ensemble(matched(y, self.concentration)[:, None, :])

    @property
    def _total(self) -> Array:
        return namespace(self.concentration).sum(self.concentration, axis=1)[:, None]

    @property
    def mean(self) -> Array:
        """``a / sum(a)``, ``(n, k)``."""
        return self.concentration / self._total

    @property
    def std(self) -> Array:
        """``sqrt(m (1 - m) / (sum(a) + 1))`` with the mean m, ``(n, k)``."""
        mean, total = self.mean, self._total
        return (mean * ((total - self.concentration) / total) / (total + 1)) ** 0.5

    @property
    def coords(self) -> Array:
        """Means and standard deviations, ``(n, 2 k)``."""
        return namespace(self.concentration).concat([self.mean, self.std], axis=1)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n, k)``; logarithms of gamma draws, as those of small parameters are no numbers."""
        a = self.host
        shape = (size, *a.shape)
        with np.errstate(over="ignore"):
            logs = np.log(rng.standard_gamma(a + 1, shape)) + np.log1p(-rng.random(shape)) / a
        logs -= logs.max(axis=-1, keepdims=True)
        shares = np.exp(logs)
        shares /= shares.sum(axis=-1, keepdims=True)
        return np.clip(shares, MIN_DRAW, BELOW_ONE)

    def log_prob(self, targets: Array) -> Array:
        """Log density of all parts but the last; ``-inf`` where a part is not above zero."""
        a, y = self.host, to_numpy(targets).astype(np.float64)
        inside = np.asarray((y > 0).all(axis=-1))
        logs = np.log(np.where(inside[..., None], y, 0.5))
        found = ((a - 1) * logs).sum(axis=-1) + gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)
        return np.where(inside, found, -np.inf)

    def cf(self, w: Array) -> tuple[Array, Array]:
        """At w ``(m, k)``, by an integral along a path in the complex plane; right to 1e-7, and less where sums exceed 1e8."""
        found = _characteristic(self.host, to_numpy(w).astype(np.float64))
        return matched(found.real, self.concentration), matched(found.imag, self.concentration)

    @property
    def is_cheaper_by_features(self) -> bool:
        """Always: nothing else is known of expectations."""
        return True

    def temper(self, temperature: float) -> Self:
        """The concentration divided by T."""
        check_temperature(temperature)
        return self._trusted(self.concentration / temperature)

    def log_reference(self, y: Array) -> Array:
        """``prod_j 1 / y_j``, length on the scale of log-ratios."""
        return -np.log(to_numpy(y)).sum(axis=-1)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three parts, parameters between 2 and 6."""
        return cls(rng.uniform(2, 6, (n, 3)))


def _check_compositions(y: Array) -> None:
    """Refuse parts that are not above zero, and those that do not sum to one."""
    low, _ = check_finite(y, "y_true")
    xp = namespace(y)
    if low <= 0:
        row = int(xp.argmin(xp.min(y, axis=1)))
        raise InputError(
            f"y_true must have parts above zero, as others cannot happen under Dirichlet predictions; found {low:g} in row {row}: "
            "leave those rows out, or join parts that may vanish with others"
        )
    total = to_numpy(xp.sum(y, axis=1)).astype(np.float64)
    row = int(np.abs(total - 1).argmax())
    if abs(total[row] - 1) > MAX_GAP:
        remedy = "divide percentages by 100" if abs(total[row] - 100) < 1 else "divide each row by its sum"
        raise InputError(f"y_true must have parts that sum to 1; those of row {row} sum to {total[row]:.6g}: {remedy}")


@coordinate.register
def _part(predictions: Dirichlet, index: int) -> Distribution:
    a = predictions.concentration
    check_index(index, a.shape[1])
    others = [j for j in range(a.shape[1]) if j != index % a.shape[1]]
    return Beta(a[:, index], sum(a[:, j] for j in others))


DECAYED = 37.0
"""Exponents from which on an exponential is below rounding."""

SPARE = 8.0
"""By how much, as an exponent, the path may lie above the lowest pass: three digits are lost."""

MIN_LEVEL = 8.0
"""The path stays so far from the singularities, so that its steps can be long."""

LARGE = 1e4
"""Sums of parameters whose gamma function is taken from Stirling's series."""

CHUNK = 1 << 20
"""Values of the integrand that are held at a time."""


def _characteristic(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``E exp(i w.Y)``, ``(n, m)``.

    It is ``Gamma(b) / (2 pi i)`` times the integral of ``exp(s) prod_j (s - i w_j)^-a_j ds``, with b the sum of a. For gamma
    variables of those shapes ``E exp(i t w.Y)``, with t their sum, is ``prod_j (1 - i w_j)^-a_j``: a Laplace transform in t,
    which is inverted. The path is a parabola that passes all singularities on the right, near the lowest pass, which is at b.
    Rows of nearly equal b share one, and so its logarithms.
    """
    total = a.sum(axis=1)
    middle = (w.min(axis=1) + w.max(axis=1)) / 2
    beside = w - middle[:, None]  # all parts sum to one
    order, found, start = np.argsort(total), np.empty((len(a), len(w)), dtype=np.complex128), 0
    while start < len(order):
        least = total[order[start]]
        level = max(least + 0.9 * np.sqrt(2 * SPARE * least), MIN_LEVEL)
        end = int(np.searchsorted(total[order], level, "right"))
        rows = order[start:end]
        found[rows] = _along_parabola(a[rows], beside, level)
        start = end
    return found * np.exp(1j * middle)


def _along_parabola(a: np.ndarray, w: np.ndarray, level: float) -> np.ndarray:
    """By the trapezoid rule on ``level + i t - bend t^2``, which stays above most of the level as long as t is within w."""
    furthest, drop = np.abs(w).max(), min(level / 2, np.sqrt(SPARE * level))
    bend = drop / max(furthest**2, 2 * level * drop)
    top = furthest + np.sqrt((DECAYED + 2 * SPARE) / bend)
    step = (level - drop) * min(np.pi / (DECAYED + 2 * SPARE), 0.35 / np.sqrt(level))
    t = np.arange(-top, top + step, step)
    x, change = 1j * t - bend * t**2, step * (1j - 2 * bend * t)
    total = a.sum(axis=1)
    series = np.log(2 * np.pi / total) / 2 + 1 / (12 * total)
    stirling = np.where(total > LARGE, series, gammaln(total) - total * np.log(total) + total)
    size = level - total + total * np.log(total / level) + stirling
    found = np.empty((len(a), len(w)), dtype=np.complex128)
    columns = max(1, CHUNK // (len(t) * len(a)))
    for i in range(0, len(w), columns):
        part = slice(i, i + columns)
        logs = np.log(1 + (x[:, None, None] - 1j * w[None, part]) / level)  # (t, m, k)
        exponent = x[:, None] - np.tensordot(a, logs, axes=(1, 2)) + size[:, None, None]  # (n, t, m)
        found[:, part] = np.tensordot(np.exp(exponent), change, axes=(1, 0))
    return found / (2j * np.pi)
