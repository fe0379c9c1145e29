"""Named Wasserstein distances between predictions: metrics that may fail to give positive definite kernels.

Between Gaussians whose covariances do not commute, and between mixtures, Wasserstein distances are not Hilbertian. They are offered
because the literature uses them; :func:`check_positive_definite` measures how far a kernel matrix is from being one.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution
from calibrant.distributions.mixture import Mixture
from calibrant.distributions.mvnormal import MultivariateNormal
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

    name = "euclidean"  # only for the median of the embedded points

    def embed(self, predictions: Distribution) -> np.ndarray:
        """Mean and covariance, flattened, ``(n, d + d^2)``."""
        if not isinstance(predictions, MultivariateNormal) or predictions.loc.shape[1] != self.dimensions:
            raise InputError(
                f"BuresWasserstein({self.dimensions}) takes MultivariateNormal predictions; got {predictions!r}"
            )
        loc = to_numpy(predictions.loc).astype(np.float64)
        covariance = to_numpy(predictions.full).astype(np.float64)
        return np.concatenate([loc, covariance.reshape(len(loc), -1)], axis=1)

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)``, by eigenvalues a pair."""
        d = self.dimensions
        mean = ((x[:, None, :d] - y[None, :, :d]) ** 2).sum(axis=-1)
        first, second = x[:, d:].reshape(-1, d, d), y[:, d:].reshape(-1, d, d)
        values, vectors = np.linalg.eigh(first)
        root = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        middle = root[:, None] @ second[None] @ root[:, None]
        overlap = np.sqrt(np.maximum(np.linalg.eigvalsh(middle), 0)).sum(axis=-1)
        traces = np.trace(first, axis1=1, axis2=2)[:, None] + np.trace(second, axis1=1, axis2=2)[None, :]
        return np.sqrt(np.maximum(mean + traces - 2 * overlap, 0))


@dataclass(frozen=True)
class MixtureWasserstein(Metric):
    """Optimal transport between the components of equally weighted mixtures, each component seen by its coordinates.

    The MW2 distance of Delon & Desolneux (2020) for normal components. May fail to be positive definite.

    >>> from calibrant.distributions.normal import Normal
    >>> batch = Mixture([Normal([0.0, 3.0], 1.0), Normal([2.0, 1.0], 1.0)])
    >>> metric = MixtureWasserstein(2)
    >>> float(metric(metric.embed(batch[:1]), metric.embed(batch[1:]))[0, 0])  # 0 -> 1 and 2 -> 3
    1.0
    """

    components: int

    name = "euclidean"  # only for the median of the embedded points

    def embed(self, predictions: Distribution) -> np.ndarray:
        """The coordinates of all components, flattened, ``(n, K c)``."""
        if not isinstance(predictions, Mixture) or len(predictions.components) != self.components:
            raise InputError(f"MixtureWasserstein({self.components}) takes such mixtures; got {predictions!r}")
        if len({type(component) for component in predictions.components}) > 1:
            raise InputError(f"MixtureWasserstein takes components of one family; got {predictions!r}")
        if not np.allclose(to_numpy(predictions.weights), 1 / self.components):
            raise InputError("MixtureWasserstein takes equal weights")
        parts = [to_numpy(component.coords).astype(np.float64) for component in predictions.components]
        return np.stack(parts, axis=1).reshape(len(predictions), -1)

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)``: one assignment problem a pair."""
        from scipy.optimize import linear_sum_assignment

        a, b = (points.reshape(len(points), self.components, -1) for points in (x, y))
        cost = ((a[:, None, :, None, :] - b[None, :, None, :, :]) ** 2).sum(axis=-1)
        squared = np.empty(cost.shape[:2])
        for i, j in np.ndindex(*squared.shape):
            squared[i, j] = cost[i, j][linear_sum_assignment(cost[i, j])].mean()
        return np.sqrt(squared)


def check_positive_definite(kernel: Kernel, predictions: Distribution) -> float:
    """The smallest eigenvalue of the kernel matrix of these predictions; warns if it is negative beyond rounding.

    >>> from calibrant.kernels import Gaussian
    >>> check_positive_definite(Gaussian(1.0, BuresWasserstein(2)), MultivariateNormal([[0.0, 0.0]], scale=1.0))
    1.0
    """
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
