"""Named Wasserstein distances between predictions: metrics that may fail to give positive definite kernels.

Between Gaussians whose covariances do not commute, and between mixtures, Wasserstein distances are not Hilbertian. They are offered
because the literature uses them; :func:`check_positive_definite` measures how far a kernel matrix is from being one.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from calibrant._array import as_double, is_traced, matched, namespace, to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, check_is_distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.multivariate import MultivariateNormal, matrix_root
from calibrant.kernels import Kernel, Metric
from calibrant.typing import Array


@dataclass(frozen=True)
class BuresWasserstein(Metric):
    """W2 between normal distributions in ``dimensions`` dimensions, by the Bures distance of their covariances.

    ``|m - m'|^2 + tr(S + S' - 2 (S^{1/2} S' S^{1/2})^{1/2})``. May fail to be positive definite from two dimensions on.

    >>> batch = MultivariateNormal([[0.0, 0.0], [3.0, 4.0]], scale=1.0)
    >>> metric = BuresWasserstein(2)
    >>> metric(metric.embed(batch), metric.embed(batch)).round(6)
    array([[0., 5.],
           [5., 0.]])
    """

    dimensions: int

    def embed(self, predictions: Distribution) -> Array:
        """Mean and covariance, flattened, ``(n, d + d^2)``."""
        if not isinstance(predictions, MultivariateNormal) or predictions.loc.shape[1] != self.dimensions:
            raise InputError(
                f"BuresWasserstein({self.dimensions}) takes MultivariateNormal predictions; got {predictions!r}"
            )
        loc, covariance = as_double(predictions.loc), as_double(predictions.full)
        xp = namespace(loc)
        return xp.concat([loc, xp.reshape(covariance, (loc.shape[0], -1))], axis=1)

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)``, by eigenvalues of each pair."""
        xp, d = namespace(x, y), self.dimensions
        mean = xp.sum((x[:, None, :d] - y[None, :, :d]) ** 2, axis=-1)
        first, second = (xp.reshape(points[:, d:], (-1, d, d)) for points in (x, y))
        root = matrix_root(first)[:, None, :, :]
        overlap = xp.sum(_root(xp.linalg.eigvalsh(root @ second[None, :, :, :] @ root)), axis=-1)
        traces = xp.linalg.trace(first)[:, None] + xp.linalg.trace(second)[None, :]
        return _root(mean + traces - 2 * overlap)


@dataclass(frozen=True)
class MixtureWasserstein(Metric):
    """Optimal transport between the components of equally weighted mixtures, each component seen by its coordinates.

    The MW2 distance of Delon & Desolneux (2020) for normal components. May fail to be positive definite.

    >>> from calibrant import Normal
    >>> batch = Mixture([Normal([0.0, 3.0], 1.0), Normal([2.0, 1.0], 1.0)])
    >>> metric = MixtureWasserstein(2)
    >>> float(metric(metric.embed(batch[:1]), metric.embed(batch[1:]))[0, 0])  # 0 -> 1 and 2 -> 3
    1.0
    """

    components: int

    def embed(self, predictions: Distribution) -> Array:
        """The coordinates of all components, flattened, ``(n, K c)``."""
        if not isinstance(predictions, Mixture) or len(predictions.components) != self.components:
            raise InputError(f"MixtureWasserstein({self.components}) takes such mixtures; got {predictions!r}")
        if len({type(component) for component in predictions.components}) > 1:
            raise InputError(f"MixtureWasserstein takes components of one family; got {predictions!r}")
        parts = [component.coords for component in predictions.components]
        if any(is_traced(part) for part in (*parts, predictions.weights)):
            raise InputError(
                "MixtureWasserstein cannot be traced by JAX: give arrays of numbers, outside of jit and grad"
            )
        if not np.allclose(to_numpy(predictions.weights), 1 / self.components):
            raise InputError("MixtureWasserstein takes equal weights")
        xp = namespace(*parts)
        return xp.reshape(xp.stack([as_double(part) for part in parts], axis=1), (len(predictions), -1))

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)``: one assignment problem for each pair, solved on the host."""
        xp = namespace(x, y)
        a, b = (xp.reshape(points, (points.shape[0], self.components, -1)) for points in (x, y))
        cost = xp.sum((a[:, None, :, None, :] - b[None, :, None, :, :]) ** 2, axis=-1)
        plans = matched(_assignments(to_numpy(cost)), cost)
        return _root(xp.sum(cost * plans, axis=(2, 3)) / self.components)


def _assignments(cost: np.ndarray) -> np.ndarray:
    """Which component goes where at the least cost: ones and zeros ``(n, m, K, K)``."""
    from scipy.optimize import linear_sum_assignment

    plans = np.zeros(cost.shape)
    for i, j in np.ndindex(*cost.shape[:2]):
        plans[(i, j, *linear_sum_assignment(cost[i, j]))] = 1.0
    return plans


def _root(x: Array) -> Array:
    """The square root, taken where it has a derivative; zero of what rounding made negative."""
    xp = namespace(x)
    return xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, xp.ones_like(x))), xp.zeros_like(x))


def check_positive_definite(kernel: Kernel, predictions: Distribution) -> float:
    """The smallest eigenvalue of the kernel matrix of these predictions; warns if it is negative beyond rounding.

    >>> from calibrant.kernels import Gaussian
    >>> check_positive_definite(Gaussian(1.0, BuresWasserstein(2)), MultivariateNormal([[0.0, 0.0]], scale=1.0))
    1.0
    """
    check_is_distribution(predictions, "predictions")
    embed = getattr(getattr(kernel, "metric", None), "embed", None)
    points = predictions.coords if embed is None else embed(predictions)
    if points is NotImplemented:
        raise InputError(f"{predictions!r} has no coordinates: give the kernel a metric that embeds the family")
    points = to_numpy(points)
    matrix = kernel.resolve(points)(points, points)
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    if least < -1e-10 * len(matrix):
        message = f"{kernel!r} is not positive definite on these predictions: smallest eigenvalue {least:.4f}"
        warnings.warn(message, UserWarning, stacklevel=2)
    return least
