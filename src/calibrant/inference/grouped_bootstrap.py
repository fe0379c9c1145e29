"""The bootstrap of a binned error of many rows, bin by bin."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.conversion import as_problem
from calibrant.estimators.binned import ECE
from calibrant.inference.draws import as_seed_sequence
from calibrant.inference.intervals import reflected
from calibrant.results import Estimate
from calibrant.typing import ArrayLike, Seed


@dataclass(frozen=True)
class GroupedBootstrap:
    """:class:`~calibrant.Bootstrap` of an error of one event, at the cost of one pass over the rows.

    Rows drawn with replacement put ``N_b`` of them in bin b, jointly multinomial, and their gaps ``p - y`` add up to a sum with
    mean ``N_b m_b`` and variance ``N_b v_b``, normal where bins hold many rows. Bins stay as they are. From five hundred rows a
    bin on, ends of intervals differ from those of the bootstrap of rows by less than its own noise. O(n).

    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.random(20_000)
    >>> low, high = GroupedBootstrap(ECE())((rng.random(20_000) < 0.2 + 0.6 * y_pred) * 1, y_pred).interval
    >>> low < 0.1 < high
    True
    """

    estimator: ECE
    n_resamples: int = 999
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, ECE) or self.estimator.norm != 1 or self.estimator.bins.is_adaptive:
            raise InputError(f"estimator must be an ECE with norm 1 and bins that do not adapt; got {self.estimator!r}")
        check_count(self.n_resamples, "n_resamples", least=2)
        check_fraction(self.confidence_level, "confidence_level")

    def __call__(self, y_true: ArrayLike, y_pred: ArrayLike, *, rng: Seed = None) -> Estimate:
        """The estimate, its standard error and interval."""
        targets, predictions = as_problem(y_true, y_pred)
        estimate = self.estimator.estimate(targets, predictions, None)
        _, events, _ = self.estimator.look(predictions)
        if len(events) > 1:
            raise InputError(f"errors of one event have an interval, and {self.estimator!r} averages {len(events)}")
        p = events[0].probability.astype(np.float64)
        gap, cell = p - events[0].happened(targets), self.estimator.bins.bins(p).of_rows(p, slice(None))
        values = self._resampled(gap, cell, np.random.default_rng(as_seed_sequence(rng)))
        interval = reflected(float(estimate), values, self.confidence_level, self.estimator.least)
        return replace(estimate, standard_error=float(np.std(values, ddof=1)), interval=interval)

    def _resampled(self, gap: np.ndarray, cell: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count = np.bincount(cell)
        used = count > 0
        mean, square = (np.bincount(cell, weights=v)[used] / count[used] for v in (gap, gap**2))
        rows = rng.multinomial(len(gap), count[used] / len(gap), self.n_resamples)
        spread = np.sqrt(np.maximum(square - mean**2, 0) * rows)
        return np.abs(rows * mean + spread * rng.standard_normal(rows.shape)).sum(axis=1) / len(gap)
