"""Many statistics of the observed targets and of the same redraws: one exact p-value for all, and one for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from calibrant._array import to_numpy
from calibrant.estimators.base import Statistic
from calibrant.inference.draws import draw
from calibrant.inference.ranks import at_least, nearer_tail
from calibrant.results import Interval
from calibrant.results.outcome import central_band
from calibrant.typing import Array, Engine, Seed


class Redrawable(Protocol):
    """What targets are redrawn from: predictions, as a rule."""

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Targets ``(size, n, ...)``."""
        ...


@dataclass(frozen=True, eq=False)
class Pool:
    """Statistics by name, ``(redraws + 1, columns)``, the observed one last; ``two_sided`` ones are extreme at both ends.

    If the model is calibrated all rows are exchangeable, so whatever ranks them all alike has exact p-values at every n:
    the rank of one column, of the smallest rank over columns (:meth:`together`), and of the largest standard score over a
    family of columns, which allows for their number and for how they depend (:meth:`adjusted`). Schrab et al. (2023);
    Westfall & Young (1993).

    >>> pool = Pool({"a": np.array([[1.0], [2.0], [4.0], [5.0]]), "b": np.array([[0.0], [1.0], [0.0], [0.5]])})
    >>> pool.pvalue("a"), pool.together(["a", "b"])
    (0.25, 0.5)
    """

    values: Mapping[str, np.ndarray]
    two_sided: frozenset[str] = frozenset()

    @classmethod
    def draw(
        cls,
        statistics: Mapping[str, Statistic],
        targets: Array,
        predictions: Redrawable,
        n_resamples: int,
        *,
        two_sided: Sequence[str] = (),
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> "Pool":
        """All statistics, of one number or of several, on the targets and on the same redraws of them."""
        parts = tuple(statistics.values())
        observed = [_columns(part, to_numpy(targets)[None]) for part in parts]
        width = int(np.prod(targets.shape))
        null = draw(partial(_redraw, parts, predictions), n_resamples, width=width, rng=rng, engine=engine)
        pool = np.concatenate([null, np.concatenate(observed, axis=1)])
        ends = np.cumsum([part.shape[1] for part in observed])[:-1]
        return cls(dict(zip(statistics, np.split(pool, ends, axis=1), strict=True)), frozenset(two_sided))

    @property
    def n_resamples(self) -> int:
        """How many redraws there are."""
        return len(next(iter(self.values.values()))) - 1

    def null(self, name: str, column: int = 0) -> np.ndarray:
        """What a calibrated model shows."""
        return self.values[name][:-1, column]

    def observed(self, name: str, column: int = 0) -> float:
        """What these targets show."""
        return float(self.values[name][-1, column])

    def excess(self, name: str) -> np.ndarray:
        """How far each column exceeds what a calibrated model shows on average."""
        values = self.values[name]
        return values[-1] - values[:-1].mean(axis=0)

    def null_band(self, name: str, column: int = 0, level: float = 0.95) -> Interval:
        """The central range of what a calibrated model shows."""
        return central_band(self.null(name, column), level)

    def pvalue(self, name: str, column: int = 0) -> float:
        """Of one statistic by itself."""
        return float(self._ranks(name)[-1, column] / (self.n_resamples + 1))

    def together(self, names: Sequence[str], families: Sequence[Sequence[str]] = ()) -> float:
        """One p-value for all: the smallest rank, ranked again, ties broken by how far a statistic stands out.

        Each of the ``families``, lists of names, counts as one statistic, its largest standard score.
        """
        largest = [self._scores(family).max(axis=1, keepdims=True) for family in families if family]
        ranks = [self._ranks(name) for name in names] + [at_least(column[:, 0])[:, None] for column in largest]
        scores = [self._scores([name]) for name in names] + largest
        least, score = np.concatenate(ranks, axis=1).min(axis=1), np.concatenate(scores, axis=1).max(axis=1)
        tied = (least == least[-1]) & (at_least(score) <= at_least(score)[-1])
        return float(np.mean((least < least[-1]) | tied))

    def adjusted(self, family: Sequence[str]) -> np.ndarray:
        """A p-value a column of the family that allows for looking at all of them: the rank of its score among the largest."""
        scores = self._scores(family)
        largest = scores.max(axis=1)
        return np.array([at_least(np.append(largest[:-1], score))[-1] for score in scores[-1]]) / len(largest)

    def strongest(self, names: Sequence[str]) -> str:
        """The one of these with the smallest rank, and among several the one that stands out most."""
        key = [(self._ranks(name)[-1].min(), -self._scores([name])[-1].max()) for name in names]
        return names[min(range(len(names)), key=key.__getitem__)]

    def _ranks(self, name: str) -> np.ndarray:
        rank = nearer_tail if name in self.two_sided else at_least
        return np.stack([rank(column) for column in self.values[name].T], axis=1)

    def _scores(self, names: Sequence[str]) -> np.ndarray:
        return np.concatenate([_standard(self.values[name], name in self.two_sided) for name in names], axis=1)


def _standard(pool: np.ndarray, is_two_sided: bool) -> np.ndarray:
    """Standard scores within the pool, without sign where both ends are extreme; what is infinite stands out without end."""
    finite = np.where(np.isfinite(pool), pool, np.nan)
    spread = np.nanstd(finite, axis=0)
    score = (finite - np.nanmean(finite, axis=0)) / np.where(spread > 0, spread, 1)
    return np.nan_to_num(np.abs(score) if is_two_sided else score, nan=np.inf)


def _columns(statistic: Statistic, targets: np.ndarray) -> np.ndarray:
    values = statistic(targets)
    return values[:, None] if values.ndim == 1 else values


def _redraw(
    statistics: tuple[Statistic, ...], predictions: Redrawable, seed: np.random.SeedSequence, size: int
) -> np.ndarray:
    """``(size, columns)``: all of them on the same redraws."""
    targets = predictions.sample(np.random.default_rng(seed), size)
    return np.concatenate([_columns(statistic, targets) for statistic in statistics], axis=1)
