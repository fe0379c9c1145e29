"""Named Wasserstein distances between predictions: metrics that may fail to give positive definite kernels.

Between Gaussians whose covariances do not commute, and between mixtures, Wasserstein distances are not Hilbertian. They are offered
because the literature uses them; :func:`check_positive_definite` measures how far a kernel matrix is from being one.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from calibrant._array import as_double, constant, is_traced, matched, namespace, to_numpy
from calibrant._compiled.transport import transports
from calibrant._validate import InputError, check_count
from calibrant.distributions.base import Distribution, check_is_distribution
from calibrant.distributions.composite.mixture import Mixture
from calibrant.distributions.multivariate import MultivariateNormal, matrix_root
from calibrant.kernels import Kernel, Metric
from calibrant.results import how_many
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
        overlap = xp.sum(_power(xp.linalg.eigvalsh(root @ second[None, :, :, :] @ root), 0.5), axis=-1)
        traces = xp.linalg.trace(first)[:, None] + xp.linalg.trace(second)[None, :]
        return _power(mean + traces - 2 * overlap, 0.5)


MAX_COSTS = 1 << 22
"""Costs of moving a component to another that are held at a time."""


@dataclass(frozen=True)
class MixtureWasserstein(Metric):
    """Optimal transport between the components of mixtures, each component seen by its coordinates.

    ``(min sum_kl w_kl d(P_k, Q_l)^power)^(1 / power)`` over all plans w that move the weights of one mixture to those of the
    other: MW_s of Widmann, Lindsten & Zachariah (2021), equation D.2, and for normal components and power 2 the MW2 of Delon &
    Desolneux (2020). Mixtures have at most so many ``components``; those that lack some, and predictions of the family of the
    components itself, get components without weight. May fail to be positive definite. O(components^3) for each pair.

    >>> from calibrant import Normal
    >>> batch = Mixture([Normal([0.0, 3.0], 1.0), Normal([2.0, 1.0], 1.0)])
    >>> metric = MixtureWasserstein(2)
    >>> float(metric(metric.embed(batch[:1]), metric.embed(batch[1:]))[0, 0])  # 0 -> 1 and 2 -> 3
    1.0
    >>> metric = MixtureWasserstein(2, power=1)
    >>> float(metric(metric.embed(batch[:1]), metric.embed(Normal([0.0], 1.0)))[0, 0])  # half of it moves by 2
    1.0
    """

    components: int
    power: float = 2

    def __post_init__(self) -> None:
        check_count(self.components, "components")
        if not isinstance(self.power, int | float) or not 1 <= self.power < np.inf:
            raise InputError(f"power must be a number of at least 1; got {self.power!r}")

    def embed(self, predictions: Distribution) -> Array:
        """Weights, and the coordinates of all components, ``(n, K + K c)``."""
        mixture = predictions if isinstance(predictions, Mixture) else Mixture((predictions,))
        parts = [component.coords for component in mixture.components]
        if len({type(component) for component in mixture.components}) > 1:
            raise InputError(f"MixtureWasserstein takes components of one family; got {predictions!r}")
        if len(parts) > self.components or any(part is NotImplemented for part in parts):
            raise InputError(
                f"MixtureWasserstein({self.components}) takes mixtures of at most {how_many(self.components, 'component')} that "
                f"have coordinates; got {predictions!r}"
            )
        if any(is_traced(part) for part in (*parts, mixture.weights)):
            raise InputError(
                "MixtureWasserstein cannot be traced by JAX: give arrays of numbers, outside of jit and grad"
            )
        xp, n, missing = namespace(*parts), len(mixture), self.components - len(parts)
        points = xp.stack([as_double(part) for part in parts] + [as_double(parts[0])] * missing, axis=1)
        weights = as_double(matched(mixture.weights, points))
        weights = weights / xp.sum(weights, axis=1, keepdims=True)
        return xp.concat([weights, *[0 * weights[:, :1]] * missing, xp.reshape(points, (n, -1))], axis=1)

    def __call__(self, x: Array, y: Array) -> Array:
        """Distances ``(n, m)``: one problem of transport for each pair, solved on the host."""
        k = self.components
        step = max(1, MAX_COSTS // (k * k * len(y)))
        parts = [self._between(x[i : i + step, :], y) for i in range(0, len(x), step)]
        return namespace(x, y).concat(parts)

    def _between(self, x: Array, y: Array) -> Array:
        """Through plans and prices, which are constants to gradients, the costs and the weights have theirs."""
        xp, k = namespace(x, y), self.components
        a, b = (xp.reshape(points[:, k:], (len(points), k, -1)) for points in (x, y))
        squares = xp.sum((a[:, None, :, None, :] - b[None, :, None, :, :]) ** 2, axis=-1)
        cost = squares if self.power == 2 else _power(squares, self.power / 2)
        weights = [constant(points[:, :k]) for points in (x, y)]
        found = transports(*(to_numpy(part).astype(np.float64) for part in (constant(cost), *weights)))
        plan, of_rows, of_columns = (matched(part, cost) for part in found)
        total = xp.sum(cost * plan, axis=(2, 3))
        total = total + xp.sum((x[:, :k] - weights[0])[:, None, :] * of_rows, axis=2)
        return _power(total + xp.sum((y[:, :k] - weights[1])[None, :, :] * of_columns, axis=2), 1 / self.power)


def _power(x: Array, power: float) -> Array:
    """A power, taken where it has a derivative; zero of what rounding made negative."""
    xp = namespace(x)
    return xp.where(x > 0, xp.where(x > 0, x, xp.ones_like(x)) ** power, xp.zeros_like(x))


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
