"""Mixtures of any family: deep ensembles, mixture-density networks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._array import matched, namespace, to_numpy
from calibrant._validate import InputError, check_same_length
from calibrant.distributions.base import Distribution, as_shares, one_a_row
from calibrant.distributions.composite.truncated import Bounded
from calibrant.distributions.discrete.bernoulli import Bernoulli
from calibrant.distributions.discrete.categorical import Categorical
from calibrant.distributions.empirical.ensemble import Ensemble
from calibrant.distributions.quadrature import crps_by_cells, edges_of, least_reaching
from calibrant.kernels import Kernel
from calibrant.kernels.base import closed_form, expectation
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """Weighted mixtures: K batches of n components, and weights ``(n, K)`` or ``(K,)`` (equal if not given).

    Components may be of different families that predict the same kind of targets: all real numbers, all counts, all
    vectors of as many coordinates. Several components have no coordinates, and are compared by their mean embedding; a single
    one is as good as itself. A mixture of class probabilities is their average: give that as ``Categorical``.

    >>> from calibrant import Laplace
    >>> from calibrant import Normal
    >>> Mixture([Normal([0.0, 1.0], 1.0), Normal([2.0, 3.0], 0.5)])
    <Mixture: 2 predictions of 2 Normal components>
    >>> Mixture([Normal([0.0, 1.0], 1.0), Laplace([0.0, 1.0], 3.0)], [0.9, 0.1])
    <Mixture: 2 predictions of Normal and Laplace components>
    """

    components: tuple[Distribution, ...]
    weights: Array | None = None

    def __post_init__(self) -> None:
        components = tuple(self.components) if isinstance(self.components, Sequence) else ()
        if not components or not all(isinstance(c, Distribution) for c in components):
            raise InputError(f"components must be a list of distributions; got {self.components!r}")
        for i, component in enumerate(components):
            check_same_length(len(component), len(components[0]), f"components[{i}]", "components[0]")
        _check_kinds(components)
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", as_shares(self.weights, len(components[0]), len(components)))

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
        names = list(dict.fromkeys(type(c).__name__ for c in self.components))
        what = f"{len(self.components)} {names[0]}" if len(names) == 1 else " and ".join(names)
        return f"<Mixture: {how_many(len(self), 'prediction')} of {what} components>"

    @property
    def _is_pure(self) -> bool:
        """Whether all components are of one family."""
        return len({type(c) for c in self.components}) == 1

    @property
    def _only(self) -> Distribution | None:
        """The component of a mixture of one."""
        return self.components[0] if len(self.components) == 1 else None

    @property
    def parameters(self) -> list[Array]:
        """Those of all components, and the weights; of a single one, its own."""
        return super().parameters if self._only is None else self._only.parameters

    @property
    def coords(self) -> Any:
        """Those of a single component."""
        return NotImplemented if self._only is None else self._only.coords

    @property
    def is_cheaper_by_features(self) -> bool:
        """Where a single component is."""
        return self._only is not None and self._only.is_cheaper_by_features

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Those of the components; any real numbers, where components may have different ranges."""
        first = self.components[0]
        if (self._is_pure and not isinstance(first, Bounded)) or kind_of_targets(first) != "real numbers":
            return first.as_targets(y_true)
        return matched(one_a_row(y_true, "y_true"), self.parameters[0])

    def checked(self) -> Self:
        """With checked components."""
        return self._trusted(tuple(c.checked() for c in self.components), self.weights)

    def point(self, y: Array) -> Any:
        """A target of the components' family; a single member, where they have different ones."""
        return self.components[0].point(y) if self._is_pure else Ensemble.certain(matched(y, self.parameters[0]))

    @property
    def position(self) -> Any:
        """That of the first component."""
        return self.components[0].position

    def shifted(self, by: Any) -> Any:
        """All components moved."""
        moved = tuple(component.shifted(by) for component in self.components)
        return NotImplemented if any(part is NotImplemented for part in moved) else self._trusted(moved, self.weights)

    @property
    def kinks(self) -> Any:
        """Those of all components that have some."""
        some = [c.kinks for c in self.components if c.kinks is not NotImplemented]
        return np.concatenate(some, axis=1) if some else NotImplemented

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """A draw of a random component in each row."""
        if self._only is not None:
            return self._only.sample(rng, size)
        weights = to_numpy(self.weights).astype(np.float64)
        edges = np.cumsum(weights, axis=1)[:, :-1] / weights.sum(axis=1, keepdims=True)
        chosen = (rng.random((size, len(self), 1)) >= edges).sum(axis=2)
        drawn = np.stack([component.sample(rng, size) for component in self.components])
        index = np.expand_dims(chosen, axis=(0, *range(3, drawn.ndim)))
        return np.take_along_axis(drawn, index, axis=0)[0]

    def log_prob(self, targets: Array) -> Array:
        """Log of the weighted sum of densities; at single values with a probability of their own, of probabilities."""
        from scipy.special import logsumexp

        mass = 0.0 if self.kinks is NotImplemented else self.cdf(targets) - self.below(targets)
        with np.errstate(divide="ignore"):
            logs = [
                c.log_prob(targets) + np.log(w) for c, w in zip(self.components, to_numpy(self.weights).T, strict=True)
            ]
            # a density beside a probability counts for nothing
            return np.where(mass > 0, np.log(mass), logsumexp(logs, axis=0))

    def cdf(self, y: Array) -> Any:
        """Weighted sum."""
        return self._mean_of([component.cdf(y) for component in self.components])

    def below(self, y: Array) -> Any:
        """Weighted sum."""
        return self._mean_of([component.below(y) for component in self.components])

    @property
    def mean(self) -> Any:
        """Weighted sum."""
        mean = self._mean_of([_rows_last(component.mean) for component in self.components])
        return NotImplemented if mean is NotImplemented else mean.T

    @property
    def std(self) -> Any:
        """From the spread within and between the components."""
        means, stds = (
            [_rows_last(x) for x in parts] for parts in zip(*((c.mean, c.std) for c in self.components), strict=True)
        )
        if any(part is NotImplemented for part in (*means, *stds)):
            return NotImplemented
        centre = self._mean_of(means)
        return np.sqrt(self._mean_of([s**2 + (m - centre) ** 2 for m, s in zip(means, stds, strict=True)])).T

    def crps(self, y: Array) -> Any:
        """``sum w_j CRPS_j`` less half of what components differ by in pairs; by integration where those are not known."""
        scores = self._mean_of([component.crps(y) for component in self.components])
        pairs = (
            [[a.distance(b) for b in self.components] for a in self.components] if self._is_pure else [[NotImplemented]]
        )
        if scores is NotImplemented or any(d is NotImplemented for row in pairs for d in row):
            return crps_by_cells(self, y)
        w, d = to_numpy(self.weights).astype(np.float64), np.array(pairs)
        within = np.einsum("nj,jjn->n", w, d)
        return scores - (np.einsum("nj,jkn,nk->n", w, d, w) - within) / 2

    def _mean_of(self, parts: list[Any]) -> Any:
        """Weighted sum of numbers of the components, ``(..., n)``, on the host."""
        if any(part is NotImplemented for part in parts):
            return NotImplemented
        return sum(w * part for w, part in zip(to_numpy(self.weights).T, parts, strict=True))

    def quantile(self, u: Array) -> Any:
        """The least number with ``cdf >= u``, by bisection between the quantiles of the components."""
        if self._only is not None:
            return self._only.quantile(u)
        levels = to_numpy(u)
        ends = [component.quantile(levels) for component in self.components]
        if any(end is NotImplemented for end in ends):
            return NotImplemented
        return least_reaching(self.cdf, levels, np.minimum.reduce(ends), np.maximum.reduce(ends))

    def cf(self, w: Array) -> Any:
        """Weighted sum."""
        parts = [component.cf(w) for component in self.components]
        if any(part is NotImplemented for part in parts):
            return NotImplemented
        return tuple(self.sum_of([part[i] for part in parts], rows=True) for i in range(2))

    def sum_of(self, parts: list[Array], *, rows: bool) -> Array:
        """Weighted sum of values of the components, in their library and precision; predictions are rows or columns."""
        weights = namespace(parts[0]).astype(matched(self.weights, parts[0]), parts[0].dtype)
        by_component = [weights[:, k][:, None] if rows else weights[:, k][None, :] for k in range(len(parts))]
        return sum(w * part for w, part in zip(by_component, parts, strict=True))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Two normal components."""
        from calibrant.distributions.continuous.location_scale import Normal

        return cls((Normal.example(rng, n), Normal.example(rng, n)), rng.dirichlet([1, 1], n))


def kind_of_targets(predictions: Distribution) -> str:
    """What kind of targets a family predicts, in words.

    >>> from calibrant import Normal
    >>> kind_of_targets(Normal([0.0], 1.0))
    'real numbers'
    """
    if isinstance(predictions, Categorical | Bernoulli):
        return "classes"
    drawn = predictions[:1].sample(np.random.default_rng(0), 1)
    noun = "whole" if drawn.dtype.kind in "iu" else "real"
    return f"{noun} numbers" if drawn.ndim == 2 else f"{noun} vectors of {drawn.shape[2]} coordinates"


def _check_kinds(components: tuple[Distribution, ...]) -> None:
    """Refuse classes, and components of different families that predict different kinds of targets."""
    first, *others = {type(c) for c in components}
    if not others and issubclass(first, Categorical | Bernoulli):
        raise InputError(
            "components must not be class probabilities, as a mixture of those is their weighted average: give "
            f"{first.__name__}(average) instead, with average = sum(w * p for w, p in zip(weights, probabilities))"
        )
    if not others:
        return
    kinds = [kind_of_targets(c) for c in components]
    if len(set(kinds)) > 1 or "classes" in kinds:
        found = ", ".join(f"{type(c).__name__} ({kind})" for c, kind in zip(components, kinds, strict=True))
        raise InputError(f"components must predict the same kind of targets; got {found}")


def _rows_last(x: Any) -> Any:
    """Numbers ``(n,)`` or ``(n, d)`` on the host, turned; NotImplemented stays."""
    return x if x is NotImplemented else to_numpy(x).T


@edges_of.register
def _edges(predictions: Mixture) -> np.ndarray:
    """Those of all components, which may lie far apart."""
    return np.sort(np.concatenate([edges_of(component) for component in predictions.components], axis=1), axis=1)


@closed_form(Kernel, Mixture, Distribution)
def _rows(kernel: Kernel, p: Mixture, q: Distribution) -> Any:
    """Linear in the first argument."""
    parts = [expectation(kernel, component, q) for component in p.components]
    return NotImplemented if any(part is NotImplemented for part in parts) else p.sum_of(parts, rows=True)


@closed_form(Kernel, Distribution, Mixture)
def _columns(kernel: Kernel, p: Distribution, q: Mixture) -> Any:
    """Linear in the second argument."""
    parts = [expectation(kernel, p, component) for component in q.components]
    return NotImplemented if any(part is NotImplemented for part in parts) else q.sum_of(parts, rows=False)
