"""Predictions given by probabilities of bins: binned regression, distributional networks, tabulated forecasts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from calibrant._array import is_array, is_traced, namespace, to_numpy
from calibrant._validate import RANGE_SLACK, SUM_SLACK, InputError, as_array, as_probabilities, check_same_length
from calibrant.distributions.base import matched
from calibrant.distributions.piecewise import Piecewise
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Histogram(Piecewise):
    """Probabilities ``probs`` ``(n, m)`` of m bins, each with an even density, between ``edges`` ``(m + 1,)`` or ``(n, m + 1)``.

    The outer edges may be infinite: an open bin is an exponential tail whose scale is the width of the bin beside it.
    Rows may miss one by rounding (up to 1e-3) and are normalised. Coordinates are 64 quantiles: their Euclidean distance
    is nearly the Wasserstein distance W2. All else is exact; O(m) a row.

    >>> rain = Histogram([0.0, 1.0, 5.0, np.inf], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    >>> rain.cdf(np.array([3.0, 5.0]))
    array([0.7, 0.4])
    >>> rain.mean
    array([2.35, 6.35])
    """

    edges: Array
    probs: Array

    def __post_init__(self) -> None:
        probs = as_probabilities(self.probs, "probs")
        if probs.ndim != 2:
            raise InputError(f"probs must be (n, m), a column a bin; got shape {tuple(probs.shape)}")
        _check_sums(probs)
        object.__setattr__(self, "probs", probs)
        object.__setattr__(self, "edges", _checked_edges(self.edges, probs))

    @classmethod
    def from_cdf(cls, grid: ArrayLike, cdf: ArrayLike) -> Self:
        """Distribution functions ``(n, m)`` at values ``(m,)`` or ``(n, m)``, joined by straight lines.

        What they leave below the first and above the last value is in open bins.

        >>> Histogram.from_cdf([0.0, 1.0, 2.0], [[0.0, 0.5, 1.0], [0.2, 0.5, 0.9]]).edges
        array([-inf,   0.,   1.,   2.,  inf])
        """
        levels = as_probabilities(cdf, "cdf")
        if levels.ndim != 2:
            raise InputError(f"cdf must be (n, m), a column a value of the grid; got shape {tuple(levels.shape)}")
        xp, host = namespace(levels), to_numpy(levels)
        falls = np.diff(host, axis=1) < -RANGE_SLACK
        if falls.any():
            row, place = (int(i) for i in np.argwhere(falls)[0])
            raise InputError(
                f"cdf must not fall; in row {row} {host[row, place + 1]:g} comes after {host[row, place]:g}"
            )
        probs = xp.concat(
            [levels[:, :1], xp.clip(levels[:, 1:] - levels[:, :-1], 0.0, 1.0), 1 - levels[:, -1:]], axis=1
        )
        edges = to_numpy(as_array(grid, "grid")).astype(np.float64)
        if edges.ndim not in (1, 2) or edges.shape[-1] != levels.shape[1]:
            raise InputError(f"grid must be ({levels.shape[1]},) or (n, {levels.shape[1]}); got shape {edges.shape}")
        inner = slice(0 if host[:, 0].any() else 1, None if (host[:, -1] < 1).any() else -1)
        ends = [np.full((*edges.shape[:-1], 1), end) for end in (-np.inf, np.inf)]
        return cls(np.concatenate([ends[0], edges, ends[1]], axis=-1)[..., inner], probs[:, inner])

    @classmethod
    def _trusted(cls, edges: Array, probs: Array) -> Self:
        self = object.__new__(cls)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "probs", probs)
        return self

    def __getitem__(self, rows: slice | Array) -> Self:
        edges = self.edges if self.edges.ndim == 1 else self.edges[rows, :]
        return self._trusted(edges, self.probs[rows, :])

    def __repr__(self) -> str:
        return f"<Histogram: {how_many(len(self), 'prediction')} of {how_many(self.probs.shape[1], 'bin')}>"

    @property
    def parameters(self) -> list[Array]:
        """The probabilities, and the edges where each row has its own."""
        return [self.probs] if self.edges.ndim == 1 else [self.probs, self.edges]

    @property
    def position(self) -> Array:
        """The lowest finite edges."""
        return self.shape[0][:, 0]

    def shifted(self, by: float) -> Self:
        """All edges moved."""
        return self._trusted(self.edges + by, self.probs)

    @cached_property
    def shape(self) -> tuple[Array, Array, Array]:
        """Finite edges, what is below them, and the widths of the outer finite bins where the bins beyond are open."""
        xp, probs = namespace(self.probs), self.probs
        n, m = probs.shape
        is_open = [not np.isfinite(to_numpy(self.edges)[..., end].flat[0]) for end in (0, -1)]
        inner = slice(int(is_open[0]), m + 1 - int(is_open[1]))
        nodes = xp.broadcast_to(
            xp.astype(matched(self.edges, probs), probs.dtype)[..., inner], (n, inner.stop - inner.start)
        )
        sums = xp.cumulative_sum(probs, axis=1, include_initial=True)
        levels = (sums / sums[:, -1:])[:, inner]
        widths = nodes[:, 1] - nodes[:, 0], nodes[:, -1] - nodes[:, -2]
        scales = [width if wide else 0 * width for width, wide in zip(widths, is_open, strict=True)]
        return nodes, levels, xp.stack(scales, axis=1)

    def point(self, y: Array) -> Self:
        """A bin without width."""
        xp, y = namespace(self.probs), matched(y, self.probs)
        both = xp.astype(xp.stack([y, y], axis=1), self.probs.dtype)
        return self._trusted(both, xp.ones_like(both[:, :1]))

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Four bins around 0, the last one open."""
        return cls([-2.0, -0.5, 0.3, 1.5, np.inf], rng.dirichlet(np.full(4, 3.0), n))


def _check_sums(probs: Array) -> None:
    """Refuse rows that do not sum to one."""
    if is_traced(probs):
        return
    total = to_numpy(probs).astype(np.float64).sum(axis=1)
    row = int(np.abs(total - 1).argmax())
    if abs(total[row] - 1) > SUM_SLACK:
        raise InputError(
            f"probs rows must sum to 1 (within {SUM_SLACK:g}); row {row} sums to {total[row]:.6g}: divide by the sums, "
            "or add open bins with infinite edges for what is missing"
        )


def _checked_edges(x: ArrayLike, probs: Array) -> Array:
    """Edges that increase, the outer ones finite or not."""
    edges = as_array(x, "edges")
    n, m = probs.shape
    host = to_numpy(edges)
    if host.ndim not in (1, 2) or host.shape[-1] != m + 1 or host.dtype.kind not in "fiu":
        raise InputError(
            f"edges must be ({m + 1},) or (n, {m + 1}) numbers, one more than bins; got shape {host.shape}"
        )
    if host.ndim == 2:
        check_same_length(len(host), n, "edges", "probs")
    table = np.atleast_2d(host.astype(np.float64))
    outer = np.isinf(table) & (np.arange(m + 1) == np.where(table > 0, m, 0))
    with np.errstate(invalid="ignore"):
        steps = np.diff(table, axis=1) > 0
    bad = ~(np.isfinite(table) | outer) | np.c_[np.zeros(len(table), dtype=bool), ~steps]
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        where = f" of row {row}" if host.ndim == 2 else ""
        raise InputError(
            f"edges must increase, and only the outer ones may be infinite; found {table[row, place]:g} at place {place}{where}"
        )
    if m + 1 - outer[0].sum() < 2:
        raise InputError("edges: at least one bin must have two finite edges")
    if (outer != outer[0]).any():
        raise InputError("edges: outer bins must be open in every row or in none")
    return edges if is_array(x) and not isinstance(x, np.ndarray) else host.astype(np.float64)
