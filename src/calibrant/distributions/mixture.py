"""Mixtures of any family: deep ensembles, mixture-density networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import namespace, to_numpy
from calibrant._validate import InputError, as_real, check_same_length
from calibrant.distributions.base import Distribution
from calibrant.expectation import closed_form, expectation
from calibrant.kernels import Kernel
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """Weighted mixtures: K batches of n components of one family, and weights ``(n, K)`` or ``(K,)`` (equal if not given).

    >>> from calibrant.distributions.normal import Normal
    >>> Mixture([Normal([0.0, 1.0], 1.0), Normal([2.0, 3.0], 0.5)])
    <Mixture: 2 predictions of 2 Normal components>
    """

    components: tuple[Distribution, ...]
    weights: Array | None = None

    def __post_init__(self) -> None:
        components = tuple(self.components) if isinstance(self.components, Sequence) else ()
        if not components or not all(isinstance(c, Distribution) for c in components):
            raise InputError(f"components must be a list of distributions; got {self.components!r}")
        if len({type(c) for c in components}) > 1:
            raise InputError(f"components must be of one family; got {[type(c).__name__ for c in components]}")
        for i, component in enumerate(components):
            check_same_length(len(component), len(components[0]), f"components[{i}]", "components[0]")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", _checked_weights(self.weights, len(components[0]), len(components)))

    @classmethod
    def _trusted(cls, components: tuple[Distribution, ...], weights: Array) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", weights)
        return self

    def __len__(self) -> int:
        return len(self.components[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        assert self.weights is not None
        return self._trusted(tuple(c[rows] for c in self.components), self.weights[rows, :])

    def __repr__(self) -> str:
        family = type(self.components[0]).__name__
        return f"<Mixture: {len(self):,} predictions of {len(self.components)} {family} components>"

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Those of the components."""
        return self.components[0].as_targets(y_true)

    def point(self, y: Array) -> Any:
        """A target of the components' family."""
        return self.components[0].point(y)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """A draw of a random component in each row."""
        weights = to_numpy(self.weights).astype(np.float64)
        edges = np.cumsum(weights, axis=1)[:, :-1] / weights.sum(axis=1, keepdims=True)
        chosen = (rng.random((size, len(self), 1)) >= edges).sum(axis=2)
        drawn = np.stack([component.sample(rng, size) for component in self.components])
        index = np.expand_dims(chosen, axis=(0, *range(3, drawn.ndim)))
        return np.take_along_axis(drawn, index, axis=0)[0]

    def log_prob(self, targets: Array) -> Array:
        """Log of the weighted sum of densities."""
        from scipy.special import logsumexp

        with np.errstate(divide="ignore"):
            logs = [
                c.log_prob(targets) + np.log(w) for c, w in zip(self.components, to_numpy(self.weights).T, strict=True)
            ]
        return logsumexp(logs, axis=0)

    def cdf(self, y: Array) -> Any:
        """Weighted sum."""
        parts = [component.cdf(y) for component in self.components]
        if any(part is NotImplemented for part in parts):
            return NotImplemented
        return sum(w * part for w, part in zip(to_numpy(self.weights).T, parts, strict=True))

    def cf(self, w: Array) -> Any:
        """Weighted sum."""
        parts = [component.cf(w) for component in self.components]
        if any(part is NotImplemented for part in parts):
            return NotImplemented
        assert self.weights is not None
        real = sum(self.weights[:, k][:, None] * part[0] for k, part in enumerate(parts))
        return real, sum(self.weights[:, k][:, None] * part[1] for k, part in enumerate(parts))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Two normal components."""
        from calibrant.distributions.normal import Normal

        return cls((Normal.example(rng, n), Normal.example(rng, n)), rng.dirichlet([1, 1], n))


def _checked_weights(weights: ArrayLike | None, n: int, k: int) -> Array:
    if weights is None:
        return np.full((n, k), 1 / k)
    w = as_real(weights, "weights")
    xp = namespace(w)
    w = xp.broadcast_to(w[None, :], (n, k)) if w.ndim == 1 and w.shape[0] == k else w
    if tuple(w.shape) != (n, k):
        raise InputError(f"weights must be (n, {k}) or ({k},); got shape {tuple(w.shape)}")
    if float(xp.min(w)) < 0:
        raise InputError(f"weights must not be negative; found {float(xp.min(w)):g}")
    worst = float(xp.max(xp.abs(xp.sum(w, axis=1) - 1)))
    if worst > 1e-6:
        raise InputError(f"weights of a row must sum to 1; one is off by {worst:.3g}")
    return w


@closed_form(Kernel, Mixture, Distribution)
def _rows(kernel: Kernel, p: Mixture, q: Distribution) -> Any:
    """Linear in the first argument."""
    parts = [expectation(kernel, component, q) for component in p.components]
    if any(part is NotImplemented for part in parts):
        return NotImplemented
    assert p.weights is not None
    return sum(p.weights[:, k][:, None] * part for k, part in enumerate(parts))


@closed_form(Kernel, Distribution, Mixture)
def _columns(kernel: Kernel, p: Distribution, q: Mixture) -> Any:
    """Linear in the second argument."""
    parts = [expectation(kernel, p, component) for component in q.components]
    if any(part is NotImplemented for part in parts):
        return NotImplemented
    assert q.weights is not None
    return sum(q.weights[:, k][None, :] * part for k, part in enumerate(parts))
