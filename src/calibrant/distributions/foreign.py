"""Distributions of other libraries that are no family of our own: asked for what they can say."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibrant._array import to_numpy
from calibrant._validate import InputError
from calibrant.distributions.base import Distribution, one_a_row
from calibrant.distributions.cells import cf_by_cells, crps_by_cells, moments_by_cells
from calibrant.distributions.ensemble import SLICES, Ensemble
from calibrant.distributions.reader import Reader
from calibrant.results import how_many
from calibrant.typing import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class Foreign(Distribution):
    """A batch of n distributions of numbers in one object of another library, or a tuple of one object a row.

    Uses whatever there is of ``cdf``, quantiles (``ppf``, ``icdf``, ``quantile``), densities (``logpdf``, ``log_prob``, ...) and
    draws (``rvs``, ``sample``). Quantiles that are missing are found by bisection; moments, ranked scores and
    characteristic functions are integrals of the distribution function. Objects that can only be drawn from have no
    scores but those of draws. Coordinates are 64 quantiles, nearly the Wasserstein distance W2, or as many draws.

    >>> from scipy.stats import gumbel_r
    >>> Foreign(gumbel_r([0.0, 1.0], scale=2.0)).cdf(np.array([0.0, 1.0])).round(4)
    array([0.3679, 0.3679])
    """

    source: Any
    rows: np.ndarray | None = None

    def __post_init__(self) -> None:
        first = self._readers[0].source
        if tuple(getattr(first, "event_shape", ())) or isinstance(getattr(first, "dim", None), int):
            raise InputError(
                f"y_pred is a {type(first).__name__} of vectors, which is no family here: give draws of it, as in "
                "Ensemble.from_draws(y_pred.sample((100,)))"
            )
        self._readers[0].draws(np.random.default_rng(0), 1)  # says what is missing

    @cached_property
    def _readers(self) -> list[Reader]:
        objects = self.source if isinstance(self.source, tuple) else (self.source,)
        return [Reader(x) for x in objects]

    def __len__(self) -> int:
        if self.rows is not None:
            return len(self.rows)
        return len(self.source) if isinstance(self.source, tuple) else len(self._readers[0])

    def __getitem__(self, rows: slice | Array) -> Self:
        chosen = np.arange(len(self))[rows if isinstance(rows, slice) else to_numpy(rows)]
        part = object.__new__(type(self))
        if isinstance(self.source, tuple):
            object.__setattr__(part, "source", tuple(self.source[i] for i in chosen))
            object.__setattr__(part, "rows", None)
        else:
            object.__setattr__(part, "source", self.source)
            object.__setattr__(part, "rows", chosen if self.rows is None else self.rows[chosen])
        return part

    def __repr__(self) -> str:
        first = self._readers[0].source
        name = getattr(getattr(first, "dist", None), "name", type(first).__name__)
        return f"<Foreign: {how_many(len(self), 'prediction')} of {type(first).__module__.partition('.')[0]}, {name}>"

    def _asked(self, method: str, x: np.ndarray) -> Any:
        """What the object says of values ``(..., n)``, each about its own row."""
        if len(self._readers) > 1 or self.rows is None:
            parts = [
                getattr(r, method)(x if len(self._readers) == 1 else x[..., [i]]) for i, r in enumerate(self._readers)
            ]
            return NotImplemented if any(part is NotImplemented for part in parts) else np.concatenate(parts, axis=-1)
        # all rows of the object at once, as often as the most wanted row is wanted
        reader, turn = self._readers[0], _turns(self.rows)
        fill = np.full(len(reader), 0.5) if method == "quantile" else reader.typical
        whole = np.broadcast_to(fill, (*x.shape[:-1], turn.max() + 1, len(reader))).copy()
        whole[..., turn, self.rows] = x
        found = getattr(reader, method)(whole)
        return NotImplemented if found is NotImplemented else found[..., turn, self.rows]

    @property
    def is_whole(self) -> bool:
        """Whether targets are counts."""
        return all(reader.is_whole for reader in self._readers)

    def as_targets(self, y_true: ArrayLike) -> Array:
        """Numbers ``(n,)`` that can happen, as far as the object says."""
        y = to_numpy(one_a_row(y_true, "y_true"))
        possible = self._asked("possible", y) if len(y) == len(self) else np.ones(1, dtype=bool)
        if not possible.all():
            row = int(np.argmin(possible))
            raise InputError(f"y_true has {y[row]:g} in row {row}, which {self!r} call impossible")
        return y

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draws ``(size, n)``."""
        if len(self._readers) > 1:
            return np.concatenate([reader.draws(rng, size) for reader in self._readers], axis=1)
        if self.rows is None:
            return self._readers[0].draws(rng, size)
        turn = _turns(self.rows)
        drawn = self._readers[0].draws(rng, size * (int(turn.max()) + 1))
        return drawn.reshape(size, turn.max() + 1, -1)[:, turn, self.rows]

    def log_prob(self, targets: Array) -> Array:
        """Log density or mass."""
        found = self._asked("log_prob", to_numpy(targets).astype(np.float64))
        return super().log_prob(targets) if found is NotImplemented else found

    def cdf(self, y: Array) -> Any:
        """``P(Y <= y)``."""
        values = to_numpy(y).astype(np.float64)
        return self._asked("cdf", np.floor(values) if self.is_whole else values)

    def below(self, y: Array) -> Any:
        """``P(Y < y)``."""
        values = to_numpy(y).astype(np.float64)
        return self.cdf(np.ceil(values) - 1) if self.is_whole else self.cdf(values)

    def quantile(self, u: Array) -> Any:
        """Values ``(n, m)`` at the levels u."""
        levels = np.repeat(to_numpy(u).astype(np.float64)[:, None], len(self), axis=1)
        found = self._asked("quantile", levels)
        return NotImplemented if found is NotImplemented else found.T

    @cached_property
    def _nodes(self) -> np.ndarray:
        values = self.quantile((np.arange(SLICES) + 0.5) / SLICES)
        if values is NotImplemented:
            values = np.sort(self.sample(np.random.default_rng(0), SLICES), axis=0).T
        return values / SLICES**0.5

    @property
    def coords(self) -> np.ndarray:
        """Quantiles in the middle of 64 slices over 8, or as many draws in order."""
        return self._nodes

    @property
    def parameters(self) -> list[Array]:
        """What is known of each row."""
        return [self._nodes]

    def point(self, y: Array) -> Ensemble:
        """A single member."""
        return Ensemble.certain(to_numpy(y))

    @cached_property
    def _moments(self) -> Any:
        return moments_by_cells(self)

    @property
    def mean(self) -> Any:
        """By integration."""
        return NotImplemented if self._moments is NotImplemented else self._moments[0]

    @property
    def std(self) -> Any:
        """By integration."""
        return NotImplemented if self._moments is NotImplemented else self._moments[1]

    def crps(self, y: Array) -> Any:
        """By integration."""
        return crps_by_cells(self, y)

    def cf(self, w: Array) -> Any:
        """By integration."""
        return cf_by_cells(self, w)

    @classmethod
    def example(cls, rng: np.random.Generator, n: int) -> Self:
        """Gumbel distributions of SciPy."""
        from scipy.stats import gumbel_r

        return cls(gumbel_r(rng.normal(size=n), rng.uniform(0.5, 2, n)))


def _turns(rows: np.ndarray) -> np.ndarray:
    """How often each row number has come before.

    >>> _turns(np.array([3, 1, 3, 3]))
    array([0, 0, 1, 2])
    """
    order = np.argsort(rows, kind="stable")
    first = np.r_[True, np.diff(rows[order]) != 0]
    turns = np.empty(len(rows), dtype=np.intp)
    turns[order] = np.arange(len(rows)) - np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    return turns
