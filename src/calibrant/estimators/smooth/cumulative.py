"""Cumulative calibration errors: how far the running sum of residuals strays, with nothing to choose."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._array import to_numpy
from calibrant._clusters import Clusters
from calibrant.distributions.base import Distribution
from calibrant.estimators.base import Answers, MeanOverEvents, Statistic
from calibrant.estimators.binned.binning import Ordered
from calibrant.estimators.limits import Slack, WalkGap, noise_of_all
from calibrant.estimators.signs import SignedWalk
from calibrant.lenses.class_lenses import Lens


class CumulativeError(MeanOverEvents):
    """A number of the walk ``W(t) = sum over f_i <= t of (f_i - y_i) / n``, which starts at zero."""

    least = 0.0
    most = 1.0

    ways: ClassVar[int]
    """How many ways noise has to stray: 4 to either side of zero, 8 between any two places."""

    @staticmethod
    @abstractmethod
    def of_walks(walks: np.ndarray) -> np.ndarray:
        """The number of each walk, ``(m, steps)`` to ``(m,)``."""

    def slack(self, scores: np.ndarray, observed: np.ndarray, weights: np.ndarray | None, value: float) -> Slack:
        """Noise is a Brownian motion."""
        return WalkGap(*noise_of_all(scores, observed, weights), self.ways)

    def errors(self, scores: np.ndarray, weights: np.ndarray | None) -> Answers:
        """Rows are sorted once."""
        return _Walks(type(self), Ordered.of(scores, weights))

    def with_signs(
        self, targets: np.ndarray, predictions: Distribution, weights: np.ndarray | None, clusters: Clusters
    ) -> Statistic:
        """Walks of residuals with the signs of their clusters."""
        _, events, _ = self.look(predictions)
        w = np.ones(len(predictions)) if weights is None else weights
        walks = []
        for event in events:
            p, ordered = event.probability.astype(np.float64), Ordered.of(event.probability, weights)
            residuals = (w * (p - event.observed(to_numpy(targets))))[ordered.order]
            walks.append(SignedWalk(residuals, clusters.codes[ordered.order], ordered.ends))
        return _SignedWalks(type(self), tuple(walks), float(w.sum()))


@dataclass(frozen=True, eq=False)
class _Walks:
    kind: type[CumulativeError]
    ordered: Ordered

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        walks = self.ordered.predicted - self.ordered.observed(observed)
        return self.kind.of_walks(walks) / self.ordered.weight[-1]


@dataclass(frozen=True, eq=False)
class _SignedWalks:
    kind: type[CumulativeError]
    walks: tuple[SignedWalk, ...]
    total: float

    def __call__(self, signs: np.ndarray) -> np.ndarray:
        return np.mean([self.kind.of_walks(walk(signs)) for walk in self.walks], axis=0) / self.total


@dataclass(frozen=True)
class KolmogorovSmirnov(CumulativeError):
    """The farthest the walk of residuals gets from zero: ``max_t |sum over f_i <= t of (f_i - y_i)| / n``.

    The largest error of any claim of the form "among scores up to t". Equal scores step together, so the order of rows
    does not matter. Nothing is binned or smoothed; several events are averaged. :class:`~calibrant.ExactTest` gives its
    p-value. O(n log n). Gupta et al. (2021).

    >>> round(KolmogorovSmirnov()([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.7]).value, 4)
    0.125
    """

    name = "KS"
    ways = 4

    lens: Lens | None = None

    @staticmethod
    def of_walks(walks: np.ndarray) -> np.ndarray:
        """The farthest from zero."""
        return np.abs(walks).max(axis=1)


@dataclass(frozen=True)
class Kuiper(CumulativeError):
    """The range of the walk of residuals: ``max_t W(t) - min_t W(t)``.

    The largest error of any claim of the form "among scores between s and t". O(n log n). Tygert (2021).

    >>> round(Kuiper()([1, 0, 1, 0], [0.4, 0.5, 0.6, 0.7]).value, 4)
    0.2
    """

    name = "Kuiper"
    ways = 8

    lens: Lens | None = None

    @staticmethod
    def of_walks(walks: np.ndarray) -> np.ndarray:
        """From the lowest to the highest."""
        return walks.max(axis=1) - walks.min(axis=1)
