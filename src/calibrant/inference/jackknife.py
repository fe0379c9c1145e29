"""Standard errors for any estimator, by leaving rows out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant._tasks import mapping
from calibrant._validate import InputError, check_count, check_fraction
from calibrant.distributions.conversion import as_weighted_problem
from calibrant.estimators.base import BaseEstimator
from calibrant.estimators.mean_limits import MeanLimits
from calibrant.inference.draws import as_seed_sequence
from calibrant.inference.intervals import unsuited, value_of_rows
from calibrant.results import Estimate
from calibrant.typing import ArrayLike, Engine, Estimator, Seed

FEW = 500
"""Up to so many rows each is left out by itself, unless a number of groups is given."""

MANY_GROUPS = 100
"""Groups of more rows than that: the standard error is then known to seven percent or so."""

TASKS = 20
"""Tasks for an engine: each carries all rows."""


@dataclass(frozen=True)
class Jackknife:
    """An estimate with the jackknife's standard error, and an interval where leaving out rows suits the estimator.

    Rows are dealt at random into G ``groups``, and the estimator is asked G times with one group left out:
    ``se^2 = (G - 1)/G sum_g (T_-g - mean T_-.)^2``. Without ``groups``, every row is a group of its own up to 500 rows,
    and there are 100 groups of more. For a mean with equal weights the former is the usual standard error. It needs an
    estimator that moves little when a row goes, such as a score or the SKCE far from calibration; not the largest gap of
    a few bins, nor blocks of consecutive rows. The interval is that of :class:`MeanLimits`, with the pseudo-values
    ``G T - (G - 1) T_-g`` for values; calibration errors, which are no smooth functions of means, get none. Length scales
    are those of all rows. Quenouille (1956), Tukey (1958).

    >>> from calibrant import Brier
    >>> y_true, y_pred = [1, 0, 1, 1], [0.8, 0.4, 0.6, 0.9]
    >>> bool(np.isclose(Jackknife(Brier())(y_true, y_pred).standard_error, Brier()(y_true, y_pred).standard_error))
    True
    """

    estimator: Estimator
    groups: int | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        if not callable(self.estimator):
            raise InputError(f"estimator must be an estimator such as Brier(); got {self.estimator!r}")
        if self.groups is not None:
            check_count(self.groups, "groups", least=2)
        check_fraction(self.confidence_level, "confidence_level")

    def __call__(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        rng: Seed = None,
        engine: Engine | None = None,
    ) -> Estimate:
        """The estimate, its standard error and interval."""
        targets, predictions, weights = as_weighted_problem(y_true, y_pred, sample_weight)
        n = len(predictions)
        estimate = value_of_rows(self.estimator, targets, predictions, weights, slice(None), engine)
        fixed: Any = estimate.estimator if isinstance(self.estimator, BaseEstimator) else self.estimator
        value = partial(value_of_rows, fixed, targets, predictions, weights)
        group = self._group_of_rows(n, rng)
        tasks = np.array_split(np.arange(group.max() + 1), min(TASKS, group.max() + 1))
        values = np.concatenate(list(mapping(engine)(partial(_left_out, value, group), tasks)))
        return self._with_limits(estimate, values)

    def _group_of_rows(self, n: int, rng: Seed) -> np.ndarray:
        """The group of each row, sizes as equal as can be."""
        count = self.groups or (n if n <= FEW else MANY_GROUPS)
        if not 2 <= count <= n:
            raise InputError(f"groups must be at least 2 and at most the number of rows, {n:,}; got {count:,}")
        if count == n:
            return np.arange(n)
        return np.random.default_rng(as_seed_sequence(rng)).permutation(np.arange(n) % count)

    def _with_limits(self, estimate: Estimate, values: np.ndarray) -> Estimate:
        """The standard error from the values without each group, and the limits of their pseudo-values."""
        g = len(values)
        error = float(np.sqrt((g - 1) * np.var(values)))
        plain = replace(
            estimate,
            standard_error=error,
            interval=None,
            limits=None,
            withheld=estimate.withheld or unsuited(self.estimator),
        )
        if plain.withheld is not None or not np.isfinite(error):
            return plain
        least, most = getattr(self.estimator, "least", -np.inf), getattr(self.estimator, "most", np.inf)
        of_groups = MeanLimits.of(g * float(estimate) - (g - 1) * values, least=least, most=most)
        limits = replace(of_groups, mean=float(estimate))
        interval = replace(limits(self.confidence_level), method="jackknife")
        return replace(plain, interval=interval, limits=limits)


def _left_out(value: Callable[[np.ndarray], Any], group: np.ndarray, without: np.ndarray) -> np.ndarray:
    """The values without each of some groups."""
    return np.array([float(value(np.flatnonzero(group != g))) for g in without])
