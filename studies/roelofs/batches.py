"""Binned errors of many data sets at once, for studies that need thousands of them."""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Literal, Self, TypeAlias

import numpy as np

from calibrant._tasks import mapping
from calibrant._validate import check_count
from calibrant.lab import ScoreWorld
from calibrant.typing import Engine

CHUNK = 100
"""Data sets of one task. Seeds depend on it, so it is the same for everyone."""

Rule: TypeAlias = Literal["width", "mass"]
"""Bins of equal width, right-closed; or of equal mass, where ranks decide and ties are dealt out in the order of rows."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Data sets of one size, each sorted by score, with running totals: sums over any bins in a few subtractions.

    The errors are those of :class:`~calibrant.ECE` and its relatives on each data set alone, to rounding.

    >>> from calibrant.lab import BetaScores
    >>> batch = Batch.draw(ScoreWorld(BetaScores()), 500, 200, np.random.default_rng(0))
    >>> bool(abs(batch.debiased("mass", 15).mean()) < 0.01 < batch.plug_in("mass", 15).mean())
    True
    """

    scores: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray

    @classmethod
    def of(cls, observed: np.ndarray, scores: np.ndarray) -> Self:
        """Outcomes and scores, ``(sets, n)``."""
        order = np.argsort(scores, axis=1, kind="stable")
        ordered = np.take_along_axis(scores, order, axis=1)
        there = np.take_along_axis(observed, order, axis=1)
        return cls(ordered, _totals(ordered, float), _totals(there, np.int64))

    @classmethod
    def draw(cls, world: ScoreWorld, n: int, n_sets: int, rng: np.random.Generator) -> Self:
        """So many data sets of a world."""
        scores = world.scores.draw(rng, (n_sets, n))
        return cls.of(rng.random((n_sets, n)) < world.curve(scores), scores)

    def plug_in(self, rule: Rule, n_bins: int, norm: float = 2) -> np.ndarray:
        """The binned error of every data set, ``(sets,)``."""
        count, gap, _ = self._bins(self._cuts(rule, n_bins))
        return (np.sum(count * np.abs(gap) ** norm, axis=1) / self.scores.shape[1]) ** (1 / norm)

    def debiased(self, rule: Rule, n_bins: int) -> np.ndarray:
        """Squared gaps less ``ybar (1 - ybar) / (n_b - 1)``; the root of their mean, with its sign."""
        count, gap, frequency = self._bins(self._cuts(rule, n_bins))
        noise = frequency * (1 - frequency) / np.maximum(count - 1, 1)  # zero in bins of one row
        square = np.sum(count * (gap**2 - noise), axis=1) / self.scores.shape[1]
        return np.sign(square) * np.sqrt(np.abs(square))

    def sweep(self, rule: Rule, norm: float = 2) -> tuple[np.ndarray, np.ndarray]:
        """The binned error with the most bins before frequencies first fall from one to the next, and their number."""
        n_sets, n = self.scores.shape
        error, n_bins = np.empty(n_sets), np.ones(n_sets, dtype=int)
        alive = np.arange(n_sets)
        for candidate in range(2, n + 1):
            some = self._some(alive)
            alive = alive[~some._falls(some._cuts(rule, candidate))]
            n_bins[alive] = candidate
            if not len(alive):
                break
        for chosen in np.unique(n_bins):
            which = np.flatnonzero(n_bins == chosen)
            error[which] = self._some(which).plug_in(rule, int(chosen), norm)
        return error, n_bins

    def _some(self, which: np.ndarray) -> Self:
        if len(which) == len(self.scores):
            return self
        return type(self)(self.scores[which], self.predicted[which], self.observed[which])

    def _cuts(self, rule: Rule, n_bins: int) -> np.ndarray:
        """Positions between bins, ``(sets, bins + 1)``."""
        n_sets, n = self.scores.shape
        if rule == "mass":
            return np.broadcast_to(-(-np.arange(n_bins + 1) * n // n_bins), (n_sets, n_bins + 1))
        edges = np.arange(1, n_bins) / n_bins
        inner = [np.searchsorted(row, edges, side="right") for row in self.scores]
        return np.pad(np.stack(inner), ((0, 0), (1, 1)), constant_values=((0, 0), (0, n)))

    def _bins(self, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, gap and frequency of every bin, ``(sets, bins)``; zeros in empty ones."""
        count = np.diff(cuts, axis=1)
        least = np.maximum(count, 1)
        predicted = np.diff(np.take_along_axis(self.predicted, cuts, axis=1), axis=1) / least
        frequency = np.diff(np.take_along_axis(self.observed, cuts, axis=1), axis=1) / least
        return count, predicted - frequency, frequency

    def _falls(self, cuts: np.ndarray) -> np.ndarray:
        """Whether the frequency ever falls from one bin that is not empty to the next."""
        count, _, frequency = self._bins(cuts)
        highest = np.maximum.accumulate(np.where(count > 0, frequency, 0.0), axis=1)
        return np.any((count > 0) & (frequency < highest), axis=1)


def simulate(
    measure: "Measure",
    cells: Sequence[tuple[ScoreWorld, int]],
    n_sets: int,
    *,
    seed: int = 0,
    engine: Engine | None = None,
    skip: Container[int] = (),
) -> Iterator[tuple[int, np.ndarray]]:
    """The number of every cell, a world and a size, and what k measures find in its data sets, ``(k, n_sets)``.

    Cells to ``skip`` are left out; the digits of the others depend neither on that nor on the engine.

    >>> from calibrant.lab import BetaScores
    >>> cells = [(ScoreWorld(BetaScores()), 50), (ScoreWorld(BetaScores()), 100)]
    >>> [(i, values.shape) for i, values in simulate(lambda batch: batch.sweep("mass"), cells, 150)]
    [(0, (2, 150)), (1, (2, 150))]
    """
    check_count(n_sets, "n_sets", least=2)
    counts = [min(CHUNK, n_sets - start) for start in range(0, n_sets, CHUNK)]
    seeds = [root.spawn(len(counts)) for root in np.random.SeedSequence(seed).spawn(len(cells))]
    todo = [i for i in range(len(cells)) if i not in skip]
    tasks = [(*cells[i], *chunk) for i in todo for chunk in zip(counts, seeds[i], strict=True)]
    if not tasks:
        return
    results = iter(mapping(engine)(partial(_measured, measure), *zip(*tasks, strict=True)))
    for i in todo:
        yield i, np.concatenate(list(islice(results, len(counts))), axis=1)


def _measured(measure: "Measure", world: ScoreWorld, n: int, n_sets: int, seed: np.random.SeedSequence) -> np.ndarray:
    return np.stack(measure(Batch.draw(world, n, n_sets, np.random.default_rng(seed))))


def _totals(values: np.ndarray, dtype: type) -> np.ndarray:
    """Running totals of each row, from zero on."""
    return np.pad(np.cumsum(values, axis=1, dtype=dtype), ((0, 0), (1, 0)))


Measure: TypeAlias = Callable[[Batch], Sequence[np.ndarray]]
"""A batch to k numbers of every data set, each ``(sets,)``."""
