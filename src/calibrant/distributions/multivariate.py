"""Predictions of vectors: multivariate normals, and what is predicted of one coordinate alone."""

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Self

import numpy as np

from calibrant._array import constant, is_recorded, is_traced, matched, namespace, to_numpy
from calibrant._validate import InputError, check_same_length
from calibrant.distributions.base import Distribution, as_numbers, check_is_distribution, check_temperature, displaced
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.continuous.location_scale import Normal, as_scale
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.kernels import Gaussian
from calibrant.kernels.base import closed_form
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike

SINGULAR = 8.0
"""Eigenvalues of correlations as far below zero as this, in roundings and times the dimensions, are zero."""

SAME_SUM = 1e-6
"""Sums of coordinates that differ by less than this part of the largest are one, in single precision, too."""

LOGARITHM = 4
"""Factors of a volume that share a logarithm, few enough not to overflow."""


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Distribution):
    """Normal distributions in d dimensions: means ``(n, d)``, and either standard deviations or covariances.

    ``scale`` holds one standard deviation per row ``(n,)`` (isotropic) or one per coordinate ``(n, d)``; ``covariance`` a
    full matrix per row, ``(n, d, d)``. Either may leave no spread along some directions; there is no density then, and so no log
    loss, but all kernel errors and samples. Coordinates are the mean and the standard deviations, or the mean and the matrix
    root of the covariance: always Hilbertian, and equal to the Wasserstein distance where covariances commute.

    >>> MultivariateNormal([[0.0, 0.0], [1.0, 2.0]], scale=[0.1, 0.2])
    <MultivariateNormal: 2 predictions in 2 dimensions>
    """

    loc: Array
    scale: Array | None = None
    covariance: Array | None = None

    def __post_init__(self) -> None:
        loc = as_numbers(self.loc, "loc")
        if loc.ndim != 2:
            raise InputError(f"loc must be (n, d); got shape {tuple(loc.shape)}")
        if (self.scale is None) == (self.covariance is None):
            raise InputError("give either scale or covariance")
        object.__setattr__(self, "loc", loc)
        if self.scale is not None:
            object.__setattr__(self, "scale", as_scale(self.scale, loc, may_vanish=True))
        else:
            object.__setattr__(self, "covariance", _checked_covariance(self.covariance, loc))

    @classmethod
    def _trusted(cls, loc: Array, scale: Array | None, covariance: Array | None) -> Self:
        self = object.__new__(cls)
        for name, value in (("loc", loc), ("scale", scale), ("covariance", covariance)):
            object.__setattr__(self, name, value)
        return self

    def __len__(self) -> int:
        return int(self.loc.shape[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        scale = None if self.scale is None else self.scale[rows, :]
        covariance = None if self.covariance is None else self.covariance[rows, ...]
        return self._trusted(self.loc[rows, :], scale, covariance)

    def __repr__(self) -> str:
        return f"<MultivariateNormal: {how_many(len(self), 'prediction')} in {self.loc.shape[1]} dimensions>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Real vectors, ``(n, d)``."""
        y = as_numbers(y_true, "y_true")
        if y.ndim != 2 or y.shape[1] != self.loc.shape[1]:
            raise InputError(f"y_true must be (n, {self.loc.shape[1]}); got shape {tuple(y.shape)}")
        return matched(y, self.loc)

    def point(self, y: Array) -> Self:
        """Without spread."""
        y = matched(y, self.loc)
        if self.scale is not None:
            return self._trusted(y, 0 * y, None)
        return self._trusted(y, None, 0 * (y[:, :, None] + y[:, None, :]))

    @property
    def position(self) -> Array:
        """``loc``."""
        return self.loc

    def shifted(self, by: np.ndarray) -> Self:
        """With another ``loc``."""
        return self._trusted(displaced(self.loc, by), self.scale, self.covariance)

    def divided(self, units: np.ndarray) -> Self:
        """The distributions of ``Y / units``, with one number per coordinate.

        >>> MultivariateNormal([[2.0, 30.0]], [[1.0, 10.0]]).divided(np.array([1.0, 10.0])).coords
        array([[2., 3., 1., 1.]])
        """
        xp = namespace(self.loc)
        rate = 1 / xp.astype(matched(units, self.loc), self.loc.dtype)
        scale = None if self.scale is None else self.scale * rate
        covariance = None if self.covariance is None else self.covariance * rate[:, None] * rate[None, :]
        return self._trusted(self.loc * rate, scale, covariance)

    @property
    def full(self) -> Array:
        """Covariances ``(n, d, d)``, also of a batch given by standard deviations."""
        if self.scale is None:
            return self.covariance
        return self.scale[:, :, None] ** 2 * _eye(self.scale)

    @property
    def coords(self) -> Array:
        """Mean and standard deviations, ``(n, 2d)``, or mean and root of the covariance, ``(n, d + d^2)``."""
        xp = namespace(self.loc)
        if self.scale is not None:
            return xp.concat([self.loc, self.scale], axis=1)
        return xp.concat([self.loc, xp.reshape(matrix_root(self.covariance), (len(self), -1))], axis=1)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n, d)``."""
        loc = to_numpy(self.loc).astype(np.float64)
        noise = rng.standard_normal((size, *loc.shape))
        if self.scale is not None:
            return loc + to_numpy(self.scale) * noise
        values, vectors = np.linalg.eigh(to_numpy(self.covariance).astype(np.float64))
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        return loc + np.einsum("nij,snj->sni", root, noise)

    def log_prob(self, targets: Array) -> Array:
        """Log density."""
        loc = to_numpy(self.loc).astype(np.float64)
        difference = to_numpy(targets) - loc
        constant = 0.5 * loc.shape[1] * np.log(2 * np.pi)
        if self.scale is not None:
            scale = to_numpy(self.scale).astype(np.float64)
            _check_density(scale.min(axis=1) > 0)
            return -0.5 * ((difference / scale) ** 2).sum(axis=-1) - np.log(scale).sum(axis=1) - constant
        covariance = to_numpy(self.covariance).astype(np.float64)
        _check_density(_least_correlation(covariance) > SINGULAR * loc.shape[1] * np.finfo(np.float64).eps)
        factor = np.linalg.cholesky(covariance)
        white = np.linalg.solve(factor, difference[..., None])[..., 0]
        volume = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        return -0.5 * (white**2).sum(axis=-1) - volume - constant

    @property
    def mean(self) -> Array:
        """``loc``."""
        return self.loc

    @property
    def std(self) -> Array:
        """``scale``, or the root of the diagonal of the covariance, ``(n, d)``."""
        if self.scale is not None:
            return self.scale
        return namespace(self.loc).sqrt(namespace(self.loc).linalg.diagonal(self.covariance))

    def cf(self, w: Array) -> tuple[Array, Array]:
        """``exp(i w.loc - w' S w / 2)`` at w ``(m, d)``."""
        xp = namespace(self.loc)
        w = xp.astype(matched(w, self.loc), self.loc.dtype)
        phase = self.loc @ xp.permute_dims(w, (1, 0))
        size = xp.exp(-0.5 * xp.sum((w @ self.full) * w, axis=-1))
        return size * xp.cos(phase), size * xp.sin(phase)

    def temper(self, temperature: float) -> Self:
        """Covariance times T."""
        check_temperature(temperature)
        scale = None if self.scale is None else self.scale * temperature**0.5
        covariance = None if self.covariance is None else self.covariance * temperature
        return self._trusted(self.loc, scale, covariance)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Three dimensions, full covariances."""
        factor = rng.normal(size=(n, 3, 3))
        return cls(rng.normal(size=(n, 3)), covariance=factor @ np.swapaxes(factor, 1, 2) + 0.1 * np.eye(3))


def matrix_root(covariance: Array) -> Array:
    """The symmetric root R of matrices S ``(n, d, d)``, with a gradient also where eigenvalues coincide.

    The derivative X of R solves ``X R + R X = dS``. In the eigenvectors of S its entries are those of dS over sums of two roots
    of eigenvalues; those of a derivative of eigenvectors would be over differences, which may be zero. So R is taken as a
    constant, plus the solution X for ``S - R R``, which is zero but for its gradient. Of the first order: a gradient of the
    gradient is not to be had.

    >>> matrix_root(np.array([[[4.0, 0.0], [0.0, 9.0]]]))
    array([[[2., 0.],
            [0., 3.]]])
    """
    xp = namespace(covariance)
    values, vectors = xp.linalg.eigh(constant(covariance))
    roots = xp.sqrt(xp.clip(values, 0.0, None))
    turned = xp.matrix_transpose(vectors)
    root = (vectors * roots[:, None, :]) @ turned
    if not is_recorded(covariance):
        return root
    sums = roots[:, :, None] + roots[:, None, :]
    rest = turned @ (covariance - constant(covariance)) @ vectors
    return root + vectors @ (rest / xp.where(sums > 0, sums, xp.ones_like(sums))) @ turned


def _eye(like: Array) -> Array:
    """The unit matrix in the dimensions, library and precision of ``(n, d)`` numbers."""
    return namespace(like).astype(matched(np.eye(like.shape[1]), like), like.dtype)


def _checked_covariance(x: ArrayLike, loc: Array) -> Array:
    covariance = matched(as_numbers(x, "covariance"), loc)
    n, d = loc.shape
    if covariance.ndim != 3 or tuple(covariance.shape[1:]) != (d, d):
        raise InputError(f"covariance must be (n, {d}, {d}); got shape {tuple(covariance.shape)}")
    check_same_length(covariance.shape[0], n, "covariance", "loc")
    if is_traced(covariance):
        return covariance
    host = to_numpy(covariance).astype(np.float64)
    size = np.abs(host).max(axis=(1, 2))
    skew = np.abs(host - np.swapaxes(host, 1, 2)).max(axis=(1, 2))
    if np.any(skew > 1e-6 * size):
        raise InputError(f"covariance must be symmetric; the matrix of row {int(np.argmax(skew > 1e-6 * size))} is not")
    least = _least_correlation(host)
    is_negative = least < -SINGULAR * d * float(namespace(covariance).finfo(covariance.dtype).eps)
    if np.any(is_negative):
        row = int(np.argmax(is_negative))
        raise InputError(
            f"covariance must not have negative eigenvalues; row {row} has {np.linalg.eigvalsh(host[row])[0]:.3g}"
        )
    return covariance


def _least_correlation(covariance: np.ndarray) -> np.ndarray:
    """The smallest eigenvalue of each matrix ``(n, d, d)`` in units in which variances are one."""
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    spread = np.sqrt(np.where(variance > 0, variance, 1.0))
    return np.asarray(np.linalg.eigvalsh(covariance / spread[:, :, None] / spread[:, None, :])[:, 0])


def _check_density(has_density: np.ndarray) -> None:
    """Refuse to give the density of predictions that have none."""
    if not has_density.all():
        raise InputError(
            f"prediction {int(np.argmin(has_density))} has no spread along some direction, and so no density: for a log loss leave "
            "such rows out; SKCE() and EnergyScore() take them"
        )


@closed_form(Gaussian, MultivariateNormal, MultivariateNormal, any_metric=True)
def _gaussian(kernel: Gaussian, p: MultivariateNormal, q: MultivariateNormal) -> Any:
    """A Gaussian integral: coordinate by coordinate where covariances are diagonal, else by a Cholesky factor a pair."""
    if not kernel.is_euclidean:
        units = kernel.metric.units(p.loc.shape[1])
        if units is NotImplemented:
            return NotImplemented
        return _gaussian(Gaussian(kernel.unit), p.divided(units), q.divided(units))
    xp = namespace(p.loc)
    width = kernel.unit**2
    if p.scale is not None and q.scale is not None:
        log_volume, distance, volume = 0.0, 0.0, 1.0
        shared = LOGARITHM if 1e-30 < width < 1e30 else 1
        for c in range(p.loc.shape[1]):
            total = width + p.scale[:, c][:, None] ** 2 + q.scale[:, c][None, :] ** 2
            volume = volume * (total / width)
            if c % shared == shared - 1 or c == p.loc.shape[1] - 1:
                log_volume, volume = log_volume + xp.log(volume), 1.0
            distance = distance + (p.loc[:, c][:, None] - q.loc[:, c][None, :]) ** 2 / total
        return xp.exp(-0.5 * (log_volume + distance))
    d = p.loc.shape[1]
    covariance = p.full[:, None, :, :] + q.full[None, :, :, :] + width * _eye(p.loc)
    factor = xp.linalg.cholesky(covariance)
    white = xp.linalg.solve(factor, (p.loc[:, None, :] - q.loc[None, :, :])[..., None])[..., 0]
    log_volume = 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)), axis=-1) - d * math.log(width)
    return xp.exp(-0.5 * (log_volume + xp.sum(white**2, axis=-1)))


def dimensions(predictions: Distribution) -> int:
    """How many coordinates targets have; 0 of targets that are numbers.

    >>> dimensions(Normal([0.0], 1.0)), dimensions(MultivariateNormal([[0.0, 1.0]], 1.0))
    (0, 2)
    """
    check_is_distribution(predictions, "predictions")
    shape = predictions[:1].sample(np.random.default_rng(0), 1).shape
    return 0 if len(shape) == 2 else int(shape[2])


def are_shares(predictions: Distribution) -> bool:
    """Whether targets are vectors whose coordinates always have the same sum, as shares of a whole do.

    >>> are_shares(Ensemble([[[0.5, 0.5], [0.2, 0.8]]])), are_shares(MultivariateNormal([[0.5, 0.5]], 1.0))
    (True, False)
    """
    if not dimensions(predictions):
        return False
    drawn = predictions[:2].sample(np.random.default_rng(0), 8)
    return bool(np.ptp(drawn.sum(axis=-1)) < SAME_SUM * np.abs(drawn).max())


@singledispatch
def coordinate(predictions: Distribution, index: int) -> Distribution:
    """What is predicted of one coordinate alone; other families join with ``coordinate.register``.

    >>> coordinate(MultivariateNormal([[0.0, 1.0]], [[2.0, 3.0]]), 1).coords
    array([[1., 3.]])
    """
    check_is_distribution(predictions, "predictions")
    raise InputError(
        f"{type(predictions).__name__} does not say what it predicts of coordinate {index} alone: give an Ensemble of draws"
    )


def check_index(index: int, count: int) -> None:
    """Refuse what is no number of a coordinate."""
    if not isinstance(index, int | np.integer) or not -count <= index < count:
        raise InputError(f"index must be that of a coordinate, from 0 to {count - 1}; got {index!r}")


@coordinate.register
def _members(predictions: Ensemble, index: int) -> Distribution:
    check_index(index, dimensions(predictions))
    return Ensemble(predictions.members[:, :, index], predictions.weights)


@coordinate.register
def _normal(predictions: MultivariateNormal, index: int) -> Distribution:
    check_index(index, predictions.loc.shape[1])
    std = predictions.std[:, index]
    if not is_traced(std) and bool(namespace(std).any(std == 0)):
        raise InputError(
            f"coordinate {index} is predicted without any spread in row {int(namespace(std).argmin(std))}, so there is no normal "
            "distribution of it: leave such coordinates or rows out"
        )
    return Normal(predictions.mean[:, index], std)


@coordinate.register
def _mixed(predictions: Mixture, index: int) -> Distribution:
    return Mixture(tuple(coordinate(c, index) for c in predictions.components), predictions.weights)
